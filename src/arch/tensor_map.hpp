// What cuTensorMapEncodeTiled takes, its rules, and where a TMA load puts each element of its box.
// No driver call: the GPU encodes this value, the emulator reads it. CUDA driver API, "Tensor Map".
// The rules were compared with the driver of an H200, one broken at a time (2026-11-21); they agree
// except where a comment says stricter.
#pragma once

#include <cstdint>

#include "arch/swizzle.hpp"
#include "core/target.hpp"

namespace pagoda::arch {

// The values of the three enumerations are the driver's.
enum class TensorMapType : uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBF16,
  kF32Ftz,
  kTF32,
  kTF32Ftz
};
enum class L2Promotion : uint8_t { kNone, k64B, k128B, k256B };
enum class OobFill : uint8_t { kZero, kNan };

inline constexpr int32_t kMaxTensorRank = 5;

// Dimension 0 is contiguous. Coordinates and box indices have kMaxTensorRank entries, 0 past rank.
struct TensorMapSpec {
  TensorMapType type = TensorMapType::kBF16;
  int32_t rank = 1;
  uint64_t address = 0;                                        // of element 0 in global memory
  uint64_t dims[kMaxTensorRank] = {1, 1, 1, 1, 1};             // elements
  uint64_t strides_bytes[kMaxTensorRank - 1] = {};             // of dimensions 1 .. rank - 1
  uint32_t box[kMaxTensorRank] = {1, 1, 1, 1, 1};              // elements spanned
  uint32_t element_strides[kMaxTensorRank] = {1, 1, 1, 1, 1};  // every n-th one is loaded
  Swizzle swizzle = Swizzle::kNone;                            // k128BAtom32B: SM100 only
  L2Promotion l2_promotion = L2Promotion::kNone;
  OobFill oob_fill = OobFill::kZero;
};

PAGODA_HOST_DEVICE constexpr uint32_t element_bytes(TensorMapType type) {
  switch (type) {
    case TensorMapType::kU8: return 1;
    case TensorMapType::kU16:
    case TensorMapType::kF16:
    case TensorMapType::kBF16: return 2;
    case TensorMapType::kU64:
    case TensorMapType::kS64:
    case TensorMapType::kF64: return 8;
    default: return 4;
  }
}

PAGODA_HOST_DEVICE constexpr bool is_floating(TensorMapType type) {
  return type >= TensorMapType::kF16;
}

// Elements of the box that are loaded along a dimension.
PAGODA_HOST_DEVICE constexpr uint32_t box_extent(const TensorMapSpec& spec, int32_t dimension) {
  const uint32_t stride = spec.element_strides[dimension];
  return (spec.box[dimension] + stride - 1) / stride;
}

// What a load writes to shared memory, and what the barrier expects; out of bounds or not.
PAGODA_HOST_DEVICE constexpr uint32_t box_bytes(const TensorMapSpec& spec) {
  uint32_t bytes = element_bytes(spec.type);
  for (int32_t d = 0; d < spec.rank; ++d) bytes *= box_extent(spec, d);
  return bytes;
}

// The first broken rule: `field[dimension]` is `value`, but `rule` `limit`. No field: all is well.
struct TensorMapFault {
  const char* field = nullptr;
  int32_t dimension = -1;  // -1: the field has none
  uint64_t value = 0;
  const char* rule = "";
  uint64_t limit = 0;
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool exists() const { return field != nullptr; }
};

inline constexpr uint32_t kTensorMapAlignment = 16;   // bytes; of address, strides, inner box
inline constexpr uint32_t kMaxBoxBytes = 227 * 1024;  // shared memory of a CTA, SM90 and SM100
inline constexpr uint32_t kTensorDestinationAlignment = 128;  // bytes, in shared memory

