// The arguments of cuTensorMapEncodeTiled, its rules, and the shared-memory address to which a TMA
// load writes each element of its box. No driver call: make_tensor_map encodes this value for the
// GPU, the emulator reads it. CUDA driver API, "Tensor Map Object Management"; PTX ISA, "Tensors".
// Verified on an H200 (2026-11-21): the driver rejects the same invalid maps, one rule at a time,
// except where a comment says stricter; 5400 loads of random boxes of rank 3, 600 of them partly
// out of bounds, wrote the same bytes.
#pragma once

#include <cstdint>

#include "arch/layout/swizzle.hpp"
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
  uint32_t element_strides[kMaxTensorRank] = {1, 1, 1, 1, 1};  // every n-th element is loaded
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

// Elements that a load moves along a dimension.
PAGODA_HOST_DEVICE constexpr uint32_t box_extent(const TensorMapSpec& spec, int32_t dimension) {
  const uint32_t stride = spec.element_strides[dimension];
  return (spec.box[dimension] + stride - 1) / stride;
}

// Bytes that a load completes on its mbarrier, out-of-bounds elements included.
PAGODA_HOST_DEVICE constexpr uint32_t box_bytes(const TensorMapSpec& spec) {
  uint32_t bytes = element_bytes(spec.type);
  for (int32_t d = 0; d < spec.rank; ++d) bytes *= box_extent(spec, d);
  return bytes;
}

// Pitch of the lines of the box (dimension 0) in shared memory: with a swizzle, its whole width.
PAGODA_HOST_DEVICE constexpr uint32_t box_line_bytes(const TensorMapSpec& spec) {
  return spec.swizzle == Swizzle::kNone ? box_extent(spec, 0) * element_bytes(spec.type)
                                        : swizzle_width_bytes(spec.swizzle);
}

// Shared memory of the box: more than box_bytes() where lines have gaps.
PAGODA_HOST_DEVICE constexpr uint64_t box_footprint_bytes(const TensorMapSpec& spec) {
  uint64_t bytes = box_line_bytes(spec);
  for (int32_t d = 1; d < spec.rank; ++d) bytes *= box_extent(spec, d);
  return bytes;
}

// The first violated rule: `field[dimension]` is `value`, but `rule` `limit`. No field: valid.
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
  const uint64_t width = swizzle_width_bytes(spec.swizzle);
  if (spec.swizzle != Swizzle::kNone && inner > width) {
    return {"inner box bytes", -1, inner, "with this swizzle, must be at most", width};
  }
  const uint64_t bytes = box_footprint_bytes(spec);
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

// Validates one load through a valid map. An H200 raises "illegal instruction" where coordinate 0
// is not a multiple of 16 bytes; other coordinates are free, also out of bounds.
PAGODA_HOST_DEVICE constexpr TensorMapFault validate_load(
    const TensorMapSpec& spec, const int32_t (&coordinates)[kMaxTensorRank],
    uint32_t shared_address) {
  using tensor_map_rules::kMultiple;
  const auto step = static_cast<int32_t>(kTensorMapAlignment / element_bytes(spec.type));
  if (coordinates[0] % step != 0) {
    return {"coordinates", 0, static_cast<uint64_t>(coordinates[0]), kMultiple,
            static_cast<uint64_t>(step)};
  }
  if (shared_address % kTensorDestinationAlignment != 0) {
    return {"shared_address", -1, shared_address, kMultiple, kTensorDestinationAlignment};
  }
  return {};
}

// Validates one store or reduction. Its coordinates must not be negative in any dimension, unlike a
// load's: an H200 raises "illegal instruction" (2026-11-21).
PAGODA_HOST_DEVICE constexpr TensorMapFault validate_store(
    const TensorMapSpec& spec, const int32_t (&coordinates)[kMaxTensorRank],
    uint32_t shared_address) {
  for (int32_t d = 0; d < spec.rank; ++d) {
    if (coordinates[d] < 0) {
      return {"coordinates", d, static_cast<uint64_t>(coordinates[d]),
              "of a store must be at least", 0};
    }
  }
  return validate_load(spec, coordinates, shared_address);
}

// Bytes of a line of dimension 0 that a store writes, from coordinate `first` on: up to the end of
// the tensor, rounded up to 16 bytes (measured on an H200, 2026-11-21). Where the inner dimension
// is no multiple of 16 bytes, a box that crosses its end writes into the gap behind it.
PAGODA_HOST_DEVICE constexpr uint32_t stored_line_bytes(const TensorMapSpec& spec, int32_t first) {
  const uint64_t size = element_bytes(spec.type);
  if (static_cast<uint64_t>(first) >= spec.dims[0]) return 0;
  const uint64_t rest = (spec.dims[0] - static_cast<uint64_t>(first)) * size;
  const uint64_t whole =
      (rest + kTensorMapAlignment - 1) / kTensorMapAlignment * kTensorMapAlignment;
  const uint64_t box = uint64_t{box_extent(spec, 0)} * size;
  return static_cast<uint32_t>(whole < box ? whole : box);
}

struct BoxElement {
  bool is_inside = false;          // else nothing is read and the fill value is written
  uint64_t source_bytes = 0;       // from spec.address; inside only
  uint32_t destination_bytes = 0;  // from the box's shared-memory address
};

// Source and destination of element `index` of the box at `coordinates`, loaded to
// `shared_address`. Lines follow each other in the order of the dimensions; the swizzle acts on
// bits of the absolute shared-memory address.
PAGODA_HOST_DEVICE constexpr BoxElement box_element(const TensorMapSpec& spec,
                                                    const int32_t (&coordinates)[kMaxTensorRank],
                                                    const uint32_t (&index)[kMaxTensorRank],
                                                    uint32_t shared_address) {
  BoxElement element{.is_inside = true};
  uint32_t unswizzled = 0, pitch = element_bytes(spec.type);
  for (int32_t d = 0; d < spec.rank; ++d) {
    unswizzled += index[d] * pitch;
    pitch = d == 0 ? box_line_bytes(spec) : pitch * box_extent(spec, d);
    const int64_t position =
        int64_t{coordinates[d]} + int64_t{index[d]} * int64_t{spec.element_strides[d]};
    if (static_cast<uint64_t>(position) >= spec.dims[d]) {  // a negative one is huge
      element.is_inside = false;
      continue;
    }
    element.source_bytes += static_cast<uint64_t>(position) *
                            (d == 0 ? element_bytes(spec.type) : spec.strides_bytes[d - 1]);
  }
  if (!element.is_inside) element.source_bytes = 0;
  element.destination_bytes =
      swizzle_address(shared_address + unswizzled, spec.swizzle) - shared_address;
  return element;
}

}  // namespace pagoda::arch
