// The tile operations of every instruction set of this machine, against plain double loops.
#include "backends/cpu/isa/tile_ops.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/isa_level.hpp"
#include "core/element.hpp"
#include "core/int_math.hpp"

namespace pagoda::cpu {
namespace {

struct Level {
  IsaLevel level;
  const TileOps* ops;
};

std::vector<Level> levels() {
  std::vector<Level> all = {{IsaLevel::kScalar, &kTileOpsScalarF32}};
#if defined(__x86_64__)
  all.push_back({IsaLevel::kAvx2, &kTileOpsAvx2F32});
  all.push_back({IsaLevel::kAvx512, &kTileOpsAvx512F32});
  all.push_back({IsaLevel::kAvx512Bf16, &kTileOpsAvx512Bf16});
  all.push_back({IsaLevel::kAmx, &kTileOpsAmxBf16});
#endif
  std::erase_if(all, [](const Level& l) { return l.level > detected_isa_level(); });
  return all;
}

class TileOpsTest : public testing::TestWithParam<Level> {
 protected:
  void SetUp() override { ops().begin(); }
  void TearDown() override { ops().end(); }

  static const TileOps& ops() { return *GetParam().ops; }
  static int element_bytes() { return ops().is_bf16 ? 2 : 4; }
  static int word() { return 4 / element_bytes(); }
  // What these operations hold exactly.
  static DType input() { return ops().is_bf16 ? DType::kBF16 : DType::kF32; }

  // What K and V may be.
  static std::vector<DType> kv_types() {
    if (ops().is_bf16) return {DType::kBF16, DType::kF8E4M3};
    return {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3};
  }

  std::vector<std::byte> random_rows(int rows, int width, DType dtype) {
    std::vector<std::byte> data(static_cast<size_t>(rows * width * size_bytes(dtype)));
    std::normal_distribution<float> normal;
    for (int i = 0; i < rows * width; ++i) core::store_element(data.data(), dtype, i, normal(rng_));
    return data;
  }
  static std::vector<const void*> row_pointers(const std::vector<std::byte>& data, int rows,
                                               int width, DType dtype) {
    std::vector<const void*> pointers;
    pointers.reserve(static_cast<size_t>(rows));
    for (int r = 0; r < rows; ++r) {
      pointers.push_back(data.data() + int64_t{r} * width * size_bytes(dtype));
    }
    return pointers;
  }

