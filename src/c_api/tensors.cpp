// Checks what a C view can get wrong before it is a C++ view: device, rank, shape pointer, type.
// The engine checks the rest.
#include "c_api/tensors.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "engine/check.hpp"

namespace pagoda::c_api {
namespace {

using engine::complain;

bool is_type(pagoda_dtype type, uint8_t code, uint8_t bits) {
  return type.code == code && type.bits == bits && type.lanes == 1;
}

bool is_type(pagoda_dtype type, pagoda_dtype other) {
  return is_type(type, other.code, other.bits);
}

std::string describe(pagoda_dtype type) {
  if (is_type(type, PAGODA_FLOAT8_E4M3FN)) return "float8_e4m3fn";
  static constexpr const char* kNames[] = {"int",    "uint",    "float", "handle",
                                           "bfloat", "complex", "bool"};
  const std::string bits = std::to_string(type.bits);
  std::string text = type.code < std::size(kNames)
                         ? kNames[type.code] + bits
                         : "code " + std::to_string(type.code) + " with " + bits + " bits";
  if (type.lanes != 1) text += " x " + std::to_string(type.lanes);
  return text;
}

Status to_device(std::string_view name, pagoda_device from, Device& to) {
  switch (from.device_type) {
    case 0:
    case PAGODA_CPU:
    case PAGODA_CUDA_HOST:
    case PAGODA_ROCM_HOST: to = {}; return {};
    case PAGODA_CUDA:
    case PAGODA_CUDA_MANAGED: to = {DeviceType::kCuda, from.device_id}; return {};
    case PAGODA_ROCM: to = {DeviceType::kHip, from.device_id}; return {};
    default:
      return complain(std::string(name) + ".device.device_type", int64_t{from.device_type},
                      "must be 0 or one of PAGODA_CPU, PAGODA_CUDA, PAGODA_CUDA_HOST, "
                      "PAGODA_CUDA_MANAGED, PAGODA_ROCM, PAGODA_ROCM_HOST");
  }
}

const char* limit_of(ElementTypes allowed) {
  switch (allowed) {
    case ElementTypes::kFloat32: return "must be float32";
    case ElementTypes::kNotFp8: return "must be float32, float16 or bfloat16, with one lane";
    case ElementTypes::kAll: break;
  }
  return "must be float32, float16, bfloat16 or float8_e4m3fn, with one lane";
}

Status to_dtype(std::string_view name, pagoda_dtype from, ElementTypes allowed, DType& to) {
  // The allowed ones are the first.
  static constexpr std::pair<pagoda_dtype, DType> kTypes[] = {
      {PAGODA_FLOAT32, DType::kF32},
      {PAGODA_FLOAT16, DType::kF16},
      {PAGODA_BFLOAT16, DType::kBF16},
      {PAGODA_FLOAT8_E4M3FN, DType::kF8E4M3}};
  for (const auto& [type, dtype] : std::span(kTypes).first(static_cast<size_t>(allowed))) {
    if (!is_type(from, type)) continue;
    to = dtype;
    return {};
  }
  return complain(std::string(name) + ".dtype", describe(from), limit_of(allowed));
}

// Everything but the element type.
Status to_view(std::string_view name, const pagoda_tensor& from, Tensor& to) {
  if (Status s = to_device(name, from.device, to.device); !s) return s;
  if (from.ndim < 1 || from.ndim > kMaxRank) {
    return complain(std::string(name) + ".ndim", int64_t{from.ndim}, "must be in [1, 5]");
  }
  if (from.shape == nullptr)
    return complain(std::string(name) + ".shape", "null", "must not be null");
  to.rank = from.ndim;
  int64_t compact = 1;
  for (int32_t d = from.ndim - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    to.shape[i] = from.shape[i];
    to.strides[i] = from.strides == nullptr ? compact : from.strides[i];
    // Unsigned: validation has not seen the shape yet.
    compact =
        static_cast<int64_t>(static_cast<uint64_t>(compact) * static_cast<uint64_t>(from.shape[i]));
  }
  uintptr_t address = 0;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(from.data), from.byte_offset, &address)) {
    return Status::invalid(std::string(name) + ".byte_offset", std::to_string(from.byte_offset),
                           "the tensor must lie inside the address space");
  }
  to.data = from.data == nullptr ? nullptr : reinterpret_cast<void*>(address);
  return {};
}

