// The Hopper kernel with gathered K and V, on the emulator, against double precision: any pages,
// any strides, fp8 caches with their scales. Slots of the caches without a key hold NaN, and the
// emulator reports reads of them.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/kernel.hpp"

namespace pagoda::mha_sm90 {
namespace {

using emulator::inout;
using emulator::input;
using emulator::output;

template <class T_, int depth_qk, int depth_vo, ScoreClass scores = ScoreClass::kPlain>
struct Config {
  using T = T_;
  static constexpr TileConfig tile = gather_tile(depth_qk, depth_vo, scores);
};

enum class Scales { kNone, kPerTensor, kPerHead };

struct Case {
  int batch = 2, queries = 1, keys = 150, heads = 4, kv_heads = 2, dim_qk = 128, dim_vo = 128;
  int page_size = 16;  // 0: padded sequences
  bool is_fp8 = false;
  int gap = 0;  // elements between rows, heads and pages
  Scales scales = Scales::kNone;
  float k_scale = 0.5F;
  float softcap = 0;
  int ctas = 3;
};

std::string describe(const Case& c) {
  return std::to_string(c.batch) + " x " + std::to_string(c.keys) + " keys, dims " +
         std::to_string(c.dim_qk) + " " + std::to_string(c.dim_vo) + ", pages of " +
         std::to_string(c.page_size) + (c.is_fp8 ? ", fp8" : "") + ", gap " +
         std::to_string(c.gap) + ", scales " + std::to_string(static_cast<int>(c.scales)) + " " +
         std::to_string(c.k_scale) + ", softcap " + std::to_string(c.softcap);
}

// K or V: NaN except for the keys that exist.
struct Cache {
  DType dtype;
  int dim;
  kernels::RowsView rows;
  std::vector<std::byte> bytes;

  Cache(const Case& c, DType dtype_, int dim_, int64_t outer, int64_t rows_of_outer)
      : dtype(dtype_), dim(dim_) {
    rows.head_stride = dim + c.gap;
    rows.row_stride = rows.head_stride * c.kv_heads + c.gap;
    rows.sequence_stride = rows.row_stride * rows_of_outer + c.gap;
    bytes.resize(static_cast<size_t>(rows.sequence_stride * outer * size_bytes(dtype)) + 16);
    for (int64_t i = 0; i < rows.sequence_stride * outer; ++i) {
      core::store_element(bytes.data(), dtype, i, std::numeric_limits<float>::quiet_NaN());
    }
  }
  void fill(int64_t at, std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (int i = 0; i < dim; ++i) core::store_element(bytes.data(), dtype, at + i, normal(random));
  }
  [[nodiscard]] double at(int64_t index) const {
    return core::load_element(bytes.data(), dtype, index);
  }
};

template <class T>
constexpr DType dtype_of() {
  return std::same_as<T, arch::Half> ? DType::kF16 : DType::kBF16;
}

// A call with its data and result.
template <class C>
class Run {
 public:
  using T = typename C::T;
  static constexpr DType dtype = dtype_of<T>();

  explicit Run(const Case& c)
      : case_(c),
        pages_of_sequence_(c.page_size == 0 ? 1 : (c.keys + c.page_size - 1) / c.page_size),
        k_(c, c.is_fp8 ? DType::kF8E4M3 : dtype, c.dim_qk, outer(), rows_of_outer()),
        v_(c, c.is_fp8 ? DType::kF8E4M3 : dtype, c.dim_vo, outer(), rows_of_outer()),
        q_(static_cast<size_t>(c.batch) * c.queries * c.heads * c.dim_qk),
        out_(static_cast<size_t>(c.batch) * c.queries * c.heads * c.dim_vo, 0x7fff),
        lse_(static_cast<size_t>(c.batch) * c.queries * c.heads, 1e30F) {
    std::normal_distribution<float> normal;
    for (uint16_t& q : q_) q = static_cast<uint16_t>(to_bits(normal(random_)));
    table_.resize(outer());
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), random_);
    for (int b = 0; b < c.batch; ++b) {
      // The last sequence has no key, those between end inside a tile or a page.
      lengths_.push_back(b + 1 == c.batch && b > 1 ? 0 : c.keys - 37 * b);
      for (int key = 0; key < lengths_[b]; ++key) {
        for (int h = 0; h < c.kv_heads; ++h) {
          k_.fill(offset(k_, b, key, h), random_);
          v_.fill(offset(v_, b, key, h), random_);
        }
      }
    }
    for (int h = 0; h < c.kv_heads; ++h) {
      k_scales_.push_back(c.k_scale * static_cast<float>(1 + h));
      v_scales_.push_back(3.0F - static_cast<float>(h));
    }
  }