  std::mt19937 rng_{11};
};

// scores = Q K^T through pack_q, pack_k and gemm; for few rows also from K without packing.
TEST_P(TileOpsTest, scores_match_plain_products) {
  for (const DType dtype : kv_types()) {
    for (const int width : {8, 40, 64, 72, 128, 192}) {
      for (const int rows : {1, 2, 3, 7, 16, 17, 32}) {
        for (const int keys : {1, 31, 64, 100}) {
          const int padded = core::align_up(width, ops().depth_align);
          const int columns = core::align_up(keys, 32);
          const auto q = random_rows(rows, width, input());
          const auto k = random_rows(keys, width, dtype);
          std::vector<std::byte> packed_q(static_cast<size_t>(32 * padded * element_bytes()));
          for (int r = 0; r < rows; ++r) {
            ops().pack_q(packed_q.data() + r * padded * element_bytes(),
                         q.data() + r * width * size_bytes(input()), static_cast<int>(input()),
                         width, padded);
          }
          const auto pointers = row_pointers(k, keys, width, dtype);
          const PanelSource source{pointers.data(), keys, static_cast<int>(dtype), width, 4, keys};
          std::vector<float> panels(static_cast<size_t>(columns * padded));
          std::vector<float> scratch(static_cast<size_t>(32 * padded));
          ops().pack_k(panels.data(), &source, padded, scratch.data());
          std::vector<float> scores(static_cast<size_t>(32 * columns), NAN);
          const Gemm product{scores.data(),
                             columns,
                             packed_q.data(),
                             padded / word(),
                             panels.data(),
                             int64_t{padded / word()} * kPanel,
                             rows,
                             columns / kPanel,
                             padded / word(),
                             false};
          ops().gemm(&product, nullptr);
          const auto expect_scores = [&](const char* how) {
            for (int r = 0; r < rows; ++r) {
              for (int c = 0; c < keys; ++c) {
                double sum = 0;
                for (int d = 0; d < width; ++d) {
                  sum += static_cast<double>(core::load_element(q.data(), input(), r * width + d)) *
                         core::load_element(k.data(), dtype, c * width + d);
                }
                ASSERT_NEAR(scores[static_cast<size_t>(r * columns + c)], sum, 2e-4)
                    << how << " width " << width << " rows " << rows << " keys " << keys << " at "
                    << r << "," << c;
              }
            }
          };
          expect_scores("gemm");
          if (rows > ops().direct_k_rows) continue;
          std::vector<const void*> q_rows;
          q_rows.reserve(static_cast<size_t>(rows));
          for (int r = 0; r < rows; ++r) {
            q_rows.push_back(packed_q.data() + r * padded * element_bytes());
          }
          const PanelSource q_source{q_rows.data(), rows, static_cast<int>(input()), padded, 0, 0};
          std::vector<float> q_panel(static_cast<size_t>(32 * padded));
          ops().pack_k(q_panel.data(), &q_source, padded, scratch.data());
          std::fill(scores.begin(), scores.end(), NAN);
          const DirectScores direct{.scores = scores.data(),
                                    .ld = columns,
                                    .q = packed_q.data(),
                                    .ldq = padded / word(),
                                    .q_panel = q_panel.data(),
                                    .rows = rows,
                                    .k = &source,
                                    .scratch = scratch.data()};
          ops().direct_scores(&direct);
          expect_scores("direct");
        }
      }
    }
  }
}

// A whole tile: softmax of random scores under row intervals, then P V, then store.
TEST_P(TileOpsTest, softmax_and_output_match_plain_loops) {
  std::normal_distribution<float> normal;
  for (const int width : {8, 64, 80, 128}) {
    for (const int rows : {1, 5, 16, 32}) {
      const int keys = 90;
      const int columns = 96;
      const int padded = core::align_up(width, ops().column_align);
      const auto v = random_rows(keys, width, input());
      const auto pointers = row_pointers(v, keys, width, input());
      const PanelSource source{pointers.data(), keys, static_cast<int>(input()), width, 4, keys};
      std::vector<float> panels(static_cast<size_t>(columns * padded));
      const int64_t panel_words = int64_t{columns / word()} * kPanel;
      ops().pack_v(panels.data(), &source, panel_words);

      std::vector<float> scores(static_cast<size_t>(32 * columns));
      for (float& s : scores) s = normal(rng_) * 4;
      const std::vector<float> original = scores;
      std::vector<std::byte> probs_buffer(static_cast<size_t>(32 * columns * 2));
      void* probs = ops().is_bf16 ? static_cast<void*>(probs_buffer.data()) : scores.data();
      std::vector<int32_t> lo(32);
      std::vector<int32_t> hi(32);
      for (int r = 0; r < 32; ++r) {
        lo[static_cast<size_t>(r)] = (r * 7) % 40;
        hi[static_cast<size_t>(r)] = r % 6 == 5 ? lo[static_cast<size_t>(r)] : keys - (r * 5) % 50;
      }
      std::vector<float> m(32, -std::numeric_limits<float>::infinity());
      std::vector<float> l(32, 0.0F);
      std::vector<float> o(static_cast<size_t>(32 * padded), NAN);
      const ScoreTile tile{scores.data(), probs,     columns, rows,   columns,
                           lo.data(),     hi.data(), 0.25F,   false,  m.data(),
                           l.data(),      o.data(),  padded,  padded, true};
      ops().softmax(&tile);
      const Gemm product{o.data(),    padded, probs,           columns / word(), panels.data(),
                         panel_words, rows,   padded / kPanel, columns / word(), false};
      ops().gemm(&product, nullptr);
      for (int r = 0; r < rows; ++r) {
        const auto i = static_cast<size_t>(r);
        double best = -std::numeric_limits<double>::infinity();
        double sum = 0;
        for (int c = lo[i]; c < hi[i]; ++c) {
          best = std::max(best, 0.25 * original[static_cast<size_t>(r * columns + c)]);
        }
        for (int c = lo[i]; c < hi[i]; ++c) {
          sum += std::exp2(0.25 * original[static_cast<size_t>(r * columns + c)] - best);
        }
        if (lo[i] >= hi[i]) {
          EXPECT_EQ(l[i], 0.0F);
          EXPECT_EQ(m[i], -std::numeric_limits<float>::infinity());
          continue;
        }
        EXPECT_NEAR(m[i], best, 1e-6);
        EXPECT_NEAR(l[i], sum, 1e-5 * sum);
        std::vector<float> out(static_cast<size_t>(width) + 1, -7.0F);
        ops().store(out.data(), kElementF32, o.data() + r * padded, width, 1.0F / l[i]);
        EXPECT_EQ(out.back(), -7.0F);
        for (int d = 0; d < width; ++d) {
          double value = 0;
          for (int c = lo[i]; c < hi[i]; ++c) {
            value += std::exp2(0.25 * original[static_cast<size_t>(r * columns + c)] - best) / sum *
                     core::load_element(v.data(), input(), c * width + d);
          }
          ASSERT_NEAR(out[static_cast<size_t>(d)], value, ops().is_bf16 ? 1e-2 : 1e-5)
              << "row " << r << " column " << d;
        }
      }
    }
  }
}

// Scores whose exponents are rounded to multiples of hundreds or more: the largest ones of a row
// get 2^0, whatever the rounding, and the others nothing. A finite score that the scale takes past
// the smallest float is a score all the same; -infinity is none.
TEST_P(TileOpsTest, softmax_of_huge_scores_is_of_the_largest_ones) {
  constexpr int columns = 64, rows = 8;
  constexpr float kScale = 1.442695F, kInfinity = std::numeric_limits<float>::infinity();
  const float kLargest[rows] = {1.3e10F, 4.7e11F, 3.1e30F,  -1.3e10F,
                                -7.7e9F, -1e30F,  -3.4e38F, 1.7e7F};
  for (const bool has_minus_infinity : {false, true}) {
    std::vector<float> scores(rows * columns);
    for (int r = 0; r < rows; ++r) {
      const float lower = kLargest[r] > 0 ? 0.25F : 1.5F;
      for (int c = 0; c < columns; ++c) {
        float& s = scores[static_cast<size_t>(r * columns + c)];
        s = c % 8 == 3 ? kLargest[r] : std::max(lower * kLargest[r], -3.4e38F);
        // Of all keys as large as that; and in half of the runs keys that a mask has hidden.
        if (has_minus_infinity && c % 8 != 3) s = -kInfinity;
      }
    }
    std::vector<std::byte> probs_buffer(rows * columns * 2);
    void* probs = ops().is_bf16 ? static_cast<void*>(probs_buffer.data()) : scores.data();
    const std::vector<int32_t> lo(rows, 0), hi(rows, columns);
    std::vector<float> m(rows, -kInfinity), l(rows, 0.0F), o(rows * columns, NAN);
    const ScoreTile tile{
        scores.data(),      probs,    columns,  rows,     columns, lo.data(), hi.data(), kScale,
        has_minus_infinity, m.data(), l.data(), o.data(), columns, columns,   true};
    ops().softmax(&tile);
    for (int r = 0; r < rows; ++r) {
      const bool are_all = kLargest[r] == -3.4e38F && !has_minus_infinity;  // both are clamped
      EXPECT_NEAR(l[static_cast<size_t>(r)], are_all ? columns : columns / 8, 1e-3) << "row " << r;
      EXPECT_TRUE(std::isfinite(m[static_cast<size_t>(r)])) << "row " << r;
      for (int c = 0; c < columns; ++c) {
        const double p =
            core::load_element(probs, ops().is_bf16 ? DType::kBF16 : DType::kF32, r * columns + c);
        EXPECT_NEAR(p, are_all || c % 8 == 3 ? 1 : 0, 1e-6) << "row " << r << " column " << c;
      }
    }
  }
}

// O += P V from V's rows without packing, in the order that store() expects; with an odd number of
// keys, whose last row may hold infinities, and widths that fill no vector.
TEST_P(TileOpsTest, direct_output_matches_plain_loops) {
  std::uniform_real_distribution<float> uniform;
  for (const DType dtype : kv_types()) {
    for (const int width : {8, 24, 40, 64, 128, 136, 256}) {
      for (const int rows : {1, 2, 3, 7, 8}) {
        if (rows > ops().direct_v_rows) continue;
        for (const int keys : {1, 2, 45, 64}) {
          for (const bool accumulate : {false, true}) {
            const int padded = core::align_up(width, ops().column_align);
            auto v = random_rows(keys, width, dtype);
            if (dtype != DType::kF8E4M3) {
              core::store_element(v.data(), dtype, (keys - 1) * width, INFINITY);
            }
            const auto pointers = row_pointers(v, keys, width, dtype);
            const PanelSource source{pointers.data(), keys, static_cast<int>(dtype),
                                     width,           4,    keys};
            const int ldp = 64;
            std::vector<std::byte> probs(static_cast<size_t>(rows * ldp * element_bytes()));
            for (int r = 0; r < rows; ++r) {
              for (int k = 0; k < keys; ++k) {
                core::store_element(probs.data(), input(), r * ldp + k, uniform(rng_));
              }
            }
            std::vector<float> o(static_cast<size_t>(rows * padded), accumulate ? 2.0F : NAN);
            const DirectOutput output{.o = o.data(),
                                      .ldo = padded,
                                      .probs = probs.data(),
                                      .ldp = ldp / word(),
                                      .rows = rows,
                                      .v = &source,
                                      .accumulate = accumulate};
            ops().direct_output(&output);
            for (int r = 0; r < rows; ++r) {
              std::vector<float> out(static_cast<size_t>(width));
              ops().store(out.data(), kElementF32, o.data() + r * padded, width, 1.0F);
              for (int d = 0; d < width; ++d) {
                double value = accumulate ? 2 : 0;
                for (int k = 0; k < keys; ++k) {
                  value +=
                      static_cast<double>(core::load_element(probs.data(), input(), r * ldp + k)) *
                      core::load_element(v.data(), dtype, k * width + d);
                }
                const float got = out[static_cast<size_t>(d)];
                ASSERT_TRUE(got == value || std::abs(got - value) < 1e-4)
                    << got << " for " << value << ", width " << width << " rows " << rows
                    << " keys " << keys << " at " << r << "," << d;
              }
            }
          }
        }
      }
    }
  }
}

// Every code of e4m3, through the rows of V: one key of weight 1.
TEST_P(TileOpsTest, every_fp8_code_is_read_exactly) {
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  const void* row = codes.data();
  const PanelSource source{&row, 1, kElementF8E4M3, 256, 0, 0};
  std::vector<std::byte> probs(static_cast<size_t>(32 * element_bytes()));
  core::store_element(probs.data(), input(), 0, 1.0F);
  std::vector<float> o(256, NAN);
  const DirectOutput output{o.data(), 256, probs.data(), 32 / word(), 1, &source, false};
  ops().direct_output(&output);
  std::vector<float> out(256);
  ops().store(out.data(), kElementF32, o.data(), 256, 1.0F);
  for (int i = 0; i < 256; ++i) {
    const float expected = core::load_element(codes.data(), DType::kF8E4M3, i);
    const float got = out[static_cast<size_t>(i)];
    EXPECT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << i << ": " << got;
  }
}

TEST_P(TileOpsTest, a_side_softmax_gives_the_same_bits) {
  std::normal_distribution<float> normal;
  const int columns = 256;
  std::vector<float> scores(32 * columns);
  for (float& s : scores) s = normal(rng_);
  std::vector<float> other = scores;
  std::vector<std::byte> probs(32 * columns * 2);
  std::vector<std::byte> other_probs(32 * columns * 2);
  std::vector<int32_t> lo(32, 3);
  std::vector<int32_t> hi(32, 250);
  std::vector<float> m(32, -1.0F);
  std::vector<float> l(32, 2.0F);
  std::vector<float> o(32 * 64, 1.5F);
  auto m2 = m;
  auto l2 = l;
  auto o2 = o;
  const auto tile = [&](std::vector<float>& s, std::vector<std::byte>& p, std::vector<float>& tm,
                        std::vector<float>& tl, std::vector<float>& to) {
    void* out = ops().is_bf16 ? static_cast<void*>(p.data()) : s.data();
    return ScoreTile{s.data(), out,       columns,   32,        columns, lo.data(), hi.data(), 1.0F,
                     false,    tm.data(), tl.data(), to.data(), 64,      64,        false};
  };
  const ScoreTile alone = tile(scores, probs, m, l, o);
  ops().softmax(&alone);
  const ScoreTile side = tile(other, other_probs, m2, l2, o2);
  const auto a = random_rows(32, 64, input());
  std::vector<float> panels(64 * 64, 0.0F);
  std::vector<float> c(32 * 64);
  const Gemm product{
      c.data(), 64, a.data(),    64 / word(), panels.data(), int64_t{64 / word()} * kPanel,
      32,       4,  64 / word(), false};
  ops().gemm(&product, &side);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(l, l2);
  EXPECT_EQ(o, o2);
  if (ops().is_bf16) {
    EXPECT_EQ(probs, other_probs);
  } else {
    EXPECT_EQ(scores, other);
  }
}

TEST_P(TileOpsTest, minus_infinity_is_zero_and_nan_is_seen) {
  std::vector<float> scores(32 * 32, -std::numeric_limits<float>::infinity());
  scores[5] = 1.0F;      // row 0 sees one key
  scores[32 + 3] = NAN;  // row 1: NaN among hidden keys
  std::vector<std::byte> probs(32 * 32 * 2);
  void* out = ops().is_bf16 ? static_cast<void*>(probs.data()) : scores.data();
  std::vector<int32_t> lo(32, 0);
  std::vector<int32_t> hi(32, 32);
  std::vector<float> m(32, -std::numeric_limits<float>::infinity());
  std::vector<float> l(32, 0.0F);
  std::vector<float> o(32 * 32, 0.0F);
  const ScoreTile tile{scores.data(), out,      32,       3,        32, lo.data(), hi.data(), 1.0F,
                       true,          m.data(), l.data(), o.data(), 32, 32,        true};
  ops().softmax(&tile);
  EXPECT_EQ(l[0], 1.0F);
  EXPECT_EQ(m[0], 1.0F);
  EXPECT_TRUE(std::isnan(l[1]));
  EXPECT_EQ(l[2], 0.0F);
}

TEST_P(TileOpsTest, stores_round_like_the_scalar_definition) {
  std::vector<float> o(64);
  std::normal_distribution<float> normal;
  for (float& x : o) x = normal(rng_) * 100;
  o[7] = NAN;
  o[8] = 1e30F;
  // V's column order may be permuted: undo it with an fp32 store first.
  std::vector<float> plain(64);
  ops().store(plain.data(), kElementF32, o.data(), 64, 1.0F);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> stored(64);
    std::vector<uint16_t> expected(64);
    ops().store(stored.data(), static_cast<int>(dtype), o.data(), 64, 0.37F);
    for (int i = 0; i < 64; ++i) {
      core::store_element(expected.data(), dtype, i, plain[static_cast<size_t>(i)] * 0.37F);
    }
    for (size_t i = 0; i < 64; ++i) {
      const float got = core::load_element(stored.data(), dtype, static_cast<int64_t>(i));
      const float want = core::load_element(expected.data(), dtype, static_cast<int64_t>(i));
      EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << i;
    }
  }
}

TEST_P(TileOpsTest, softcap_and_alibi_match_plain_formulas) {
  std::vector<float> scores(64);
  for (int i = 0; i < 64; ++i) scores[static_cast<size_t>(i)] = static_cast<float>(i - 32) * 3.7F;
  const std::vector<float> before = scores;
  const ScoreMods mods{0.5F, 20.0F, 0.25F, -40.0F};
  ops().modify(scores.data(), 64, &mods);
  for (int i = 0; i < 64; ++i) {
    const double s = 20.0 * std::tanh(0.5 * before[static_cast<size_t>(i)] / 20.0);
    EXPECT_NEAR(scores[static_cast<size_t>(i)], s + 0.25 * (i - 40), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(every_level, TileOpsTest, testing::ValuesIn(levels()),
                         [](const auto& test) { return std::string(name(test.param.level)); });

}  // namespace
}  // namespace pagoda::cpu
