// A fake CUDA runtime: fake_cudart.cpp defines the runtime functions that the library calls, so
// that a program links it instead of cudart and needs no GPU. Devices are descriptions, memory is
// addresses, launches are recorded, and the library's fat binaries are parsed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pagoda::cuda_tests {

struct DescribedDevice {
  const char* name;
  int32_t arch;  // 90: compute capability 9.0
  int32_t num_sms;
  int64_t shared_memory_bytes;  // the opt-in limit of a CTA
};

// The devices that the environment variable PAGODA_DESCRIBED_DEVICES ("80,100") names; default:
// all.
[[nodiscard]] std::span<const DescribedDevice> described_devices();

// A cubin or PTX of a fat binary; a library holds one cubin.
struct CodeEntry {
  bool is_ptx = false;
  int32_t arch = 0;
  bool is_arch_specific = false;     // sm_100a: runs on sm_100 only
  std::span<const std::byte> image;  // of a cubin: the ELF file, compressed by zstd
};

struct RecordedLaunch {
  std::string kernel;   // demangled
  std::string symbol;   // mangled
  int32_t device = -1;  // the current one
  uint64_t grid[3] = {}, block[3] = {};
  uint64_t cluster = 1;
  int64_t shared_memory_bytes = 0;          // dynamic
  int64_t allowed_shared_memory_bytes = 0;  // by cudaFuncSetAttribute on this device; 48 KB without
  bool is_dependent = false;                // programmatic stream serialization
  void* stream = nullptr;
  std::vector<CodeEntry> code;    // of the fat binary or library that holds the kernel
  std::vector<std::byte> params;  // of the size that the cubin says; of PTX: empty
};

// The launches since the last call.
[[nodiscard]] std::vector<RecordedLaunch> take_launches();
// The number of calls of cudaGetDevice, cudaSetDevice and cudaDeviceGetAttribute.
[[nodiscard]] int64_t num_device_calls();
// The number of calls of cuTensorMapEncodeTiled, and the error in their arguments; empty = none.
[[nodiscard]] int64_t num_tensor_maps();
[[nodiscard]] std::string tensor_map_fault();

struct RegisteredKernel {
  std::string symbol;
  std::vector<CodeEntry> code;
};
[[nodiscard]] std::vector<RegisteredKernel> registered_kernels();

// The entry that the driver selects for a device: a cubin of the device's architecture, or of the
// same major and a lower minor version; otherwise PTX of no later version; nullptr = none.
[[nodiscard]] const CodeEntry* code_for(std::span<const CodeEntry> code, int32_t arch);

// Bytes of the kernel's instructions in a cubin, of the shared memory that it declares, and of its
// parameters; -1: not in there.
struct KernelSize {
  int64_t text_bytes = -1;
  int64_t static_shared_bytes = 0;
  int64_t params_bytes = -1;
};
[[nodiscard]] KernelSize kernel_size(const CodeEntry& cubin, const std::string& symbol);
[[nodiscard]] KernelSize kernel_size(std::span<const std::byte> cubin, const std::string& symbol);

}  // namespace pagoda::cuda_tests
