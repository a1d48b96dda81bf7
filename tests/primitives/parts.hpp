// The parts that kernels are made of, as kernels: the pipelines (testing/material/kv_relay.hpp) and
// PagedRowIndices (testing/material/copy_tile.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "target.hpp"
#include "testing/demo/tile_product.hpp"
#include "testing/material/copy_tile.hpp"
#include "testing/material/kv_relay.hpp"

namespace pagoda::primitives {

// --- pipelines --------------------------------------------------------------------------------

struct SharedRing {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 64, .num_kv_stages = 3};
};
struct SplitRings {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 128, .num_kv_stages = 2, .num_qk_stages = 2};
};
struct NarrowSplitRings {
  static constexpr pipeline::KVTiling kv{.BN = 16,
                                         .BK0 = 32,
                                         .BK1 = 16,
                                         .padded_depth = 128,
                                         .num_kv_stages = 3,
                                         .num_qk_stages = 4,
                                         .swizzle = arch::Swizzle::k64B};
};

// Adds what each consumer reads of one part of a tile: columns [first, first + width) of BN rows,
// in panels as wide as the swizzle, the 16 bytes of word w by consumer w % kConsumers.
inline void add_part_sums(const pipeline::KVTiling& tiling, const uint16_t* tile, int first,
                          int width, uint32_t* sums) {
  const int panel = tiling.swizzle_elements(2);
  for (int row = 0; row < tiling.BN; ++row) {
    for (int column = 0; column < width; ++column) {
      const auto dense =
          static_cast<uint32_t>((column / panel * tiling.BN + row) * panel + column % panel) * 2;
      const uint32_t word = swizzle_address(dense, tiling.swizzle) / 16;
      sums[word % kv_relay::kConsumers] += tile[row * tiling.padded_depth + first + column];
    }
  }
}

template <class Kernel>
void add_relay_case(Cases& cases, const std::string& name, int num_tiles) {
  constexpr pipeline::KVTiling tiling = Kernel::tiling;
  const int rows = num_tiles * tiling.BN;
  const auto tensor = static_cast<size_t>(rows * tiling.padded_depth);
  Bytes input = random_bytes(2 * tensor * 2, 77);  // K, then V
  const std::vector<uint16_t> elements = from_bytes<uint16_t>(input);
  std::vector<uint32_t> sums(static_cast<size_t>(2 * num_tiles * kv_relay::kConsumers), 0);
  for (int tile = 0; tile < num_tiles; ++tile) {
    const uint16_t* const k = elements.data() + tile * tiling.BN * tiling.padded_depth;
    uint32_t* const k_sums = sums.data() + 2 * tile * kv_relay::kConsumers;
    for (int part = 0; part < tiling.num_qk_stages; ++part) {
      add_part_sums(tiling, k, part * tiling.BK0, tiling.BK0, k_sums);
    }
    add_part_sums(tiling, k + tensor, 0, tiling.padded_depth, k_sums + kv_relay::kConsumers);
  }
  cases.push_back(make_case<Kernel>(
      "pipeline/" + name, {1}, std::move(input), poison(sums.size() * 4), to_bytes(sums),
      [num_tiles, rows, tensor](const Buffers& buffers) {
        constexpr pipeline::KVTiling shape = Kernel::tiling;
        const auto map = [&](size_t first) {
          const auto depth = static_cast<uint64_t>(shape.padded_depth);
          return tensor_map({.rank = 2,
                             .address = reinterpret_cast<uint64_t>(buffers.in) + first * 2,
                             .dims = {depth, static_cast<uint64_t>(rows)},
                             .strides_bytes = {depth * 2},
                             .box = {static_cast<uint32_t>(shape.swizzle_elements(2)),
                                     static_cast<uint32_t>(shape.BN)},
                             .swizzle = shape.swizzle});
        };
        return KVRelayParams{map(0), map(tensor), reinterpret_cast<uint32_t*>(buffers.out),
                             num_tiles};
      }));
}

// --- PagedRowIndices --------------------------------------------------------------------------

