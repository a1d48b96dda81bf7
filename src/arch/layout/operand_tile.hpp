// A dense operand tile in shared memory, made of swizzle atoms, and the matrix descriptor for it.
// An atom is 8 lines (4 for 32-byte atoms) as wide as the swizzle. PTX ISA, "Shared Memory Matrix
// Layout", "Strides".
#pragma once

#include <cstdint>

#include "arch/layout/smem_descriptor.hpp"
#include "arch/layout/swizzle.hpp"
#include "core/target.hpp"

namespace pagoda::arch {

// The direction in which the next atom in memory lies.
enum class AtomOrder : uint8_t { kMnFirst, kKFirst };

// The order that TMA stores atoms in, with one box a panel (all lines, one swizzle width).
PAGODA_HOST_DEVICE constexpr AtomOrder panel_order(Major major) {
  return major == Major::kK ? AtomOrder::kMnFirst : AtomOrder::kKFirst;
}

struct OperandTile {
  uint32_t start_bytes = 0;  // a multiple of the swizzle's repeat
  int32_t mn = 0, k = 0;     // elements; multiples of the atom's
  int32_t element_bytes = 2;
  Major major = Major::kK;
  Swizzle swizzle = Swizzle::k128B;
  AtomOrder order = AtomOrder::kMnFirst;
};

struct AtomShape {
  uint32_t mn, k;                            // elements
  uint32_t mn_stride_bytes, k_stride_bytes;  // to the next atom
};

PAGODA_HOST_DEVICE constexpr AtomShape atom_shape(const OperandTile& tile) {
  const uint32_t width = swizzle_width_bytes(tile.swizzle);
  const uint32_t elements = width / static_cast<uint32_t>(tile.element_bytes);
  const uint32_t lines = tile.swizzle == Swizzle::k128BAtom32B ? 4 : 8;
  const uint32_t mn = tile.major == Major::kK ? lines : elements;
  const uint32_t k = tile.major == Major::kK ? elements : lines;
  const uint32_t bytes = lines * width;
  if (tile.order == AtomOrder::kMnFirst) {
    return {mn, k, bytes, static_cast<uint32_t>(tile.mn) / mn * bytes};
  }
  return {mn, k, static_cast<uint32_t>(tile.k) / k * bytes, bytes};
}

// Bytes from the tile's start to element (mn, k), before the swizzle: the advance of the descriptor
// of an instruction that starts there.
PAGODA_HOST_DEVICE constexpr uint32_t tile_offset(const OperandTile& tile, int32_t mn, int32_t k) {
  const AtomShape atom = atom_shape(tile);
  const uint32_t width = swizzle_width_bytes(tile.swizzle);
  const auto bytes = static_cast<uint32_t>(tile.element_bytes);
  const auto m = static_cast<uint32_t>(mn), kk = static_cast<uint32_t>(k);
  const uint32_t atoms = m / atom.mn * atom.mn_stride_bytes + kk / atom.k * atom.k_stride_bytes;
  return atoms + (tile.major == Major::kK ? m % atom.mn * width + kk % atom.k * bytes
                                          : kk % atom.k * width + m % atom.mn * bytes);
}

// The descriptor of the tile's first instruction; `advance` by `tile_offset` makes the others.
PAGODA_HOST_DEVICE constexpr SmemDescriptorFields describe(const OperandTile& tile) {
  const AtomShape atom = atom_shape(tile);
  SmemDescriptorFields fields{.start_bytes = tile.start_bytes, .swizzle = tile.swizzle};
  const bool is_swizzled = tile.swizzle != Swizzle::kNone;
  if (tile.major == Major::kK) {
    fields.leading_bytes = is_swizzled ? 16 : atom.k_stride_bytes;
    fields.stride_bytes = atom.mn_stride_bytes;
  } else {
    fields.leading_bytes = is_swizzled ? atom.mn_stride_bytes : atom.k_stride_bytes;
    fields.stride_bytes = is_swizzled ? atom.k_stride_bytes : atom.mn_stride_bytes;
  }
  return fields;
}

}  // namespace pagoda::arch