namespace tensor_map_rules {

inline constexpr const char* kMultiple = "must be a multiple of";
inline constexpr const char* kAtLeast = "must be at least";
inline constexpr const char* kAtMost = "must be at most";

PAGODA_HOST_DEVICE constexpr TensorMapFault check_dimension(const TensorMapSpec& spec, int32_t d) {
  constexpr uint64_t kMaxDim = uint64_t{1} << 32, kMaxStride = (uint64_t{1} << 40) - 16;
  const uint64_t dim = spec.dims[d], box = spec.box[d], step = spec.element_strides[d];
  if (dim < 1) return {"dims", d, dim, kAtLeast, 1};
  if (dim > kMaxDim) return {"dims", d, dim, kAtMost, kMaxDim};
  if (box < 1) return {"box", d, box, kAtLeast, 1};
  if (box > 256) return {"box", d, box, kAtMost, 256};
  if (step < 1) return {"element_strides", d, step, kAtLeast, 1};
  // Dimension 0: the driver accepts more and the hardware ignores it.
  const uint64_t max_step = d == 0 ? 1 : 8;
  if (step > max_step) return {"element_strides", d, step, kAtMost, max_step};
  if (d == 0) return {};
  const uint64_t stride = spec.strides_bytes[d - 1];
  if (stride % kTensorMapAlignment != 0) {
    return {"strides_bytes", d - 1, stride, kMultiple, kTensorMapAlignment};
  }
  if (stride > kMaxStride) return {"strides_bytes", d - 1, stride, kAtMost, kMaxStride};
  return {};
}

PAGODA_HOST_DEVICE constexpr TensorMapFault check_box(const TensorMapSpec& spec) {
  const uint64_t inner = uint64_t{spec.box[0]} * element_bytes(spec.type);
  if (inner % kTensorMapAlignment != 0) {
    return {"inner box bytes", -1, inner, kMultiple, kTensorMapAlignment};
  }
  // Stricter: the driver lets a swizzled box be narrower than the pattern, but how far apart its
  // lines then lie is documented nowhere. A narrower box takes a narrower swizzle.
  const uint64_t width = swizzle_width_bytes(spec.swizzle);
  if (spec.swizzle != Swizzle::kNone && inner != width) {
    return {"inner box bytes", -1, inner, "must equal the swizzle width", width};
  }
  uint64_t bytes = element_bytes(spec.type);
  for (int32_t d = 0; d < spec.rank; ++d) bytes *= box_extent(spec, d);
  if (bytes > kMaxBoxBytes) return {"box bytes", -1, bytes, kAtMost, kMaxBoxBytes};
  return {};
}

}  // namespace tensor_map_rules

PAGODA_HOST_DEVICE constexpr TensorMapFault validate(const TensorMapSpec& spec) {
  using tensor_map_rules::check_box, tensor_map_rules::check_dimension;
  using tensor_map_rules::kAtLeast, tensor_map_rules::kAtMost, tensor_map_rules::kMultiple;
  const auto rank = static_cast<uint64_t>(spec.rank);
  if (spec.rank < 1) return {"rank", -1, rank, kAtLeast, 1};
  if (spec.rank > kMaxTensorRank) return {"rank", -1, rank, kAtMost, kMaxTensorRank};
  if (spec.address % kTensorMapAlignment != 0) {
    return {"address", -1, spec.address, kMultiple, kTensorMapAlignment};
  }
  for (int32_t d = 0; d < spec.rank; ++d) {
    if (const TensorMapFault fault = check_dimension(spec, d); fault.exists()) return fault;
  }
  if (spec.oob_fill == OobFill::kNan && !is_floating(spec.type)) {
    return {"oob_fill", -1, static_cast<uint64_t>(spec.oob_fill),
            "is NaN and needs a floating type, at least",
            static_cast<uint64_t>(TensorMapType::kF16)};
  }
  return check_box(spec);
}

struct BoxElement {
  bool is_inside = false;          // outside: nothing is read, the fill value is written
  uint64_t source_bytes = 0;       // from spec.address; inside only
  uint32_t destination_bytes = 0;  // from the box's shared-memory address
};

// Element `index` of the box loaded at `coordinates` to `shared_address`. The box is dense,
// dimension 0 first; the swizzle acts on bits of the absolute shared-memory address.
PAGODA_HOST_DEVICE constexpr BoxElement box_element(const TensorMapSpec& spec,
                                                    const int32_t (&coordinates)[kMaxTensorRank],
                                                    const uint32_t (&index)[kMaxTensorRank],
                                                    uint32_t shared_address) {
  BoxElement element{.is_inside = true};
  uint32_t dense = 0, pitch = element_bytes(spec.type);
  for (int32_t d = 0; d < spec.rank; ++d) {
    dense += index[d] * pitch;
    pitch *= box_extent(spec, d);
    const int64_t position =
        int64_t{coordinates[d]} + int64_t{index[d]} * int64_t{spec.element_strides[d]};
    if (position < 0 || static_cast<uint64_t>(position) >= spec.dims[d]) {
      element.is_inside = false;
      continue;
    }
    element.source_bytes += static_cast<uint64_t>(position) *
                            (d == 0 ? element_bytes(spec.type) : spec.strides_bytes[d - 1]);
  }
  if (!element.is_inside) element.source_bytes = 0;
  element.destination_bytes =
      swizzle_address(shared_address + dense, spec.swizzle) - shared_address;
  return element;
}

}  // namespace pagoda::arch
