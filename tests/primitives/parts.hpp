// Components of the attention kernels as kernels of their own: the pipelines
// (testing/material/kv_relay.hpp), PagedRowIndices (testing/material/copy_tile.hpp) and a small
// product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "target.hpp"
#include "testing/demo/tile_product.hpp"
#include "testing/material/copy_tile_case.hpp"
#include "testing/material/kv_relay_case.hpp"

namespace pagoda::primitives {

// --- pipelines --------------------------------------------------------------------------------

template <class Kernel>
void add_relay_case(Cases& cases, const std::string& name, int num_tiles) {
  const material::RelayCase<Kernel> test(num_tiles, 77);
  cases.push_back(make_case<Kernel>(
      "pipeline/" + name, {1}, to_bytes(test.kv()), poison(test.sums().size() * 4),
      to_bytes(test.sums()), [test](const Buffers& buffers) {
        return test.params(buffers.in, reinterpret_cast<uint32_t*>(buffers.out),
                           [](const arch::TensorMapSpec& spec) { return tensor_map(spec); });
      }));
}

// --- PagedRowIndices --------------------------------------------------------------------------

// A sequence that lacks the last `missing` keys of the tile.
template <class Indices, arch::Swizzle swizzle>
void add_copy_tile_case(Cases& cases, int page_size, int missing) {
  using Kernel = material::CopyTile<Indices, swizzle>;
  material::CopyTileCase<Kernel> test(page_size);
  test.set_num_keys(2 * Indices::BN - missing);
  Bytes input = to_bytes(test.cache());
  const size_t table_at = input.size(), lengths_at = table_at + test.table().size() * 4;
  for (const std::vector<int32_t>* more : {&test.table(), &test.lengths()}) {
    const Bytes bytes = to_bytes(*more);
    input.insert(input.end(), bytes.begin(), bytes.end());
  }
  constexpr uint16_t kPoison = 0xA5A5;  // of poison()
  const std::vector<uint16_t> expected = test.expected(kPoison);
  std::string name =
      "paged_row_indices/bn" + std::to_string(Indices::BN) + " page" + std::to_string(page_size);
  if (Indices::pair_cta) name += Indices::is_leader ? " leader" : " peer";
  name += " swizzle" + std::to_string(swizzle_width_bytes(swizzle)) + " missing" +
          std::to_string(missing);
  cases.push_back(make_case<Kernel>(
      name, {1}, std::move(input), poison(expected.size() * 2), to_bytes(expected),
      [test, table_at, lengths_at](const Buffers& buffers) {
        return test.params(buffers.in, reinterpret_cast<const int32_t*>(buffers.in + table_at),
                           reinterpret_cast<const int32_t*>(buffers.in + lengths_at),
                           reinterpret_cast<uint16_t*>(buffers.out),
                           [](const arch::TensorMapSpec& spec) { return tensor_map(spec); });
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
    add_relay_case<material::SharedRingRelay<material::SharedRing3>>(
        cases, "shared ring, 3 stages" + tiles, num_tiles);
    add_relay_case<material::SharedRingRelay<material::SharedRing3x2>>(
        cases, "shared ring, 3 stages, 2 parts" + tiles, num_tiles);
    add_relay_case<material::SplitRingRelay<material::SplitRings2x2>>(
        cases, "split rings, 2 stages, 2 parts" + tiles, num_tiles);
    add_relay_case<material::SplitRingRelay<material::SplitRings3x4>>(
        cases, "split rings, 3 stages, 4 parts" + tiles, num_tiles);
  }
  add_copy_tile_cases<0, arch::Swizzle::k128B>(cases);
  add_copy_tile_cases<8, arch::Swizzle::k128B>(cases);
  add_copy_tile_cases<32, arch::Swizzle::k64B>(cases);
  add_copy_tile_cases<64, arch::Swizzle::k128B>(cases);
  add_copy_tile_cases<256, arch::Swizzle::k32B>(cases);
}

}  // namespace pagoda::primitives