  void launch(emulator::Mode mode) {
    using K = Kernel<C>;
    const auto result = emulator::launch<K>(emulator::shape_of<K>("gather", {case_.ctas}), params(),
                                            buffers(), {.mode = mode});
    for (const auto& report : result.reports) ADD_FAILURE() << to_string(report);
  }

  void compare(double tolerance) const {
    for (int b = 0; b < case_.batch; ++b) {
      for (int i = 0; i < case_.queries; ++i) {
        for (int h = 0; h < case_.heads; ++h) compare_row(b, i, h, tolerance);
      }
    }
  }

 private:
  static int to_bits(float x) {
    return dtype == DType::kF16 ? core::float_to_f16(x) : core::float_to_bf16(x);
  }
  static double value(uint16_t bits) {
    return dtype == DType::kF16 ? core::f16_to_float(bits) : core::bf16_to_float(bits);
  }
  [[nodiscard]] int outer() const { return case_.batch * pages_of_sequence_; }
  [[nodiscard]] int rows_of_outer() const {
    return case_.page_size == 0 ? case_.keys : case_.page_size;
  }
  [[nodiscard]] int64_t offset(const Cache& cache, int b, int key, int head) const {
    if (case_.page_size == 0) return cache.rows.offset(b, key, head);
    const int page = table_[b * pages_of_sequence_ + key / case_.page_size];
    return cache.rows.offset(page, key % case_.page_size, head);
  }

