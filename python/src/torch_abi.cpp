// Finds the functions by dlsym().
#include "python/src/torch_abi.hpp"

#include <dlfcn.h>
#include <iterator>
#include <stdexcept>
#include <string>

#include "pagoda/pagoda.h"

namespace pagoda_python::torch_abi {
namespace {

// A library that the process has loaded, or null.
void* loaded(const char* name) { return dlopen(name, RTLD_NOLOAD | RTLD_LAZY); }

template <typename Function>
void find_optional(void* library, const char* name, Function& to) {
  to = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

template <typename Function>
void find(void* library, const char* name, Function& to) {
  find_optional(library, name, to);
  if (to == nullptr) {
    throw std::runtime_error(std::string("PyTorch has no function ") + name +
                             "; its version must be 2.10 or later");
  }
}

int32_t constant(void* library, const char* name) {
  int32_t (*get)() = nullptr;
  find(library, name, get);
  return get();
}

Functions::Dtype dtype(void* library, const char* name, pagoda_dtype to) {
  const std::string getter = std::string("aoti_torch_dtype_") + name;
  return {constant(library, getter.c_str()), to.code, to.bits};
}

Functions find_functions() {
  void* const torch = loaded("libtorch_cpu.so");
  if (torch == nullptr) throw std::runtime_error("libtorch_cpu.so is not loaded");
  Functions f{};
#define PAGODA_FIND(name) find(torch, #name, f.name)
  PAGODA_FIND(aoti_torch_library_init_impl);
  PAGODA_FIND(torch_library_impl);
  PAGODA_FIND(aoti_torch_delete_tensor_object);
  PAGODA_FIND(aoti_torch_get_data_ptr);
  PAGODA_FIND(aoti_torch_get_dim);
  PAGODA_FIND(aoti_torch_get_sizes);
  PAGODA_FIND(aoti_torch_get_strides);
  PAGODA_FIND(aoti_torch_get_dtype);
  PAGODA_FIND(aoti_torch_get_device_type);
  PAGODA_FIND(aoti_torch_get_device_index);
  PAGODA_FIND(torch_list_size);
  PAGODA_FIND(torch_list_get_item);
  PAGODA_FIND(torch_delete_list);
  PAGODA_FIND(torch_string_length);
  PAGODA_FIND(torch_string_c_str);
  PAGODA_FIND(torch_delete_string);
#undef PAGODA_FIND
  find_optional(torch, "torch_delete_stable_ivalue", f.torch_delete_stable_ivalue);
  void* const cuda = loaded("libtorch_cuda.so");
  void* const rocm = loaded("libtorch_hip.so");
  f.has_rocm = cuda == nullptr && rocm != nullptr;
  find_optional(f.has_rocm ? rocm : cuda, "aoti_torch_get_current_cuda_stream",
                f.aoti_torch_get_current_cuda_stream);
  f.cpu = constant(torch, "aoti_torch_device_type_cpu");
  f.cuda = constant(torch, "aoti_torch_device_type_cuda");
  const Functions::Dtype dtypes[] = {
      dtype(torch, "bfloat16", PAGODA_BFLOAT16),
      dtype(torch, "float16", PAGODA_FLOAT16),
      dtype(torch, "float32", PAGODA_FLOAT32),
      dtype(torch, "int32", PAGODA_INT32),
      dtype(torch, "int64", PAGODA_INT64),
      dtype(torch, "float8_e4m3fn", PAGODA_FLOAT8_E4M3FN),
      dtype(torch, "uint32", PAGODA_UINT32),
      dtype(torch, "uint8", PAGODA_UINT8),
      dtype(torch, "bool", PAGODA_BOOL),
  };
  static_assert(sizeof(dtypes) == sizeof(f.dtypes));
  for (size_t i = 0; i < std::size(dtypes); ++i) f.dtypes[i] = dtypes[i];
  return f;
}

}  // namespace

const Functions& functions() {
  static const Functions found = find_functions();
  return found;
}

}  // namespace pagoda_python::torch_abi
