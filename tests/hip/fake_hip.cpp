// The functions of libamdhip64 that the library looks up, with the types of its own declarations
// (arch/hip/runtime.hpp), which are what is checked against ROCm's headers by reading.
#include "fake_hip.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "arch/hip/runtime.hpp"

namespace pagoda::hip_tests {
namespace {

using arch::HipCopy;
using arch::HipError;
using arch::HipEvent;
using arch::HipFunction;
using arch::HipModule;
using arch::HipStream;

constexpr auto kNoBinaryForGpu = static_cast<HipError>(209);
constexpr auto kInvalidImage = static_cast<HipError>(200);
constexpr auto kInvalidDevice = static_cast<HipError>(101);
constexpr auto kNotFound = static_cast<HipError>(500);
constexpr auto kCaptureUnsupported = static_cast<HipError>(900);

struct FakeDevice {
  const char* target;
  const char* name;
  int32_t num_cus;
  uint32_t elf_mach;  // EF_AMDGPU_MACH of e_flags (LLVM, "User Guide for AMDGPU Backend")
};
constexpr FakeDevice kDevices[] = {{"gfx942", "AMD Instinct MI300X", 304, 0x4c},
                                   {"gfx90a", "AMD Instinct MI250X", 110, 0x3f}};

struct Allocation {
  std::unique_ptr<std::byte[]> memory;
  size_t bytes = 0;
  int device = 0;
};

struct Module {
  int device = 0;
  const std::byte* image = nullptr;
};

struct Function {
  std::string symbol;
  int device = 0;
  uint32_t static_lds_bytes = 0, scratch_bytes = 0, kernarg_bytes = 0;
};

struct State {
  std::mutex mutex;
  std::vector<FakeDevice> devices;
  std::map<const std::byte*, Allocation> allocations;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<RecordedLaunch> launches;
  std::vector<std::string> calls;
  std::map<std::string, HipError> failures;
  std::map<void*, unsigned long long> streams;
  std::vector<std::unique_ptr<int>> all_streams;
  std::vector<void*> free_streams;
  unsigned long long last_stream_id = 0;
  bool is_captured = false;
  HipError last_error = HipError::kSuccess;
  std::string fault;
  double clock_seconds = 0;
};

State& state() {
  static State* all = [] {
    auto* made = new State;
    const char* text = std::getenv("PAGODA_FAKE_HIP");
    std::string list = std::string(text == nullptr ? "gfx942" : text) + ",";
    for (size_t begin = 0, end = 0; (end = list.find(',', begin)) != std::string::npos;
         begin = end + 1) {
      for (const FakeDevice& device : kDevices) {
        if (list.substr(begin, end - begin) == device.target) made->devices.push_back(device);
      }
    }
    return made;
  }();
  return *all;
}

thread_local int the_device = 0;

// A call: locks, notes the name, and returns the error that a test asked for.
class Call {
 public:
  explicit Call(const char* name) : lock_(state().mutex) {
    state().calls.emplace_back(name);
    const auto planned = state().failures.find(name);
    if (planned == state().failures.end()) return;
    error_ = planned->second;
    state().failures.erase(planned);
  }
  // `is_right`: whether a real runtime accepts the arguments.
  HipError end(bool is_right, HipError otherwise = HipError::kInvalidValue) {
    if (error_ == HipError::kSuccess && !is_right) {
      error_ = otherwise;
      if (state().fault.empty()) state().fault = state().calls.back();
    }
    if (error_ != HipError::kSuccess) state().last_error = error_;
    return error_;
  }
  [[nodiscard]] bool goes_on() const { return error_ == HipError::kSuccess; }

