// View: the memory of a Python array as a pagoda_tensor. No copies.
//
// In order of preference: the C functions of the array's framework, __dlpack__(), and NumPy's
// __array_interface__ for the types that NumPy does not export (bfloat16 and float8_e4m3fn of
// ml_dtypes). Arrays that NumPy does not export for another reason, such as their byte order, are
// refused.
#pragma once

#include <cstdint>
#include <nanobind/nanobind.h>
#include <vector>

#include "python/src/dlpack.hpp"

namespace pagoda_python {

namespace nb = nanobind;

enum class Access { kRead, kWrite };

// Where a call launches its GPU work, and in which order arrays must be ready.
struct StreamArgument {
  bool is_given = false;  // else: the current stream of the framework of the call's first array
  void* handle = nullptr;
};

// None, an integer, or an object with a stream handle in `cuda_stream` (PyTorch), `ptr` (CuPy) or
// `__cuda_stream__()`.
StreamArgument to_stream(nb::handle stream);

class View {
 public:
  View() = default;

  // Views `object`, an array. `name` is the argument's, for errors. The view holds a reference to
  // whatever keeps its memory, but not to `object` itself, which must outlive it.
  // InvalidArgument: no array, of an unknown type, read-only where it is written, one that requires
  // grad, or a view that negates what is in memory.
  void assign(const char* name, nb::handle object, Access access, const StreamArgument& stream);

  [[nodiscard]] const pagoda_tensor* tensor() const { return is_present_ ? &tensor_ : nullptr; }
  [[nodiscard]] bool is_on_gpu() const;
  // Whether `object`, the one that is viewed, has its memory where the view has it. That of PyTorch
  // may move: t.data = other frees what t had.
  [[nodiscard]] bool is_current(nb::handle object) const;

  // The stream on which the framework of the array works at present, null if that is unknown.
  [[nodiscard]] void* current_stream() const;

 private:
  bool assign_from_framework(const char* name, nb::handle object);
  bool assign_from_dlpack(const char* name, nb::handle object, Access access,
                          const StreamArgument& stream);
  bool assign_from_numpy(const char* name, nb::handle object, Access access);

  pagoda_tensor tensor_{};
  bool is_present_ = false;
  const dlpack::ExchangeApi* framework_ = nullptr;  // lives as long as the process
  nb::object owner_;                                // a capsule
  std::vector<int64_t> extents_;                    // shape and strides, where no producer has them
};

}  // namespace pagoda_python