  AttentionParams params() {
    AttentionParams p{};
    place_keys(p);
    p.num_kv_heads = case_.kv_heads;
    p.group = case_.heads / case_.kv_heads;
    p.dim_qk = case_.dim_qk;
    p.dim_vo = case_.dim_vo;
    p.q_data = q_.data();
    p.out_data = out_.data();
    p.out_dtype = dtype;
    p.lse = lse_.data();
    p.q_rows = dense(case_.dim_qk);
    p.out_rows = dense(case_.dim_vo);
    p.lse_rows = dense(1);
    p.k_data = k_.bytes.data();
    p.v_data = v_.bytes.data();
    p.k_rows = k_.rows;
    p.v_rows = v_.rows;
    p.kv_element_bytes = case_.is_fp8 ? 1 : 2;
    if (case_.scales == Scales::kPerTensor) {
      p.k_scales.shared = k_scales_[0];
      p.v_scales.shared = v_scales_[0];
    }
    if (case_.scales == Scales::kPerHead) {
      p.k_scales = {.values = k_scales_.data(), .head_stride = 1};
      p.v_scales = {.values = v_scales_.data(), .head_stride = 1};
    }
    p.mask.interval.rule.right = 0;
    p.score_map = softmax::score_map(scale(), case_.softcap);
    p.partial_out = partial_out_.data();
    p.partial_stats = partial_stats_.data();
    p.counters = counters_.data();
    return p;
  }
  void place_keys(AttentionParams& p) {
    auto& sequences = p.sequences;
    sequences.batch = case_.batch;
    sequences.padded_rows = case_.queries;
    if (case_.page_size == 0) {
      sequences.keys.kind = operand::KeyRowsKind::kDense;
      sequences.keys.dense = {static_cast<uint32_t>(case_.keys), lengths_.data()};
    } else {
      sequences.keys.kind = operand::KeyRowsKind::kPaged;
      sequences.keys.paged = {.pages = table_.data(),
                              .table_stride = pages_of_sequence_,
                              .lengths = lengths_.data(),
                              .page_size = case_.page_size,
                              .row_stride = static_cast<uint32_t>(case_.page_size)};
    }
  }
  [[nodiscard]] kernels::RowsView dense(int dim) const {
    return {static_cast<int64_t>(case_.queries) * case_.heads * dim,
            static_cast<int64_t>(case_.heads) * dim, dim};
  }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(case_.dim_qk)); }

  std::vector<emulator::GlobalBuffer> buffers() {
    std::vector<emulator::GlobalBuffer> all{
        input("q", q_.data(), q_.size()),
        output("out", out_.data(), out_.size()),
        output("lse", lse_.data(), lse_.size()),
        input("lengths", lengths_.data(), lengths_.size()),
        input("k_scales", k_scales_.data(), k_scales_.size()),
        input("v_scales", v_scales_.data(), v_scales_.size()),
        output("partial_out", partial_out_.data(), partial_out_.size()),
        output("partial_stats", partial_stats_.data(), partial_stats_.size()),
        inout("counters", counters_.data(), counters_.size())};
    for (int b = 0; b < case_.batch; ++b) {
      const int used =
          case_.page_size == 0 ? 0 : (lengths_[b] + case_.page_size - 1) / case_.page_size;
      if (used > 0) all.push_back(input("table", table_.data() + b * pages_of_sequence_, used));
      for (int key = 0; key < lengths_[b]; ++key) {
        for (int h = 0; h < case_.kv_heads; ++h) {
          add_row(all, "k", k_, offset(k_, b, key, h));
          add_row(all, "v", v_, offset(v_, b, key, h));
        }
      }
    }
    return all;
  }
  static void add_row(std::vector<emulator::GlobalBuffer>& all, const char* name,
                      const Cache& cache, int64_t at) {
    const int64_t size = size_bytes(cache.dtype);
    all.push_back(
        input(name, cache.bytes.data() + at * size, static_cast<size_t>(cache.dim * size)));
  }

  void compare_row(int b, int i, int h, double tolerance) const {
    const int kv_head = h / (case_.heads / case_.kv_heads);
    const int keys = std::max(0, lengths_[b] - case_.queries + i + 1);
    const int scaled_head = case_.scales == Scales::kPerHead ? kv_head : 0;
    const bool has_scales = case_.scales != Scales::kNone;
    const double k_scale = has_scales ? k_scales_[scaled_head] : 1;
    const double v_scale = has_scales ? v_scales_[scaled_head] : 1;
    const int64_t row = (static_cast<int64_t>(b) * case_.queries + i) * case_.heads + h;
    std::vector<double> weights(keys);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int key = 0; key < keys; ++key) {
      double score = 0;
      const int64_t at = offset(k_, b, key, kv_head);
      for (int d = 0; d < case_.dim_qk; ++d)
        score += value(q_[row * case_.dim_qk + d]) * k_.at(at + d);
      score *= k_scale * scale();
      if (case_.softcap > 0) score = case_.softcap * std::tanh(score / case_.softcap);
      weights[key] = score;
      largest = std::max(largest, score);
    }
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    if (keys == 0) {
      EXPECT_EQ(lse_[row], -std::numeric_limits<float>::infinity());
    } else {
      EXPECT_NEAR(lse_[row], largest + std::log(sum), 2e-3) << b << " " << i << " " << h;
    }
    for (int d = 0; d < case_.dim_vo; ++d) {
      double expected = 0;
      for (int key = 0; key < keys; ++key) {
        expected += weights[key] / sum * v_.at(offset(v_, b, key, kv_head) + d);
      }
      ASSERT_NEAR(value(out_[row * case_.dim_vo + d]), expected * v_scale, tolerance)
          << "sequence " << b << " query " << i << " head " << h << " column " << d;
    }
  }

  Case case_;
  int pages_of_sequence_;
  std::mt19937 random_{11};
  Cache k_, v_;
  std::vector<uint16_t> q_, out_;
  std::vector<float> lse_;
  std::vector<int32_t> table_, lengths_;
  std::vector<float> k_scales_, v_scales_;
  std::vector<float> partial_out_ = std::vector<float>(64 * 64 * C::tile.depth_vo);
  std::vector<float> partial_stats_ = std::vector<float>(64 * 64 * 4);
  std::vector<uint32_t> counters_ = std::vector<uint32_t>(128);
};