// One tile that starts at key BN of a sequence whose last `missing` keys of the tile do not exist.
template <class Indices, arch::Swizzle swizzle>
void add_copy_tile_case(Cases& cases, int page_size, int missing) {
  using Kernel = sweep::CopyTile<Indices, swizzle>;
  constexpr int BN = Indices::BN, BK = Kernel::BK, gran = Kernel::gran, columns = 3 * gran;
  const int num_keys = 2 * BN - missing;
  // Odd pages, backwards; all other bytes are NaN.
  const int pages = page_size == 0 ? 0 : (2 * BN + page_size - 1) / page_size;
  const int rows = page_size == 0 ? 4 * BN : 2 * pages * page_size;
  const auto cache_elements = static_cast<size_t>(rows * sweep::kHeads * columns);
  std::vector<uint16_t> cache(cache_elements, 0x7fff);
  std::vector<int32_t> table(static_cast<size_t>(pages), 0);
  for (int i = 0; i < pages; ++i) table.push_back(2 * (pages - 1 - i) + 1);
  const auto at = [&](int key, int column) -> uint16_t& {
    const int row =
        page_size == 0
            ? 2 * BN + key
            : table[static_cast<size_t>(pages + key / page_size)] * page_size + key % page_size;
    return cache[static_cast<size_t>((row * sweep::kHeads + sweep::kHead) * columns + column)];
  };
  for (int key = 0; key < 2 * BN; ++key) {
    for (int c = 0; c < columns; ++c)
      at(key, c) = static_cast<uint16_t>((key * 131 + c * 7) & 0x3fff);
  }
  Bytes input = to_bytes(cache);
  for (const Bytes& more : {to_bytes(table), to_bytes(std::vector<int32_t>{1, num_keys})}) {
    input.insert(input.end(), more.begin(), more.end());
  }
  std::vector<uint16_t> out(static_cast<size_t>(sweep::kSections * BN * BK), 0xA5A5);
  const auto expect = [&](sweep::Section section, int first_row, int tile_rows, int box_rows,
                          bool zero) {
    for (int r = 0; r < tile_rows; ++r) {
      const bool is_copied = BN + first_row + r / box_rows * box_rows < num_keys;
      for (int c = 0; c < BK; ++c) {
        uint16_t& want = out[static_cast<size_t>((section * BN + r) * BK + c)];
        if (is_copied) want = at(BN + first_row + r, sweep::kFirstChunk * gran + c);
        if (!is_copied && zero) want = 0;
      }
    }
  };
  const int k_first = Indices::pair_cta && !Indices::is_leader ? BN / 2 : 0;
  expect(sweep::kK, k_first, Indices::k_tile_rows, Indices::k_issue_rows, false);
  if (Indices::pair_cta)
    expect(sweep::kKHalfPanels, k_first, Indices::k_tile_rows, Indices::k_issue_rows, false);
  if (Kernel::folds_k)
    expect(sweep::kKFolded, k_first, Indices::k_tile_rows, Indices::k_issue_rows, false);
  expect(sweep::kV, 0, BN, Kernel::VTile::box_rows, false);
  expect(sweep::kVZero, 0, BN, Kernel::VTile::box_rows, true);
  if (Kernel::folds_v) expect(sweep::kVFolded, 0, BN, Kernel::VTile::box_rows, false);
  expect(sweep::kVPart0, 0, BN / 2, Kernel::VPartTile::box_rows, false);
  expect(sweep::kVPart1, BN / 2, BN / 2, Kernel::VPartTile::box_rows, false);

  std::string name =
      "paged_row_indices/bn" + std::to_string(BN) + " page" + std::to_string(page_size);
  if (Indices::pair_cta) name += Indices::is_leader ? " leader" : " peer";
  name += " swizzle" + std::to_string(swizzle_width_bytes(swizzle)) + " missing" +
          std::to_string(missing);
  cases.push_back(make_case<Kernel>(
      name, {1}, std::move(input), poison(out.size() * 2), to_bytes(out),
      [=](const Buffers& buffers) {
        const operand::KVRows kv{.address = reinterpret_cast<uint64_t>(buffers.in),
                                 .num_rows = static_cast<uint64_t>(rows),
                                 .num_heads = sweep::kHeads,
                                 .depth = columns,
                                 .row_stride_bytes = sweep::kHeads * columns * 2,
                                 .head_stride_bytes = columns * 2};
        const auto* const words = reinterpret_cast<const int32_t*>(buffers.in + cache_elements * 2);
        typename Kernel::Params params{.k = tensor_map(Kernel::KTile::tensor_map(kv)),
                                       .k_folded = tensor_map(Kernel::KFoldedTile::tensor_map(kv)),
                                       .v = tensor_map(Kernel::VTile::tensor_map(kv)),
                                       .v_folded = tensor_map(Kernel::VFoldedTile::tensor_map(kv)),
                                       .v_part = tensor_map(Kernel::VPartTile::tensor_map(kv)),
                                       .paged = {},
                                       .dense = {.rows_per_batch = static_cast<uint32_t>(2 * BN)},
                                       .batch = 1,
                                       .base_row = BN,
                                       .num_keys = static_cast<uint32_t>(num_keys),
                                       .out = reinterpret_cast<uint16_t*>(buffers.out)};
        if (page_size != 0) {
          params.paged = operand::PagedRows{.pages = words,
                                            .table_stride = pages,
                                            .lengths = words + 2 * pages,
                                            .page_size = page_size,
                                            .row_stride = static_cast<uint32_t>(page_size)};
        }
        return params;
      }));
}

