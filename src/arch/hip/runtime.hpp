// HIP's runtime API, found at run time: nothing links to libamdhip64, and the library starts on
// machines without ROCm. The declarations are those of ROCm 6 and 7 (hip/hip_runtime_api.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pagoda::arch {
inline namespace hip {

// hipError_t: the values that are told apart here.
enum class HipError : uint32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
};

// hipDeviceProp_tR0600: the members that are read here.
struct HipDeviceProperties {
  char name[256];
  std::byte not_read_0[32];
  size_t total_global_memory;
  std::byte not_read_1[92];
  int32_t multiprocessor_count;
  std::byte not_read_2[224];
  int32_t l2_cache_bytes;
  std::byte not_read_3[540];
  char gcn_arch_name[256];  // "gfx942:sramecc+:xnack-"
  std::byte not_read_4[56];
};
static_assert(offsetof(HipDeviceProperties, total_global_memory) == 288);
static_assert(offsetof(HipDeviceProperties, multiprocessor_count) == 388);
static_assert(offsetof(HipDeviceProperties, l2_cache_bytes) == 616);
static_assert(offsetof(HipDeviceProperties, gcn_arch_name) == 1160);
static_assert(sizeof(HipDeviceProperties) == 1472);

enum class HipMemoryType : int32_t {
  kUnregistered = 0,
  kHost = 1,
  kDevice = 2,
  kManaged = 3,
};

// hipPointerAttribute_t
struct HipPointerAttributes {
  HipMemoryType type;
  int device;
  void* device_pointer;
  void* host_pointer;
  int is_managed;
  unsigned allocation_flags;
};

enum class HipCopy : int32_t { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };

using HipStream = struct ihipStream_t*;
using HipEvent = struct ihipEvent_t*;
using HipModule = struct ihipModule_t*;
using HipFunction = struct ihipModuleSymbol_t*;

// The functions, each named as in the library, but for hip and for hipGetDevicePropertiesR0600.
struct HipRuntime {
  HipError (*GetDeviceCount)(int* count);
  HipError (*GetDeviceProperties)(HipDeviceProperties* properties, int device);
  HipError (*GetDevice)(int* device);
  HipError (*SetDevice)(int device);
  HipError (*GetLastError)();
  const char* (*GetErrorName)(HipError error);
  const char* (*GetErrorString)(HipError error);
  HipError (*RuntimeGetVersion)(int* version);
  HipError (*Malloc)(void** memory, size_t bytes);
  HipError (*Free)(void* memory);
  HipError (*MemGetInfo)(size_t* free, size_t* total);
  HipError (*Memcpy)(void* to, const void* from, size_t bytes, HipCopy kind);
  HipError (*MemcpyAsync)(void* to, const void* from, size_t bytes, HipCopy kind, HipStream stream);
  HipError (*MemsetAsync)(void* to, int value, size_t bytes, HipStream stream);
  HipError (*DeviceSynchronize)();
  HipError (*PointerGetAttributes)(HipPointerAttributes* attributes, const void* pointer);
  HipError (*StreamIsCapturing)(HipStream stream, int32_t* status);  // 0: it is not
  // Null before ROCm 7.
  HipError (*StreamGetId)(HipStream stream, unsigned long long* id);
  HipError (*EventCreate)(HipEvent* event);
  HipError (*EventDestroy)(HipEvent event);
  HipError (*EventRecord)(HipEvent event, HipStream stream);
  HipError (*EventElapsedTime)(float* milliseconds, HipEvent begin, HipEvent end);
  HipError (*ModuleLoadData)(HipModule* module, const void* image);
  HipError (*ModuleGetFunction)(HipFunction* function, HipModule module, const char* name);
  HipError (*ModuleLaunchKernel)(HipFunction function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_bytes, HipStream stream,
                                 void** parameters, void** extra);
};

// Looks for the library when first asked: first among those that the process has loaded, because
// the caller's streams and memory belong to that one. Null: runtime_obstacle() says why.
[[nodiscard]] const HipRuntime* find_runtime();
[[nodiscard]] const std::string& runtime_obstacle();

// The same where it is known to be there. Throws std::runtime_error otherwise.
[[nodiscard]] const HipRuntime& runtime();

// `what` names the operation that failed: "launching gfx942.bf16.d128". Throws std::bad_alloc or
// std::runtime_error; clears the thread's last error.
void check(HipError error, const char* what);

}  // namespace hip
}  // namespace pagoda::arch