 private:
  std::lock_guard<std::mutex> lock_;
  HipError error_ = HipError::kSuccess;
};

// The allocation that holds all of [at, at + bytes); nullptr = none.
const Allocation* allocation_of(const void* at, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(at);
  auto after = state().allocations.upper_bound(begin);
  if (after == state().allocations.begin()) return nullptr;
  const auto& [memory, allocation] = *--after;
  return begin + bytes <= memory + allocation.bytes ? &allocation : nullptr;
}

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// The kernel descriptor of a symbol: "<symbol>.kd" in the file's symbol table.
const std::byte* descriptor_of(const std::byte* image, const std::string& symbol) {
  const auto header = read<Elf64_Ehdr>(image);
  const auto section = [&](size_t i) {
    return read<Elf64_Shdr>(image + header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_DYNSYM) continue;
    const std::byte* names = image + section(table.sh_link).sh_offset;
    for (size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto entry = read<Elf64_Sym>(image + table.sh_offset + at);
      if (symbol + ".kd" != reinterpret_cast<const char*>(names + entry.st_name)) continue;
      const Elf64_Shdr home = section(entry.st_shndx);
      return image + home.sh_offset + (entry.st_value - home.sh_addr);
    }
  }
  return nullptr;
}

}  // namespace

std::vector<RecordedLaunch> take_launches() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().launches, {});
}
std::vector<std::string> take_calls() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().calls, {});
}
std::string fault() {
  const std::lock_guard lock(state().mutex);
  return state().fault;
}
void fail(const char* function, int error) {
  const std::lock_guard lock(state().mutex);
  state().failures[function] = static_cast<HipError>(error);
}
void set_captured(bool is_captured) {
  const std::lock_guard lock(state().mutex);
  state().is_captured = is_captured;
}
void* create_stream() {
  const std::lock_guard lock(state().mutex);
  void* stream = nullptr;
  if (!state().free_streams.empty()) {
    stream = state().free_streams.back();
    state().free_streams.pop_back();
  } else {
    state().all_streams.push_back(std::make_unique<int>());
    stream = state().all_streams.back().get();
  }
  state().streams[stream] = ++state().last_stream_id;
  return stream;
}
void destroy_stream(void* stream) {
  const std::lock_guard lock(state().mutex);
  state().streams.erase(stream);
  state().free_streams.push_back(stream);
}
int current_device() { return the_device; }
size_t num_allocations() {
  const std::lock_guard lock(state().mutex);
  return state().allocations.size();
}

