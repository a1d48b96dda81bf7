// The CUDA runtime functions that the library calls. A missing one would be linked from the real
// runtime's archive, whose other definitions then clash with these.
#include "fake_cudart.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cxxabi.h>
#include <elf.h>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <zstd.h>

#include "arch/layout/tensor_map.hpp"

namespace pagoda::cuda_tests {
namespace {

// Multiprocessors and shared memory: CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability", and the data sheets of the devices.
constexpr DescribedDevice kDevices[] = {
    {"A100", 80, 108, 163 << 10},
    {"A40", 86, 84, 99 << 10},
    {"RTX 4090", 89, 128, 99 << 10},
    {"H200", 90, 132, 227 << 10},
    {"B200", 100, 148, 227 << 10},
    {"B300", 103, 160, 227 << 10},
    {"RTX PRO 6000", 120, 188, 99 << 10},
    {"GB10", 121, 48, 99 << 10},
    {"T4", 75, 40, 64 << 10},
};
constexpr int32_t kTuring =
    75;  // only if PAGODA_DESCRIBED_DEVICES names it: no code is compiled for it

constexpr int64_t kSharedMemoryOfAll = 48 << 10;  // the limit without cudaFuncSetAttribute

// What nvcc emits (crt/host_runtime.h, fatbinary_section.h): `data` points to a header and, after
// it, entries. Their layout is not documented; the fields that are read here are those that
// `cuobjdump --list-elf` and `--list-ptx` print, and described_devices_test checks them against
// what CMake was told to compile.
struct FatBinaryWrapper {
  int32_t magic;
  int32_t version;
  const std::byte* data;
  void* file;
};
// cudaDevAttrReservedSharedMemoryPerBlock from sm_90 on. H200, nvcc 13.0: a kernel whose
// .nv.shared section has 1024 bytes for its extern array has 0 static bytes by
// cudaFuncGetAttributes, and is launched with all 232448 of the limit.
constexpr int64_t kReservedSharedBytes = 1024;
constexpr int32_t kWrapperMagic = 0x466243b1;
struct FatBinaryHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;
};
constexpr uint32_t kHeaderMagic = 0xba55ed50;
struct FatBinaryEntry {
  uint16_t kind;  // 1: PTX, 2: cubin
  uint16_t version;
  uint32_t header_bytes;
  uint64_t bytes;
  uint32_t compressed_bytes;  // --compress-mode=size: of a zstd frame, without padding
  uint32_t options;
  uint16_t minor, major;  // of the PTX version or cubin format
  uint32_t arch;
  uint32_t name_offset, name_bytes;
  uint64_t flags;
};
constexpr uint64_t kArchSpecific = 0x100000;

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

std::vector<CodeEntry> entries_of(const void* wrapper_address) {
  const auto wrapper = read<FatBinaryWrapper>(static_cast<const std::byte*>(wrapper_address));
  if (wrapper.magic != kWrapperMagic) throw std::runtime_error("not a fat binary's wrapper");
  const auto header = read<FatBinaryHeader>(wrapper.data);
  if (header.magic != kHeaderMagic) throw std::runtime_error("not a fat binary");
  std::vector<CodeEntry> entries;
  const std::byte* at = wrapper.data + header.header_bytes;
  const std::byte* const end = at + header.bytes;
  while (at < end) {
    const auto entry = read<FatBinaryEntry>(at);
    if (entry.kind != 1 && entry.kind != 2) throw std::runtime_error("an entry of unknown kind");
    entries.push_back({.is_ptx = entry.kind == 1,
                       .arch = static_cast<int32_t>(entry.arch),
                       .is_arch_specific = (entry.flags & kArchSpecific) != 0,
                       .image = {at + entry.header_bytes, entry.compressed_bytes}});
    at += entry.header_bytes + entry.bytes;
  }
  return entries;
}

std::vector<std::byte> decompress(std::span<const std::byte> frame) {
  const unsigned long long bytes = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR) {
    throw std::runtime_error("not a zstd frame");
  }
  std::vector<std::byte> content(bytes);
  const size_t written =
      ZSTD_decompress(content.data(), content.size(), frame.data(), frame.size());
  if (written != content.size()) throw std::runtime_error("a zstd frame that cannot be read");
  return content;
}

struct Function {
  std::string symbol;
  std::vector<CodeEntry>* code = nullptr;
  int64_t params_bytes = -1;  // not known yet
};

// cudaLibraryLoadData: a cubin, as it was given.
struct Library {
  std::vector<std::byte> cubin;
  std::vector<CodeEntry> code;
};

