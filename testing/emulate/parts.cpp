// Launches of the pipelines, of PagedRowIndices and of the small products, with their data and
// checks.
#include "testing/emulate/parts.hpp"

#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/demo/product_chain.hpp"
#include "testing/demo/tile_product.hpp"
#include "testing/material/copy_tile_case.hpp"
#include "testing/material/kv_relay_case.hpp"

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

template <class Kernel>
Outcome run_relay_of(const char* name, const Options& options) {
  const material::RelayCase<Kernel> test(7, options.seed);
  std::vector<uint32_t> out(test.sums().size());
  Outcome outcome;
  outcome.result = launch<Kernel>(
      shape_of<Kernel>(name, {1}),
      test.params(test.kv().data(), out.data(),
                  [](const arch::TensorMapSpec& spec) { return spec; }),
      {input("kv", test.kv().data(), test.kv().size()), output("out", out.data(), out.size())},
      options);
  for (size_t i = 0; i < out.size(); ++i) outcome.check("out", i, out[i], test.sums()[i]);
  return outcome;
}

}  // namespace

Outcome run_shared_ring(const Options& options) {
  return run_relay_of<material::SharedRingRelay<material::SharedRing3x2>>("pipeline/shared_ring",
                                                                          options);
}
Outcome run_split_rings(const Options& options) {
  return run_relay_of<material::SplitRingRelay<material::SplitRings2x2>>("pipeline/split_rings",
                                                                         options);
}

Outcome run_paged_tile(const Options& options) {
  using Kernel = material::CopyTile<operand::PagedRowIndices<128, 16>, arch::Swizzle::k128B>;
  material::CopyTileCase<Kernel> test(16);
  // The tile lacks between none and all but one of its keys.
  test.set_num_keys(static_cast<int>(2 * 128 - options.seed % 128));
  const std::vector<uint16_t> expected = test.expected(0);
  std::vector<uint16_t> out(expected.size());
  Outcome outcome;
  outcome.result =
      launch<Kernel>(shape_of<Kernel>("operand/paged_tile", {1}),
                     test.params(test.cache().data(), test.table().data(), test.lengths().data(),
                                 out.data(), [](const arch::TensorMapSpec& spec) { return spec; }),
                     {input("cache", test.cache().data(), test.cache().size()),
                      input("table", test.table().data(), test.table().size()),
                      input("lengths", test.lengths().data(), test.lengths().size()),
                      output("out", out.data(), out.size())},
                     options);
  for (size_t i = 0; i < out.size(); ++i) outcome.check("out", i, out[i], expected[i]);
  return outcome;
}

}  // namespace pagoda::emulate
