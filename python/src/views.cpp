// How each kind of producer hands its memory over.
#include "python/src/views.hpp"

#include <algorithm>
#include <iterator>
#include <nanobind/stl/string.h>
#include <string>
#include <string_view>
#include <utility>

#include "python/src/errors.hpp"

namespace pagoda_python {
namespace {

using namespace nb::literals;

std::string name_of_type(nb::handle object) {
  return nb::cast<std::string>(
      nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__"));
}

// The C functions of the framework of `type`, or null. The types seen last are kept, with their
// reference: a call has arrays of one or two.
const dlpack::ExchangeApi* exchange_api(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type = nullptr;
    const dlpack::ExchangeApi* api = nullptr;
  };
  static Known known[8];
  static size_t next = 0;
  for (const Known& k : known) {
    if (k.type == type) return k.api;
  }
  const dlpack::ExchangeApi* api = nullptr;
  const nb::handle handle(reinterpret_cast<PyObject*>(type));
  const nb::object capsule = nb::getattr(handle, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") != 0) {
    const auto* found = static_cast<const dlpack::ExchangeApi*>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (found->version.major == 1 && found->to_view != nullptr) api = found;
  }
  Known& slot = known[next++ % std::size(known)];
  handle.inc_ref();
  nb::handle(reinterpret_cast<PyObject*>(slot.type)).dec_ref();
  slot = {type, api};
  return api;
}

bool is_gpu(int32_t device_type) {
  return device_type == PAGODA_CUDA || device_type == PAGODA_CUDA_MANAGED ||
         device_type == PAGODA_ROCM;
}

// DLPack's argument `stream`, which has 1 for CUDA's default stream.
nb::object dlpack_stream(int32_t device_type, const StreamArgument& stream) {
  if (!is_gpu(device_type)) return nb::none();
  if (stream.handle != nullptr) return nb::int_(reinterpret_cast<uintptr_t>(stream.handle));
  return nb::int_(device_type == PAGODA_ROCM ? 0 : 1);
}

// The types of NumPy and ml_dtypes by name.
bool to_dtype(std::string_view name, pagoda_dtype& to) {
  static constexpr std::pair<std::string_view, pagoda_dtype> kTypes[] = {
      {"float32", PAGODA_FLOAT32},   {"float16", PAGODA_FLOAT16},
      {"bfloat16", PAGODA_BFLOAT16}, {"float8_e4m3fn", PAGODA_FLOAT8_E4M3FN},
      {"int32", PAGODA_INT32},       {"int64", PAGODA_INT64},
      {"uint32", PAGODA_UINT32},     {"uint8", PAGODA_UINT8},
      {"bool", PAGODA_BOOL}};
  for (const auto& [known, dtype] : kTypes) {
    if (known != name) continue;
    to = dtype;
    return true;
  }
  return false;
}

// PyTorch's lazy negation, a flag beside the memory: z.conj().imag.
bool is_negated(nb::handle object, const pagoda_tensor& tensor) {
  constexpr pagoda_dtype kFloats[] = {PAGODA_FLOAT32, PAGODA_BFLOAT16};
  const bool is_float = std::any_of(std::begin(kFloats), std::end(kFloats), [&](pagoda_dtype type) {
    return type.code == tensor.dtype.code;
  });
  if (!is_float) return false;
  const nb::object method = nb::getattr(object, "is_neg", nb::none());
  return !method.is_none() && nb::cast<bool>(method());
}

// The message of the Python exception that has just been caught, in one line.
std::string one_line(nb::python_error& error) {
  std::string text = nb::cast<std::string>(nb::str(error.value()));
  return text.substr(0, text.find('\n'));
}

nb::object export_dlpack(nb::handle object, const StreamArgument& stream) {
  const nb::object device = object.attr("__dlpack_device__")();
  const nb::object on = dlpack_stream(nb::cast<int32_t>(nb::int_(device[0])), stream);
  try {
    return object.attr("__dlpack__")("stream"_a = on, "max_version"_a = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return object.attr("__dlpack__")("stream"_a = on);  // a producer of DLPack before 1.0
}

}  // namespace

StreamArgument to_stream(nb::handle stream) {
  if (stream.is_none()) return {};
  nb::object number = nb::borrow(stream);
  if (nb::hasattr(stream, "cuda_stream")) {
    number = stream.attr("cuda_stream");
  } else if (nb::hasattr(stream, "__cuda_stream__")) {
    number = stream.attr("__cuda_stream__")()[1];
  } else if (nb::hasattr(stream, "ptr")) {
    number = stream.attr("ptr");
  }
  uintptr_t handle = 0;
  if (!nb::try_cast(number, handle)) {
    raise_invalid("stream", "a " + name_of_type(stream),
                  "must be None, the integer value of a stream, or a stream of PyTorch or CuPy");
  }
  return {.is_given = true, .handle = reinterpret_cast<void*>(handle)};
}

void View::assign(const char* name, nb::handle object, Access access,
                  const StreamArgument& stream) {
  *this = {};
  if (object.is_none()) return;
  is_present_ = assign_from_framework(name, object) ||
                assign_from_dlpack(name, object, access, stream) ||
                assign_from_numpy(name, object, access);
  if (!is_present_) {
    raise_invalid(name, "a " + name_of_type(object),
                  "must be an array with __dlpack__(): NumPy, PyTorch, CuPy, JAX, ...");
  }
}

bool View::is_on_gpu() const { return is_present_ && is_gpu(tensor_.device.device_type); }

void* View::current_stream() const {
  void* stream = nullptr;
  if (framework_ != nullptr && framework_->current_stream != nullptr && is_on_gpu() &&
      framework_->current_stream(tensor_.device.device_type, tensor_.device.device_id, &stream) !=
          0) {
    throw nb::python_error();
  }
  return stream;
}

bool View::is_current(nb::handle object) const {
  if (framework_ == nullptr) return true;  // a capsule keeps the memory
  pagoda_tensor now;
  if (framework_->to_view(object.ptr(), &now) != 0) throw nb::python_error();
  return now.data == tensor_.data && now.byte_offset == tensor_.byte_offset;
}

bool View::assign_from_framework(const char* name, nb::handle object) {
  const dlpack::ExchangeApi* api = exchange_api(Py_TYPE(object.ptr()));
  if (api == nullptr) return false;
  if (api->to_view(object.ptr(), &tensor_) != 0) throw nb::python_error();
  framework_ = api;
  const nb::object requires_grad = nb::getattr(object, "requires_grad", nb::none());
  if (requires_grad.ptr() == Py_True &&
      nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")())) {
    raise_invalid(name, "a tensor that requires grad",
                  "attention is forward only: call it under torch.no_grad() or detach the tensor");
  }
  if (is_negated(object, tensor_)) {
    raise_invalid(name, "a negated view", "must be in memory as it is: pass its resolve_neg()");
  }
  return true;
}

bool View::assign_from_dlpack(const char* name, nb::handle object, Access access,
                              const StreamArgument& stream) {
  if (!nb::hasattr(object, "__dlpack__")) return false;
  try {
    owner_ = export_dlpack(object, stream);
  } catch (nb::python_error& error) {
    // NumPy: a BufferError for the types of ml_dtypes. PyTorch: for tensors that require grad.
    if (nb::hasattr(object, "__array_interface__")) return false;
    if (!error.matches(PyExc_BufferError)) throw;
    raise_invalid(name, "not exported (" + one_line(error) + ")", "must be exported by DLPack");
  }
  if (PyCapsule_IsValid(owner_.ptr(), "dltensor_versioned") != 0) {
    const auto* managed = static_cast<const dlpack::ManagedTensorVersioned*>(
        PyCapsule_GetPointer(owner_.ptr(), "dltensor_versioned"));
    if (managed->version.major != 1) {
      raise_invalid(name, "of DLPack " + std::to_string(managed->version.major), "must be of 1.x");
    }
    if (access == Access::kWrite && (managed->flags & dlpack::kReadOnly) != 0) {
      raise_invalid(name, "read-only", "must be writable");
    }
    tensor_ = managed->tensor;
  } else {
    const auto* managed =
        static_cast<const dlpack::ManagedTensor*>(PyCapsule_GetPointer(owner_.ptr(), "dltensor"));
    if (managed == nullptr) throw nb::python_error();
    tensor_ = managed->tensor;
  }
  return true;
}

bool View::assign_from_numpy(const char* name, nb::handle object, Access access) {
  if (!nb::hasattr(object, "__array_interface__")) return false;
  const auto type = nb::cast<std::string>(nb::str(object.attr("dtype").attr("name")));
  if (!to_dtype(type, tensor_.dtype)) {
    raise_invalid(std::string(name) + ".dtype", type, "must be a type that Pagoda knows");
  }
  if (const nb::object dtype = object.attr("dtype"); !nb::cast<bool>(dtype.attr("isnative"))) {
    raise_invalid(std::string(name) + ".dtype", nb::cast<std::string>(nb::str(dtype)),
                  "must have the byte order of this machine");
  }
  const nb::object interface = object.attr("__array_interface__");
  const nb::object data = interface["data"];
  if (access == Access::kWrite && nb::cast<bool>(data[1])) {
    raise_invalid(name, "read-only", "must be writable");
  }
  const nb::object shape = object.attr("shape");
  const nb::object strides = object.attr("strides");
  const auto rank = nb::len(shape);
  const int64_t size = tensor_.dtype.bits / 8;
  extents_.resize(2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    const auto bytes = nb::cast<int64_t>(strides[i]);
    extents_[i] = nb::cast<int64_t>(shape[i]);
    extents_[rank + i] = bytes / size;
    if (bytes % size == 0 || extents_[i] <= 1) continue;  // the stride of one element is not used
    raise_invalid(std::string(name) + ".strides[" + std::to_string(i) + "]",
                  std::to_string(bytes) + " bytes",
                  "must be a multiple of the element size, " + std::to_string(size));
  }
  tensor_.data = reinterpret_cast<void*>(nb::cast<uintptr_t>(data[0]));
  tensor_.device = {PAGODA_CPU, 0};
  tensor_.ndim = static_cast<int32_t>(rank);
  tensor_.shape = extents_.data();
  tensor_.strides = extents_.data() + rank;
  return true;
}

}  // namespace pagoda_python
