// A code object is loaded once per device; a kernel keeps its function.
#include "arch/hip/launch.hpp"

#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "arch/hip/device.hpp"

namespace pagoda::arch {
inline namespace hip {
namespace {

// Never unloaded: the runtime may be gone before static objects are destroyed.
struct Modules {
  std::mutex mutex;
  std::map<std::pair<int, const CodeObject*>, HipModule> of_device;
};

HipModule module_on(int device, const CodeObject& code, const std::string& what) {
  static auto* all = new Modules;
  const std::lock_guard lock(all->mutex);
  HipModule& module = all->of_device[{device, &code}];
  if (module == nullptr) {
    check(runtime().ModuleLoadData(&module, code.image().data()), what.c_str());
  }
  return module;
}

}  // namespace

const CodeObject* find_code_object(std::string_view name, int32_t arch) {
  for (const CodeObject& code : code_objects()) {
    if (code.name == name && code.arch == arch) return &code;
  }
  return nullptr;
}

HipFunction HipKernel::load(int device) const {
  const DeviceProperties& properties = devices()[static_cast<size_t>(device)];
  const CodeObject* code = find_code_object(code_, properties.arch);
  if (code == nullptr) {
    throw std::runtime_error(code_ + ": this build has no code for " + properties.target);
  }
  auto* const module =
      module_on(device, *code, "loading the code of " + code_ + " for " + properties.target);
  HipFunction function = nullptr;
  check(runtime().ModuleGetFunction(&function, module, symbol_.c_str()),
        ("finding the kernel " + symbol_ + " of " + code_).c_str());
  return function;
}

HipFunction HipKernel::on_current_device() {
  int device = 0;
  check(runtime().GetDevice(&device), "reading the current device");
  const auto index = static_cast<size_t>(device);
  if (index >= kMaxDevices) return load(device);
  HipFunction function = functions_[index].load(std::memory_order_acquire);
  if (function == nullptr) {
    function = load(device);
    functions_[index].store(function, std::memory_order_release);
  }
  return function;
}

void launch(HipKernel& kernel, LaunchShape shape, std::span<const std::byte> params,
            HipStream stream, const char* what) {
  // HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END.
  size_t bytes = params.size();
  void* extra[] = {reinterpret_cast<void*>(1), const_cast<std::byte*>(params.data()),
                   reinterpret_cast<void*>(2), &bytes, reinterpret_cast<void*>(3)};
  const auto of = [](int32_t extent) { return static_cast<unsigned>(extent); };
  check(runtime().ModuleLaunchKernel(kernel.on_current_device(), of(shape.grid.x), of(shape.grid.y),
                                     of(shape.grid.z), of(shape.threads), 1, 1, 0, stream, nullptr,
                                     extra),
        what);
}

}  // namespace hip
}  // namespace pagoda::arch