template <class C>
void expect_right(const Case& c, emulator::Mode mode = emulator::Mode::kRandom) {
  SCOPED_TRACE(describe(c) + ", " + std::string(name(mode)));
  Run<C> run(c);
  run.launch(mode);
  run.compare(Run<C>::dtype == DType::kF16 ? 0.01 : 0.04);
}

using BFloat16 = Config<arch::BFloat16, 128, 128>;
using Half = Config<arch::Half, 128, 128>;

TEST(Gather, all_orders_of_events_give_the_result) {
  for (const emulator::Mode mode : emulator::kModes) {
    expect_right<BFloat16>({.page_size = 17}, mode);
    expect_right<BFloat16>({.page_size = 17, .is_fp8 = true, .scales = Scales::kPerHead}, mode);
  }
}

TEST(Gather, any_page_size) {
  for (const int page_size : {0, 1, 3, 16, 48, 64}) {
    expect_right<BFloat16>({.keys = 130, .page_size = page_size});
    expect_right<BFloat16>({.keys = 130, .page_size = page_size, .is_fp8 = true});
  }
}

TEST(Gather, strides_of_single_elements) {
  for (const int gap : {1, 3, 8}) {
    expect_right<BFloat16>({.keys = 70, .page_size = 5, .gap = gap});
    expect_right<BFloat16>({.keys = 70, .page_size = 5, .is_fp8 = true, .gap = gap});
  }
}

TEST(Gather, both_types_of_queries) {
  expect_right<Half>({.page_size = 3});
  expect_right<Half>({.page_size = 3, .is_fp8 = true, .scales = Scales::kPerTensor});
}

TEST(Gather, scales_of_the_cache) {
  for (const Scales scales : {Scales::kPerTensor, Scales::kPerHead}) {
    for (const float k_scale : {0.7F, 0.0F, -0.3F}) {
      expect_right<BFloat16>({.keys = 100, .is_fp8 = true, .scales = scales, .k_scale = k_scale});
    }
  }
  using General = Config<arch::BFloat16, 128, 128, ScoreClass::kGeneral>;
  expect_right<General>({.keys = 100, .is_fp8 = true, .scales = Scales::kPerHead, .softcap = 2});
}

TEST(Gather, head_dims_below_the_tile_are_padded_with_zeros) {
  for (const bool is_fp8 : {false, true}) {
    expect_right<BFloat16>(
        {.keys = 70, .dim_qk = 80, .dim_vo = 72, .page_size = 7, .is_fp8 = is_fp8});
    expect_right<BFloat16>(
        {.keys = 70, .dim_qk = 104, .dim_vo = 88, .page_size = 7, .is_fp8 = is_fp8});
  }
}

TEST(Gather, all_shapes) {
  for (const bool is_fp8 : {false, true}) {
    expect_right<Config<arch::BFloat16, 64, 64>>({.dim_qk = 64, .dim_vo = 64, .is_fp8 = is_fp8});
    expect_right<Config<arch::Half, 256, 256, ScoreClass::kGeneral>>(
        {.keys = 70, .dim_qk = 256, .dim_vo = 256, .is_fp8 = is_fp8});
    expect_right<Config<arch::BFloat16, 96, 96>>({.dim_qk = 96, .dim_vo = 96, .is_fp8 = is_fp8});
    expect_right<Config<arch::Half, 192, 128>>({.dim_qk = 192, .is_fp8 = is_fp8});
    expect_right<Config<arch::Half, 256, 256>>({.dim_qk = 256, .dim_vo = 256, .is_fp8 = is_fp8});
  }
}

TEST(Gather, many_short_pieces_and_no_keys) {
  for (const emulator::Mode mode : {emulator::Mode::kRandom, emulator::Mode::kLazy}) {
    expect_right<BFloat16>({.batch = 7, .queries = 3, .keys = 230, .page_size = 9, .ctas = 2},
                           mode);
    expect_right<BFloat16>(
        {.batch = 7, .queries = 3, .keys = 230, .page_size = 9, .is_fp8 = true, .ctas = 2}, mode);
  }
}

}  // namespace
}  // namespace pagoda::mha_sm90
