// Launches of the pipelines, of PagedRowIndices and of the small product, with their data and checks.
#include "testing/emulate/parts.hpp"

#include <numeric>

#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/demo/product_chain.hpp"
#include "testing/demo/tile_product.hpp"
#include "testing/material/copy_tile.hpp"
#include "testing/material/kv_relay.hpp"

namespace pagoda::emulate {

using emulator::input;
using emulator::launch;
using emulator::Options;
using emulator::output;
using emulator::shape_of;

Outcome run_tile_product(const Options& options) {
  using Kernel = demo::TileProduct;
  constexpr int kTiles = 5, kDepth = kTiles * Kernel::kSize;
  // Small integers: every sum is exact.
  std::vector<uint16_t> a(Kernel::kSize * kDepth), b(a.size());
  std::mt19937 random(static_cast<uint32_t>(options.seed));
  const auto integer = [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4); };
  for (uint16_t& x : a) x = core::float_to_bf16(integer());
  for (uint16_t& x : b) x = core::float_to_bf16(integer());
  std::vector<float> out(Kernel::kSize * Kernel::kSize);
  const auto map = [](const std::vector<uint16_t>& tensor) {
    return arch::TensorMapSpec{.rank = 2,
                               .address = reinterpret_cast<uint64_t>(tensor.data()),
                               .dims = {kDepth, Kernel::kSize},
                               .strides_bytes = {kDepth * 2},
                               .box = {Kernel::kSize, Kernel::kSize},
                               .swizzle = arch::Swizzle::k128B};
  };
  Outcome outcome;
  outcome.result = launch<Kernel>(shape_of<Kernel>("demo/tile_product", {1}),
                                  {map(a), map(b), out.data(), kTiles},
                                  {input("a", a.data(), a.size()), input("b", b.data(), b.size()),
                                   output("out", out.data(), out.size())},
                                  options);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = i / Kernel::kSize, column = i % Kernel::kSize;
    float expected = 0;
    for (size_t k = 0; k < kDepth; ++k) {
      expected +=
          core::bf16_to_float(a[row * kDepth + k]) * core::bf16_to_float(b[column * kDepth + k]);
    }
    outcome.check("out", i, out[i], expected);
  }
  return outcome;
}

Outcome run_product_chain(const Options& options) {
  using Kernel = demo::ProductChain;
  constexpr int kTiles = 3, kKeys = kTiles * Kernel::kKeys;
  // Integers so small that every sum, and its bf16, is exact.
  std::mt19937 random(static_cast<uint32_t>(options.seed));
  const auto make = [&](int rows, int columns) {
    std::vector<float> matrix(static_cast<size_t>(rows * columns));
    for (float& x : matrix) x = static_cast<float>(static_cast<int>(random() % 3) - 1);
    return matrix;
  };
  const std::vector<float> q = make(Kernel::kRows, Kernel::kDepth);
  const std::vector<float> k = make(kKeys, Kernel::kDepth), v = make(kKeys, Kernel::kColumns);
  // Tiles of `rows` rows, each in chunks of 8 columns.
  const auto image = [](const std::vector<float>& matrix, int rows, int columns) {
    std::vector<uint16_t> chunks(matrix.size());
    for (int i = 0; i < static_cast<int>(matrix.size()); ++i) {
      const int row = i / columns, column = i % columns;
      const int at =
          row / rows * rows * columns + (column / 8 * rows + row % rows) * 8 + column % 8;
      chunks[static_cast<size_t>(at)] = core::float_to_bf16(matrix[static_cast<size_t>(i)]);
    }
    return chunks;
  };
  const auto q_image = image(q, Kernel::kRows, Kernel::kDepth);
  const auto k_image = image(k, Kernel::kKeys, Kernel::kDepth);
  const auto v_image = image(v, Kernel::kKeys, Kernel::kColumns);
  std::vector<float> out(Kernel::kRows * Kernel::kColumns);
  Outcome outcome;
  outcome.result = launch<Kernel>(
      shape_of<Kernel>("demo/product_chain", {1}),
      {q_image.data(), k_image.data(), v_image.data(), out.data(), kTiles},
      {input("q", q_image.data(), q_image.size()), input("k", k_image.data(), k_image.size()),
       input("v", v_image.data(), v_image.size()), output("out", out.data(), out.size())},
      options);
  std::vector<float> expected(out.size());
  for (size_t row = 0; row < Kernel::kRows; ++row) {
    for (size_t key = 0; key < kKeys; ++key) {
      float s = 0;
      for (size_t i = 0; i < Kernel::kDepth; ++i) {
        s += q[row * Kernel::kDepth + i] * k[key * Kernel::kDepth + i];
      }
      for (size_t i = 0; i < Kernel::kColumns; ++i) {
        expected[row * Kernel::kColumns + i] += s * v[key * Kernel::kColumns + i];
      }
    }
  }
  for (size_t i = 0; i < out.size(); ++i) outcome.check("out", i, out[i], expected[i]);
  return outcome;
}

namespace {

struct SharedRing {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 64, .num_kv_stages = 3};
};
struct SplitRings {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 128, .num_kv_stages = 2, .num_qk_stages = 2};
};