struct Runtime {
  std::vector<std::unique_ptr<std::vector<CodeEntry>>> fat_binaries;
  std::map<const void*, Function> functions;  // by host entry or cudaKernel_t
  std::vector<std::unique_ptr<Library>> libraries;
  std::map<std::pair<const void*, int>, int64_t> allowed_shared_memory;
  std::vector<RecordedLaunch> launches;
  int device = 0;
  int64_t device_calls = 0;
  uintptr_t next_address = uintptr_t{1} << 45;
  int64_t tensor_maps = 0;
  std::string tensor_map_fault;
};

// Fat binaries are registered before main and maybe before this file's own statics.
Runtime& runtime() {
  static auto* instance = new Runtime;
  return *instance;
}

std::string demangle(const std::string& symbol) {
  int status = 0;
  char* const text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : symbol;
  std::free(text);
  return name;
}

// A kernel's section .nv.info is a list of attributes: format, number, and a value of two bytes, or
// with format 4 the size of what follows. Number 0x17 is EIATTR_KPARAM_INFO in the output of
// `cuobjdump -elf`: of 12 bytes the last four have the parameter's size from bit 18 on.
int64_t params_bytes(std::span<const std::byte> info) {
  constexpr uint8_t kSizedFormat = 4, kParamInfo = 0x17;
  for (size_t at = 0; at + 16 <= info.size();) {
    const auto format = read<uint8_t>(&info[at]), number = read<uint8_t>(&info[at + 1]);
    if (number == kParamInfo) return read<uint32_t>(&info[at + 12]) >> 18U;
    at += 4 + (format == kSizedFormat ? read<uint16_t>(&info[at + 2]) : 0);
  }
  throw std::runtime_error("a kernel without the size of its parameters");
}

const DescribedDevice& current() {
  return described_devices()[static_cast<size_t>(runtime().device)];
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave /*interleave*/,
                      CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                      CUtensorMapFloatOOBfill fill) {
  ++runtime().tensor_maps;
  const auto fail = [](const std::string& why) {
    runtime().tensor_map_fault = why;
    return CUDA_ERROR_INVALID_VALUE;
  };
  if (current().arch < 90) return fail(std::string(current().name) + " has no tensor maps");
  if (rank < 1 || rank > 5) return fail("rank " + std::to_string(rank));
  arch::TensorMapSpec spec;
  spec.type = static_cast<arch::TensorMapType>(type);
  spec.rank = static_cast<int32_t>(rank);
  spec.address = reinterpret_cast<uintptr_t>(address);
  for (uint32_t d = 0; d < rank; ++d) {
    spec.dims[d] = dims[d];
    spec.box[d] = box[d];
    spec.element_strides[d] = element_strides[d];
    if (d + 1 < rank) spec.strides_bytes[d] = strides[d];
  }
  for (const arch::Swizzle each :
       {arch::Swizzle::kNone, arch::Swizzle::k32B, arch::Swizzle::k64B, arch::Swizzle::k128B}) {
    if (static_cast<CUtensorMapSwizzle>(arch::tensor_map_code(each)) == swizzle)
      spec.swizzle = each;
  }
  spec.l2_promotion = static_cast<decltype(spec.l2_promotion)>(promotion);
  spec.oob_fill = static_cast<decltype(spec.oob_fill)>(fill);
  if (const arch::TensorMapFault fault = arch::validate(spec); fault.exists()) {
    return fail(std::string(fault.field) + " " + std::to_string(fault.value));
  }
  std::memset(map, 0, sizeof(*map));
  return CUDA_SUCCESS;
}

}  // namespace

std::span<const DescribedDevice> described_devices() {
  static const std::vector<DescribedDevice> kChosen = [] {
    const char* const wanted = std::getenv("PAGODA_DESCRIBED_DEVICES");
    std::vector<DescribedDevice> chosen;
    for (const DescribedDevice& device : kDevices) {
      const std::string list = wanted == nullptr ? "" : "," + std::string(wanted) + ",";
      const bool is_listed =
          list.find("," + std::to_string(device.arch) + ",") != std::string::npos;
      if (wanted == nullptr ? device.arch != kTuring : is_listed) chosen.push_back(device);
    }
    return chosen;
  }();
  return kChosen;
}

std::vector<RecordedLaunch> take_launches() { return std::exchange(runtime().launches, {}); }
int64_t num_device_calls() { return runtime().device_calls; }
int64_t num_tensor_maps() { return runtime().tensor_maps; }
std::string tensor_map_fault() { return runtime().tensor_map_fault; }

std::vector<RegisteredKernel> registered_kernels() {
  std::vector<RegisteredKernel> kernels;
  for (const auto& [entry, function] : runtime().functions) {
    kernels.push_back({function.symbol, *function.code});
  }
  return kernels;
}