namespace {

bool is_stream(HipStream stream) {
  return stream == nullptr || state().streams.contains(static_cast<void*>(stream));
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the runtime's names
extern "C" {

HipError hipGetDeviceCount(int* count) {
  Call call("hipGetDeviceCount");
  *count = static_cast<int>(state().devices.size());
  return *count == 0 ? HipError::kNoDevice : call.end(true);
}
#if !defined(PAGODA_FAKE_HIP_IS_OLD)  // what ROCm 5 lacks
HipError hipGetDevicePropertiesR0600(arch::HipDeviceProperties* properties, int device) {
  Call call("hipGetDeviceProperties");
  const FakeDevice& found = state().devices.at(static_cast<size_t>(device));
  std::memset(static_cast<void*>(properties), 0x5a, sizeof *properties);
  std::strcpy(properties->name, found.name);
  std::strcpy(properties->gcn_arch_name, (std::string(found.target) + ":sramecc+:xnack-").c_str());
  properties->total_global_memory = size_t{192} << 30;
  properties->multiprocessor_count = found.num_cus;
  properties->l2_cache_bytes = 4 << 20;
  return call.end(true);
}
#endif
HipError hipGetDevice(int* device) {
  Call call("hipGetDevice");
  *device = the_device;
  return call.end(true);
}
HipError hipSetDevice(int device) {
  Call call("hipSetDevice");
  const bool exists = device >= 0 && static_cast<size_t>(device) < state().devices.size();
  if (exists && call.goes_on()) the_device = device;
  return call.end(exists, kInvalidDevice);
}
HipError hipGetLastError() {
  Call call("hipGetLastError");
  return std::exchange(state().last_error, HipError::kSuccess);
}
const char* hipGetErrorName(HipError error) {
  switch (static_cast<int>(error)) {
    case 2: return "hipErrorOutOfMemory";
    case 100: return "hipErrorNoDevice";
    case 200: return "hipErrorInvalidImage";
    case 719: return "hipErrorLaunchFailure";
    default: return "hipErrorUnknown";
  }
}
const char* hipGetErrorString(HipError error) {
  switch (static_cast<int>(error)) {
    case 100: return "no ROCm-capable device is detected";
    case 719: return "unspecified launch failure";
    default: return "unknown error";
  }
}
HipError hipRuntimeGetVersion(int* version) {
  Call call("hipRuntimeGetVersion");
  *version = 60241133;
  return call.end(true);
}

HipError hipMalloc(void** memory, size_t bytes) {
  Call call("hipMalloc");
  if (!call.goes_on()) return call.end(true);
  constexpr size_t kAlignment = 256;
  auto owned = std::make_unique<std::byte[]>(bytes + kAlignment);
  std::memset(owned.get(), 0x5a, bytes + kAlignment);
  const auto address = reinterpret_cast<uintptr_t>(owned.get());
  std::byte* aligned = owned.get() + (kAlignment - address % kAlignment) % kAlignment;
  state().allocations[aligned] = {std::move(owned), bytes, the_device};
  *memory = aligned;
  return call.end(true);
}
HipError hipFree(void* memory) {
  Call call("hipFree");
  return call.end(memory == nullptr ||
                  state().allocations.erase(static_cast<std::byte*>(memory)) == 1);
}
HipError hipMemGetInfo(size_t* free, size_t* total) {
  Call call("hipMemGetInfo");
  *total = size_t{192} << 30;
  *free = *total;
  for (const auto& [memory, allocation] : state().allocations) *free -= allocation.bytes;
  return call.end(true);
}
HipError hipMemcpy(void* to, const void* from, size_t bytes, HipCopy kind) {
  Call call("hipMemcpy");
  const bool is_right = (allocation_of(to, bytes) != nullptr) == (kind != HipCopy::kDeviceToHost) &&
                        (allocation_of(from, bytes) != nullptr) == (kind != HipCopy::kHostToDevice);
  if (is_right && call.goes_on()) std::memcpy(to, from, bytes);
  return call.end(is_right);
}
HipError hipMemcpyAsync(void* to, const void* from, size_t bytes, HipCopy kind, HipStream stream) {
  Call call("hipMemcpyAsync");
  const bool is_right = allocation_of(to, bytes) != nullptr &&
                        allocation_of(from, bytes) != nullptr && is_stream(stream) &&
                        kind == HipCopy::kDeviceToDevice;
  if (is_right && call.goes_on()) std::memmove(to, from, bytes);
  return call.end(is_right);
}
HipError hipMemsetAsync(void* to, int value, size_t bytes, HipStream stream) {
  Call call("hipMemsetAsync");
  const bool is_right = allocation_of(to, bytes) != nullptr && is_stream(stream);
  if (is_right && call.goes_on()) std::memset(to, value, bytes);
  return call.end(is_right);
}
HipError hipDeviceSynchronize() { return Call("hipDeviceSynchronize").end(true); }

// As ROCm 6.2 and later: memory that HIP does not know is no error.
HipError hipPointerGetAttributes(arch::HipPointerAttributes* attributes, const void* pointer) {
  Call call("hipPointerGetAttributes");
  *attributes = {};
  const Allocation* found = allocation_of(pointer, 1);
  if (found != nullptr) {
    attributes->type = arch::HipMemoryType::kDevice;
    attributes->device = found->device;
    attributes->device_pointer = const_cast<void*>(pointer);
  }
  return call.end(true);
}

HipError hipStreamIsCapturing(HipStream stream, int32_t* status) {
  Call call("hipStreamIsCapturing");
  *status = state().is_captured ? 1 : 0;
  return call.end(is_stream(stream));
}
HipError hipStreamGetId(HipStream stream, unsigned long long* id) {
  Call call("hipStreamGetId");
  if (state().is_captured) return call.end(false, kCaptureUnsupported);
  *id = stream == nullptr ? 0 : state().streams[static_cast<void*>(stream)];
  return call.end(is_stream(stream));
}

HipError hipEventCreate(HipEvent* event) {
  Call call("hipEventCreate");
  *event = reinterpret_cast<HipEvent>(new double(-1));
  return call.end(true);
}
HipError hipEventDestroy(HipEvent event) {
  Call call("hipEventDestroy");
  delete reinterpret_cast<double*>(event);
  return call.end(true);
}
// A microsecond passes between two events.
HipError hipEventRecord(HipEvent event, HipStream stream) {
  Call call("hipEventRecord");
  *reinterpret_cast<double*>(event) = state().clock_seconds += 1e-6;
  return call.end(is_stream(stream));
}
HipError hipEventElapsedTime(float* milliseconds, HipEvent begin, HipEvent end) {
  Call call("hipEventElapsedTime");
  const double first = *reinterpret_cast<double*>(begin), last = *reinterpret_cast<double*>(end);
  *milliseconds = static_cast<float>((last - first) * 1e3);
  return call.end(first > 0 && last > 0);
}

HipError hipModuleLoadData(HipModule* module, const void* image) {
  Call call("hipModuleLoadData");
  const auto* bytes = static_cast<const std::byte*>(image);
  const auto header = read<Elf64_Ehdr>(bytes);
  constexpr uint16_t kAmdGpu = 224;
  constexpr unsigned char kHsaVersion5 = 3;  // ELFABIVERSION_AMDGPU_HSA_V5
  const bool is_code = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                       header.e_machine == kAmdGpu && header.e_type == ET_DYN &&
                       header.e_ident[EI_ABIVERSION] >= kHsaVersion5;
  if (!is_code) return call.end(false, kInvalidImage);
  const FakeDevice& device = state().devices.at(static_cast<size_t>(the_device));
  if ((header.e_flags & 0xffU) != device.elf_mach) return call.end(false, kNoBinaryForGpu);
  if (call.goes_on()) {
    state().modules.push_back(std::make_unique<Module>(Module{the_device, bytes}));
    *module = reinterpret_cast<HipModule>(state().modules.back().get());
  }
  return call.end(true);
}
HipError hipModuleGetFunction(HipFunction* function, HipModule module, const char* name) {
  Call call("hipModuleGetFunction");
  const auto* from = reinterpret_cast<const Module*>(module);
  const std::byte* descriptor = descriptor_of(from->image, name);
  if (descriptor == nullptr) return call.end(false, kNotFound);
  // amd_kernel_code: group_segment_fixed_size, private_segment_fixed_size, kernarg_size.
  state().functions.push_back(std::make_unique<Function>(
      Function{name, from->device, read<uint32_t>(descriptor), read<uint32_t>(descriptor + 4),
               read<uint32_t>(descriptor + 8)}));
  *function = reinterpret_cast<HipFunction>(state().functions.back().get());
  return call.end(true);
}
HipError hipModuleLaunchKernel(HipFunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, HipStream stream,
                               void** parameters, void** extra) {
  Call call("hipModuleLaunchKernel");
  const auto* kernel = reinterpret_cast<const Function*>(function);
  const bool has_buffer =
      parameters == nullptr && extra != nullptr && extra[0] == reinterpret_cast<void*>(1) &&
      extra[2] == reinterpret_cast<void*>(2) && extra[4] == reinterpret_cast<void*>(3);
  if (!has_buffer || !is_stream(stream) || kernel->device != the_device) return call.end(false);
  const auto* bytes = static_cast<const std::byte*>(extra[1]);
  const size_t count = *static_cast<const size_t*>(extra[3]);
  const bool is_right = grid_x > 0 && grid_y > 0 && grid_z > 0 &&
                        block_x * block_y * block_z <= 1024 && count <= kernel->kernarg_bytes;
  if (is_right && call.goes_on()) {
    state().launches.push_back({kernel->symbol,
                                the_device,
                                {grid_x, grid_y, grid_z},
                                {block_x, block_y, block_z},
                                shared_bytes,
                                stream,
                                {bytes, bytes + count},
                                kernel->static_lds_bytes,
                                kernel->scratch_bytes,
                                kernel->kernarg_bytes});
  }
  return call.end(is_right);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

}  // namespace pagoda::hip_tests