template <class Kernel>
Outcome run_relay_of(const char* name, const Options& options) {
  constexpr pipeline::KVTiling tiling = Kernel::tiling;
  constexpr int kTiles = 7, kRows = kTiles * tiling.BN;
  const std::vector<uint32_t> words =
      random_words(static_cast<size_t>(kRows * tiling.padded_depth), options.seed);
  std::vector<uint16_t> kv(2 * words.size());  // K, then V
  for (size_t i = 0; i < words.size(); ++i) {
    kv[i] = static_cast<uint16_t>(words[i]);
    kv[words.size() + i] = static_cast<uint16_t>(words[i] >> 16);
  }
  std::vector<uint32_t> out(2 * kTiles * kv_relay::kConsumers);
  const auto map = [&](size_t first) {
    return arch::TensorMapSpec{.rank = 2,
                               .address = reinterpret_cast<uint64_t>(kv.data() + first),
                               .dims = {static_cast<uint64_t>(tiling.padded_depth), kRows},
                               .strides_bytes = {static_cast<uint64_t>(tiling.padded_depth) * 2},
                               .box = {tiling.swizzle_elements(2), tiling.BN},
                               .swizzle = tiling.swizzle};
  };
  Outcome outcome;
  outcome.result = launch<Kernel>(
      shape_of<Kernel>(name, {1}), {map(0), map(words.size()), out.data(), kTiles},
      {input("kv", kv.data(), kv.size()), output("out", out.data(), out.size())}, options);
  constexpr auto kElements = static_cast<std::ptrdiff_t>(tiling.BN * tiling.padded_depth);
  for (int tile = 0; tile < 2 * kTiles; ++tile) {  // K0 V0 K1 V1 ...
    const auto first =
        kv.begin() + tile / 2 * kElements + tile % 2 * static_cast<std::ptrdiff_t>(words.size());
    const auto sums = out.begin() + tile * kv_relay::kConsumers;
    outcome.check("tile", static_cast<size_t>(tile),
                  std::accumulate(sums, sums + kv_relay::kConsumers, 0U),
                  std::accumulate(first, first + kElements, 0U));
  }
  return outcome;
}

}  // namespace

Outcome run_shared_ring(const Options& options) {
  return run_relay_of<SharedRingRelay<SharedRing>>("pipeline/shared_ring", options);
}
Outcome run_split_rings(const Options& options) {
  return run_relay_of<SplitRingRelay<SplitRings>>("pipeline/split_rings", options);
}

Outcome run_paged_tile(const Options& options) {
  using Kernel = sweep::CopyTile<operand::PagedRowIndices<128, 16>, arch::Swizzle::k128B>;
  constexpr int BN = 128, kPage = 16, kPages = 2 * BN / kPage, kColumns = 3 * Kernel::gran;
  const std::vector<uint32_t> words =
      random_words(static_cast<size_t>(kPages * kPage * kColumns), options.seed);
  std::vector<uint16_t> cache(words.size() * sweep::kHeads);
  for (size_t i = 0; i < cache.size(); ++i)
    cache[i] = static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
  std::vector<int32_t> table(2 * kPages, 0);
  std::iota(table.rbegin(), table.rbegin() + kPages, 0);  // of the second sequence, backwards
  // The last tile lacks between none and all but one of its keys.
  const auto num_keys = static_cast<int32_t>(2 * BN - options.seed % BN);
  const std::vector<int32_t> lengths{0, num_keys};
  std::vector<uint16_t> out(sweep::kSections * BN * Kernel::BK);
  const operand::KVRows rows{.address = reinterpret_cast<uint64_t>(cache.data()),
                             .num_rows = kPages * kPage,
                             .num_heads = sweep::kHeads,
                             .depth = kColumns,
                             .row_stride_bytes = sweep::kHeads * kColumns * 2,
                             .head_stride_bytes = kColumns * 2};
  typename Kernel::Params params{.k = Kernel::KTile::tensor_map(rows),
                                 .k_folded = Kernel::KFoldedTile::tensor_map(rows),
                                 .v = Kernel::VTile::tensor_map(rows),
                                 .v_folded = Kernel::VFoldedTile::tensor_map(rows),
                                 .v_part = Kernel::VPartTile::tensor_map(rows),
                                 .paged = {.pages = table.data(),
                                           .table_stride = kPages,
                                           .lengths = lengths.data(),
                                           .page_size = kPage,
                                           .row_stride = kPage},
                                 .dense = {},
                                 .batch = 1,
                                 .base_row = BN,
                                 .num_keys = static_cast<uint32_t>(num_keys),
                                 .out = out.data()};
  Outcome outcome;
  outcome.result = launch<Kernel>(
      shape_of<Kernel>("operand/paged_tile", {1}), params,
      {input("cache", cache.data(), cache.size()), input("table", table.data(), table.size()),
       input("lengths", lengths.data(), lengths.size()), output("out", out.data(), out.size())},
      options);
  for (int key = BN; key < num_keys; ++key) {
    const int row = table[static_cast<size_t>(kPages + key / kPage)] * kPage + key % kPage;
    for (int column = 0; column < Kernel::BK; ++column) {
      const auto from = static_cast<size_t>((row * sweep::kHeads + sweep::kHead) * kColumns +
                                            sweep::kFirstChunk * Kernel::gran + column);
      for (const sweep::Section section : {sweep::kK, sweep::kV, sweep::kVZero}) {
        const auto at = static_cast<size_t>((section * BN + key - BN) * Kernel::BK + column);
        outcome.check("out", at, out[at], cache[from]);
      }
    }
  }
  return outcome;
}

}  // namespace pagoda::emulate
