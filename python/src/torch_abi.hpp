// The C functions of PyTorch's stable ABI (torch/csrc/stable/c/shim.h of PyTorch 2.10) that the
// operators need, found by name in the libraries that the process has loaded. They are declared
// here: building needs no PyTorch, and one binary serves every version from 2.10 on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagoda_python::torch_abi {

struct TensorObject;
struct ListObject;
struct StringObject;
struct LibraryObject;

// An argument of an operator: a number in the low bytes, a handle that the receiver owns, or, of an
// optional argument, null or a pointer to one of these, which the receiver frees.
using StableValue = uint64_t;
using Error = int32_t;  // 0 = success
using Kernel = void (*)(StableValue* arguments, uint64_t num_arguments, uint64_t num_results);

// The version whose rules of ownership the kernels follow.
inline constexpr uint64_t kAbiVersion = uint64_t{2} << 56 | uint64_t{10} << 48;

struct Functions {
  Error (*aoti_torch_library_init_impl)(const char* name_space, const char* key, const char* file,
                                        uint32_t line, LibraryObject** library);
  Error (*torch_library_impl)(LibraryObject* library, const char* name, Kernel kernel,
                              uint64_t version);
  Error (*aoti_torch_delete_tensor_object)(TensorObject* tensor);
  Error (*aoti_torch_get_data_ptr)(TensorObject* tensor, void** data);
  Error (*aoti_torch_get_dim)(TensorObject* tensor, int64_t* rank);
  Error (*aoti_torch_get_sizes)(TensorObject* tensor, int64_t** sizes);
  Error (*aoti_torch_get_strides)(TensorObject* tensor, int64_t** strides);
  Error (*aoti_torch_get_dtype)(TensorObject* tensor, int32_t* dtype);
  Error (*aoti_torch_get_device_type)(TensorObject* tensor, int32_t* type);
  Error (*aoti_torch_get_device_index)(TensorObject* tensor, int32_t* index);
  Error (*torch_list_size)(ListObject* list, size_t* size);
  Error (*torch_list_get_item)(ListObject* list, size_t index, StableValue* item);
  Error (*torch_delete_list)(ListObject* list);
  Error (*torch_string_length)(StringObject* text, size_t* length);
  Error (*torch_string_c_str)(StringObject* text, const char** data);
  Error (*torch_delete_string)(StringObject* text);
  // Null before PyTorch 2.13, where `delete` frees the values of optional arguments.
  Error (*torch_delete_stable_ivalue)(StableValue* value);
  // Of PyTorch's library for GPUs; null in a build without one.
  Error (*aoti_torch_get_current_cuda_stream)(int32_t device, void** stream);

  int32_t cpu, cuda;      // what aoti_torch_get_device_type() returns
  bool has_rocm = false;  // its "cuda" is ROCm
  struct Dtype {
    int32_t code;        // what aoti_torch_get_dtype() returns
    uint8_t kind, bits;  // of a pagoda_dtype
  };
  Dtype dtypes[9];
};

// Found at the first call. std::runtime_error names what is missing.
const Functions& functions();

}  // namespace pagoda_python::torch_abi
