// Finds libamdhip64.
#include "arch/hip/runtime.hpp"

#include <dlfcn.h>
#include <new>
#include <stdexcept>

namespace pagoda::arch {
inline namespace hip {
namespace {

// The name with a version is installed with the runtime, the plain one with its headers; the wheels
// of PyTorch have the plain one alone.
constexpr const char* kNames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"};

void* open_library() {
  for (const int mode : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW}) {
    for (const char* name : kNames) {
      if (void* library = dlopen(name, mode)) return library;
    }
  }
  return nullptr;
}

struct Found {
  HipRuntime runtime{};
  std::string obstacle;
};

Found find() {
  Found found;
  void* library = open_library();  // never closed
  if (library == nullptr) {
    found.obstacle = "no HIP runtime: libamdhip64.so of ROCm 6 or later is not installed";
    return found;
  }
  const auto set_optional = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
  };
  const auto set = [&](auto& function, const char* name) {
    set_optional(function, name);
    if (function == nullptr && found.obstacle.empty()) {
      found.obstacle = std::string("libamdhip64.so has no ") + name + "; needs ROCm 6 or later";
    }
  };
  HipRuntime& r = found.runtime;
  set(r.GetDeviceCount, "hipGetDeviceCount");
  set(r.GetDeviceProperties, "hipGetDevicePropertiesR0600");
  set(r.GetDevice, "hipGetDevice");
  set(r.SetDevice, "hipSetDevice");
  set(r.GetLastError, "hipGetLastError");
  set(r.GetErrorName, "hipGetErrorName");
  set(r.GetErrorString, "hipGetErrorString");
  set(r.RuntimeGetVersion, "hipRuntimeGetVersion");
  set(r.Malloc, "hipMalloc");
  set(r.Free, "hipFree");
  set(r.MemGetInfo, "hipMemGetInfo");
  set(r.Memcpy, "hipMemcpy");
  set(r.MemcpyAsync, "hipMemcpyAsync");
  set(r.MemsetAsync, "hipMemsetAsync");
  set(r.DeviceSynchronize, "hipDeviceSynchronize");
  set(r.PointerGetAttributes, "hipPointerGetAttributes");
  set(r.StreamIsCapturing, "hipStreamIsCapturing");
  set_optional(r.StreamGetId, "hipStreamGetId");
  set(r.EventCreate, "hipEventCreate");
  set(r.EventDestroy, "hipEventDestroy");
  set(r.EventRecord, "hipEventRecord");
  set(r.EventElapsedTime, "hipEventElapsedTime");
  set(r.ModuleLoadData, "hipModuleLoadData");
  set(r.ModuleGetFunction, "hipModuleGetFunction");
  set(r.ModuleLaunchKernel, "hipModuleLaunchKernel");
  return found;
}

const Found& found() {
  static const Found kFound = find();
  return kFound;
}

}  // namespace

const HipRuntime* find_runtime() { return found().obstacle.empty() ? &found().runtime : nullptr; }

const std::string& runtime_obstacle() { return found().obstacle; }

const HipRuntime& runtime() {
  if (const HipRuntime* hip = find_runtime()) return *hip;
  throw std::runtime_error(runtime_obstacle());
}

void check(HipError error, const char* what) {
  if (error == HipError::kSuccess) return;
  const HipRuntime& hip = runtime();
  static_cast<void>(hip.GetLastError());
  if (error == HipError::kOutOfMemory) throw std::bad_alloc();
  throw std::runtime_error(std::string(what) + ": " + hip.GetErrorName(error) + ", " +
                           hip.GetErrorString(error));
}

}  // namespace hip
}  // namespace pagoda::arch