template <typename T>
constexpr pagoda_dtype kElement = std::is_same_v<T, float>      ? PAGODA_FLOAT32
                                  : std::is_same_v<T, int64_t>  ? PAGODA_INT64
                                  : std::is_same_v<T, uint32_t> ? PAGODA_UINT32
                                  : std::is_same_v<T, uint8_t>  ? PAGODA_UINT8
                                                                : PAGODA_INT32;

// The elements of lengths, offsets and scales.
template <typename T>
Status check_elements(std::string_view name, const pagoda_tensor& from, const Tensor& view,
                      int32_t rank) {
  const bool is_bool = std::is_same_v<T, uint8_t> && is_type(from.dtype, PAGODA_BOOL);
  if (!is_type(from.dtype, kElement<T>) && !is_bool) {
    return complain(std::string(name) + ".dtype", describe(from.dtype),
                    "must be " + describe(kElement<T>));
  }
  if (view.rank != rank) {
    return complain(std::string(name) + ".ndim", int64_t{view.rank},
                    "must be " + std::to_string(rank));
  }
  const auto last = static_cast<size_t>(rank - 1);
  if (view.shape[last] > 1 && view.strides[last] != 1) {
    return complain(engine::element_name(std::string(name) + ".strides", rank - 1),
                    view.strides[last], "must be 1 (contiguous)");
  }
  return {};
}

}  // namespace

Status to_tensor(std::string_view name, const pagoda_tensor* from, Tensor& to,
                 ElementTypes allowed) {
  to = {};
  if (from == nullptr) return {};
  if (Status s = to_view(name, *from, to); !s) return s;
  return to_dtype(name, from->dtype, allowed, to.dtype);
}

Status to_tensor(std::string_view name, const pagoda_tensor* from, ConstTensor& to,
                 ElementTypes allowed) {
  Tensor view;
  if (Status s = to_tensor(name, from, view, allowed); !s) return s;
  to = view;
  return {};
}

template <typename T>
Status to_array(std::string_view name, const pagoda_tensor* from, ArrayView<T>& to, int64_t least) {
  to = {};
  if (from == nullptr) return {};
  Tensor view;
  if (Status s = to_view(name, *from, view); !s) return s;
  if (Status s = check_elements<T>(name, *from, view, 1); !s) return s;
  if (view.shape[0] < least) {
    return complain(std::string(name) + ".shape[0]", view.shape[0],
                    "must be at least " + std::to_string(least));
  }
  to = {static_cast<const T*>(view.data), view.shape[0], view.device};
  return {};
}

template Status to_array(std::string_view, const pagoda_tensor*, ArrayView<int32_t>&, int64_t);
template Status to_array(std::string_view, const pagoda_tensor*, ArrayView<int64_t>&, int64_t);
template Status to_array(std::string_view, const pagoda_tensor*, ArrayView<uint32_t>&, int64_t);
template Status to_array(std::string_view, const pagoda_tensor*, ArrayView<uint8_t>&, int64_t);
template Status to_array(std::string_view, const pagoda_tensor*, ArrayView<float>&, int64_t);

Status to_matrix(std::string_view name, const pagoda_tensor& from, MatrixView<int32_t>& to) {
  Tensor view;
  if (Status s = to_view(name, from, view); !s) return s;
  if (Status s = check_elements<int32_t>(name, from, view, 2); !s) return s;
  to = {static_cast<const int32_t*>(view.data), view.shape[0], view.shape[1], view.strides[0],
        view.device};
  return {};
}

}  // namespace pagoda::c_api