template <int page_size, arch::Swizzle swizzle>
void add_copy_tile_cases(Cases& cases) {
  for (const int missing : {0, 3, 37, 70}) {
    add_copy_tile_case<operand::PagedRowIndices<128, page_size>, swizzle>(cases, page_size,
                                                                          missing);
    add_copy_tile_case<operand::PagedRowIndices<128, page_size, true, true>, swizzle>(
        cases, page_size, missing);
    add_copy_tile_case<operand::PagedRowIndices<128, page_size, true, false>, swizzle>(
        cases, page_size, missing);
  }
}

// --- a small product ---------------------------------------------------------------------------

inline void add_tile_product_case(Cases& cases, int num_tiles) {
  using Kernel = demo::TileProduct;
  constexpr size_t kSize = Kernel::kSize;
  const size_t depth = static_cast<size_t>(num_tiles) * kSize;
  // Small integers as bf16, A then B: every sum is exact.
  Random random(79);
  std::vector<float> numbers(2 * kSize * depth);
  std::vector<uint16_t> input;
  for (float& number : numbers) {
    number = static_cast<float>(random.integer(-4, 4));
    uint32_t bits = 0;
    std::memcpy(&bits, &number, 4);
    input.push_back(static_cast<uint16_t>(bits >> 16));
  }
  std::vector<float> out(kSize * kSize, 0.0F);
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < depth; ++k) {
      out[i] += numbers[i / kSize * depth + k] * numbers[(kSize + i % kSize) * depth + k];
    }
  }
  Bytes expected = to_bytes(out);
  cases.push_back(make_case<Kernel>(
      "tile_product/tiles" + std::to_string(num_tiles), {1}, to_bytes(input),
      poison(expected.size()), expected, [=](const Buffers& buffers) {
        const auto map = [&](size_t first) {
          return tensor_map({.rank = 2,
                             .address = reinterpret_cast<uint64_t>(buffers.in) + first * 2,
                             .dims = {depth, kSize},
                             .strides_bytes = {depth * 2},
                             .box = {Kernel::kSize, Kernel::kSize},
                             .swizzle = arch::Swizzle::k128B});
        };
        return Kernel::Params{map(0), map(kSize * depth), reinterpret_cast<float*>(buffers.out),
                              num_tiles};
      }));
}

inline void add_part_cases_here(Cases& cases) {
  for (const int num_tiles : {1, 2, 3, 16}) add_tile_product_case(cases, num_tiles);
  for (const int num_tiles : {1, 2, 9}) {
    const std::string tiles = " tiles" + std::to_string(num_tiles);
    add_relay_case<SharedRingRelay<SharedRing>>(cases, "shared ring, 3 stages" + tiles, num_tiles);
    add_relay_case<SplitRingRelay<SplitRings>>(cases, "split rings, 2 stages, 2 parts" + tiles,
                                               num_tiles);
    add_relay_case<SplitRingRelay<NarrowSplitRings>>(
        cases, "split rings, 3 stages, 4 parts" + tiles, num_tiles);
  }
  add_copy_tile_cases<0, arch::Swizzle::k128B>(cases);
  add_copy_tile_cases<8, arch::Swizzle::k128B>(cases);
  add_copy_tile_cases<32, arch::Swizzle::k64B>(cases);
  add_copy_tile_cases<64, arch::Swizzle::k128B>(cases);
  add_copy_tile_cases<256, arch::Swizzle::k32B>(cases);
}

}  // namespace pagoda::primitives