const CodeEntry* code_for(std::span<const CodeEntry> code, int32_t arch) {
  const CodeEntry* best = nullptr;
  for (const CodeEntry& entry : code) {
    const bool is_same = entry.arch == arch;
    const bool serves =
        entry.is_arch_specific ? is_same : entry.arch / 10 == arch / 10 && entry.arch <= arch;
    if (!entry.is_ptx && serves && (best == nullptr || entry.arch > best->arch)) best = &entry;
  }
  if (best != nullptr) return best;
  for (const CodeEntry& entry : code) {
    if (entry.is_ptx && !entry.is_arch_specific && entry.arch <= arch) return &entry;
  }
  return nullptr;
}

KernelSize kernel_size(const CodeEntry& cubin, const std::string& symbol) {
  return kernel_size(decompress(cubin.image), symbol);
}

KernelSize kernel_size(std::span<const std::byte> image, const std::string& symbol) {
  KernelSize size;
  const std::byte* const file = image.data();
  const auto header = read<Elf64_Ehdr>(file);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) throw std::runtime_error("not ELF");
  const auto section = [&](size_t i) {
    return read<Elf64_Shdr>(file + header.e_shoff + i * header.e_shentsize);
  };
  const std::byte* const names = file + section(header.e_shstrndx).sh_offset;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr each = section(i);
    const std::string name = reinterpret_cast<const char*>(names + each.sh_name);
    if (name == ".text." + symbol) size.text_bytes = static_cast<int64_t>(each.sh_size);
    if (name == ".nv.shared." + symbol) {
      // The section begins with what the system reserves of every CTA, which a device's limit does
      // not count.
      size.static_shared_bytes =
          std::max<int64_t>(0, static_cast<int64_t>(each.sh_size) - kReservedSharedBytes);
    }
    if (name == ".nv.info." + symbol) {
      size.params_bytes = params_bytes({file + each.sh_offset, each.sh_size});
    }
  }
  return size;
}

}  // namespace pagoda::cuda_tests

using pagoda::cuda_tests::described_devices;
using pagoda::cuda_tests::runtime;

