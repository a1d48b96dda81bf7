// The structs of DLPack 1.x that the binding reads. A pagoda_tensor has the layout of DLTensor.
#pragma once

#include <cstdint>

#include "pagoda/pagoda.h"

namespace pagoda_python::dlpack {

struct Version {
  uint32_t major, minor;
};

// In a capsule named "dltensor": DLPack before 1.0.
struct ManagedTensor {
  pagoda_tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor*);
};

inline constexpr uint64_t kReadOnly = 1;  // a flag of ManagedTensorVersioned

// In a capsule named "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* manager;
  void (*deleter)(ManagedTensorVersioned*);
  uint64_t flags;
  pagoda_tensor tensor;
};

// In a capsule named "dlpack_exchange_api", the attribute __dlpack_c_exchange_api__ of a type: the
// C functions of a framework (PyTorch since 2.10), which cost nanoseconds where __dlpack__() costs
// microseconds. They return 0, or -1 with a Python exception set.
struct ExchangeApi {
  Version version;
  const void* previous;
  int (*allocate)(const pagoda_tensor* prototype, ManagedTensorVersioned** out, void* error_context,
                  void (*set_error)(void*, const char*, const char*));
  int (*to_managed)(void* object, ManagedTensorVersioned** out);
  int (*from_managed)(ManagedTensorVersioned* tensor, void** out_object);
  // A view that owns nothing: it lives as long as `object`. May be null.
  int (*to_view)(void* object, pagoda_tensor* out);
  int (*current_stream)(int32_t device_type, int32_t device_id, void** out);
};

}  // namespace pagoda_python::dlpack