extern "C" {

// --- what nvcc's host code calls before main
void** __cudaRegisterFatBinary(void* wrapper) {
  auto& all = runtime().fat_binaries;
  all.push_back(std::make_unique<std::vector<pagoda::cuda_tests::CodeEntry>>(
      pagoda::cuda_tests::entries_of(wrapper)));
  return reinterpret_cast<void**>(all.back().get());
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}
void __cudaRegisterFunction(void** handle, const char* host_entry, char* /*device_entry*/,
                            const char* name, int /*thread_limit*/, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  runtime().functions[host_entry] = {
      name, reinterpret_cast<std::vector<pagoda::cuda_tests::CodeEntry>*>(handle)};
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

// --- of the stubs for <<<>>>, which the library does not use
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) {
  return cudaErrorNotSupported;
}

// --- devices
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(described_devices().size());
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::strcpy(properties->name, described_devices()[static_cast<size_t>(device)].name);
  properties->totalGlobalMem = size_t{64} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr name, int device) {
  ++runtime().device_calls;
  const auto& described = described_devices()[static_cast<size_t>(device)];
  switch (name) {
    case cudaDevAttrComputeCapabilityMajor: *value = described.arch / 10; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = described.arch % 10; return cudaSuccess;
    case cudaDevAttrMultiProcessorCount: *value = described.num_sms; return cudaSuccess;
    case cudaDevAttrL2CacheSize: *value = 50 << 20; return cudaSuccess;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = 1 << 10; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(described.shared_memory_bytes) + (1 << 10);
      return cudaSuccess;
    default: return cudaErrorInvalidValue;
  }
}
cudaError_t cudaGetDevice(int* device) {
  ++runtime().device_calls;
  *device = runtime().device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  ++runtime().device_calls;
  if (device < 0 || static_cast<size_t>(device) >= described_devices().size()) {
    return cudaErrorInvalidDevice;
  }
  runtime().device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

// --- launches
cudaError_t cudaFuncSetAttribute(const void* entry, cudaFuncAttribute name, int value) {
  auto& state = runtime();
  if (name != cudaFuncAttributeMaxDynamicSharedMemorySize || !state.functions.contains(entry)) {
    return cudaErrorInvalidValue;
  }
  const auto& device = described_devices()[static_cast<size_t>(state.device)];
  if (value > device.shared_memory_bytes) return cudaErrorInvalidValue;
  const auto* code = pagoda::cuda_tests::code_for(*state.functions[entry].code, device.arch);
  if (code == nullptr) return cudaErrorNoKernelImageForDevice;
  state.allowed_shared_memory[{entry, state.device}] = value;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* entry,
                                void** arguments) {
  auto& state = runtime();
  if (!state.functions.contains(entry)) return cudaErrorInvalidDeviceFunction;
  auto& function = state.functions[entry];
  const auto& device = described_devices()[static_cast<size_t>(state.device)];
  const auto* code = pagoda::cuda_tests::code_for(*function.code, device.arch);
  if (code == nullptr) return cudaErrorNoKernelImageForDevice;
  if (function.params_bytes < 0 && !code->is_ptx) {
    function.params_bytes = pagoda::cuda_tests::kernel_size(*code, function.symbol).params_bytes;
  }
  pagoda::cuda_tests::RecordedLaunch launch;
  launch.symbol = function.symbol;
  launch.kernel = pagoda::cuda_tests::demangle(function.symbol);
  launch.device = state.device;
  const dim3 grid = config->gridDim, block = config->blockDim;
  launch.grid[0] = grid.x, launch.grid[1] = grid.y, launch.grid[2] = grid.z;
  launch.block[0] = block.x, launch.block[1] = block.y, launch.block[2] = block.z;
  launch.shared_memory_bytes = static_cast<int64_t>(config->dynamicSmemBytes);
  const auto allowed = state.allowed_shared_memory.find({entry, state.device});
  launch.allowed_shared_memory_bytes = allowed == state.allowed_shared_memory.end()
                                           ? pagoda::cuda_tests::kSharedMemoryOfAll
                                           : allowed->second;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension) {
      launch.cluster = uint64_t{attribute.val.clusterDim.x} * attribute.val.clusterDim.y *
                       attribute.val.clusterDim.z;
    } else if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization) {
      launch.is_dependent = attribute.val.programmaticStreamSerializationAllowed != 0;
    } else {
      return cudaErrorInvalidValue;
    }
  }
  launch.stream = config->stream;
  launch.code = *function.code;
  const auto* const params = static_cast<const std::byte*>(arguments[0]);
  launch.params.assign(params, params + std::max<int64_t>(0, function.params_bytes));
  state.launches.push_back(std::move(launch));
  return cudaSuccess;
}
// --- libraries: cubins, and their kernels
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  // The end of an ELF file is that of its section headers, or of the last section.
  const auto* const file = static_cast<const std::byte*>(code);
  const auto header = pagoda::cuda_tests::read<Elf64_Ehdr>(file);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return cudaErrorInvalidKernelImage;
  size_t bytes = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto section =
        pagoda::cuda_tests::read<Elf64_Shdr>(file + header.e_shoff + i * header.e_shentsize);
    if (section.sh_type != SHT_NOBITS) {
      bytes = std::max<size_t>(bytes, section.sh_offset + section.sh_size);
    }
  }
  auto& loaded = runtime().libraries.emplace_back(std::make_unique<pagoda::cuda_tests::Library>());
  loaded->cubin.assign(file, file + bytes);
  // e_flags of ABI version 8 (CUDA 13): bits 8 to 15 are the architecture.
  loaded->code = {{.arch = static_cast<int32_t>((header.e_flags >> 8) & 0xFFU),
                   .is_arch_specific = false,
                   .image = loaded->cubin}};
  *library = reinterpret_cast<cudaLibrary_t>(loaded.get());
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  auto* const loaded = reinterpret_cast<pagoda::cuda_tests::Library*>(library);
  const auto size = pagoda::cuda_tests::kernel_size(loaded->cubin, name);
  if (size.text_bytes < 0) return cudaErrorSymbolNotFound;
  runtime().functions[loaded] = {name, &loaded->code, size.params_bytes};
  *kernel = reinterpret_cast<cudaKernel_t>(loaded);
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  if (std::strcmp(symbol, "cuTensorMapEncodeTiled") != 0) return cudaErrorInvalidValue;
  *function = reinterpret_cast<void*>(&pagoda::cuda_tests::encode_tiled);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// --- memory: addresses that nothing dereferences
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  auto& state = runtime();
  *memory = reinterpret_cast<void*>(state.next_address);
  state.next_address += (bytes + 511) / 256 * 256;
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaMallocHost(void**, size_t) { return cudaErrorNotSupported; }
cudaError_t cudaFreeHost(void*) { return cudaErrorNotSupported; }
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind) { return cudaErrorNotSupported; }
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  *available = *total = size_t{64} << 30;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  *attributes = {};
  attributes->type = cudaMemoryTypeDevice;
  attributes->device = runtime().device;
  attributes->devicePointer = const_cast<void*>(memory);
  return cudaSuccess;
}

// --- streams, events, errors
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  *id = reinterpret_cast<uintptr_t>(stream);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t*) { return cudaErrorNotSupported; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) { return cudaErrorNotSupported; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorNoKernelImageForDevice ? "cudaErrorNoKernelImageForDevice" : "an error";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoKernelImageForDevice ? "no kernel image is available for the device"
                                                  : "of the described device";
}

}  // extern "C"
