// A call of an attention kernel that the emulator runs by itself: causal, over pages of 16 keys, with
// instances so small that few keys make several tiles and rings that wrap. Plain loops in double say
// what it must leave.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "arch/emu/runtime/launch.hpp"
#include "core/element.hpp"
#include "kernels/attention_params.hpp"
#include "kernels/emulated/kernel.hpp"
#include "operand/kv_tma_tile.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::emulated {

struct AttentionSequence {
  int rows, keys;
};

struct AttentionShape {
  const char* kernel;
  std::vector<AttentionSequence> sequences;
  int num_kv_heads, group;
  int ctas;
  int num_splits = 1;
  kernel::Schedule schedule = kernel::Schedule::kQueue;
  bool is_gathered = false;
};

// Causal attention over pages of 16 keys. Ragged rows; the cache is NaN where no key lies.
class AttentionCase {
 public:
  static constexpr int kDepth = 64, kPageSize = 16;
  static constexpr uint16_t kNan = 0xffff;

  AttentionCase(const AttentionShape& shape, uint64_t seed)
      : shape_(shape), random_(static_cast<uint32_t>(seed)) {
    for (const AttentionSequence& s : shape.sequences) {
      cu_rows_.push_back(cu_rows_.back() + s.rows);
      lengths_.push_back(s.keys);
      table_stride_ = std::max(table_stride_, (s.keys - 1) / kPageSize + 1);
    }
    table_.resize(shape.sequences.size() * static_cast<size_t>(table_stride_));
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), random_);
    q_.assign(rows() * heads() * kDepth, 0);
    for (uint16_t& x : q_) x = draw();
    k_.assign(cache_rows() * kv_heads() * kDepth, kNan);
    v_ = k_;
    fill_cache();
    out_.assign(q_.size(), kNan);
    lse_.assign(rows() * heads(), std::numeric_limits<float>::quiet_NaN());
  }

  // Traits: Kernel, Config, block_rows, blocks (of a slot of partial results), fuses_heads.
  template <class Traits>
  Outcome run(const emulator::Options& options) {
    using Kernel = typename Traits::Kernel;
    kernel::AttentionParams params = arguments<Traits>();
    const size_t slots = 2 * static_cast<size_t>(std::max(shape_.ctas, params.grid.size()));
    const size_t blocks = slots * Traits::blocks;
    std::vector<float> partial_out(blocks * Traits::block_rows * kDepth);
    std::vector<float> partial_stats(blocks * Traits::block_rows * 4);
    std::vector<uint32_t> counters(blocks + 1);
    params.partial_out = partial_out.data();
    params.partial_stats = partial_stats.data();
    params.counters = counters.data() + 1;
    params.grid_counter = counters.data();
    Outcome outcome;
    outcome.result = emulator::launch<Kernel>(
        emulator::shape_of<Kernel>(shape_.kernel, {shape_.ctas}), params,
        {emulator::input("q", q_.data(), q_.size()), emulator::input("k", k_.data(), k_.size()),
         emulator::input("v", v_.data(), v_.size()),
         emulator::input("cu_rows", cu_rows_.data(), cu_rows_.size()),
         emulator::input("lengths", lengths_.data(), lengths_.size()),
         emulator::input("table", table_.data(), table_.size()),
         emulator::output("out", out_.data(), out_.size()),
         emulator::output("lse", lse_.data(), lse_.size()),
         emulator::output("partial_out", partial_out.data(), partial_out.size()),
         emulator::output("partial_stats", partial_stats.data(), partial_stats.size()),
         emulator::inout("counters", counters.data(), counters.size())},
        options);
    for (size_t i = 0; i < counters.size(); ++i) outcome.check("counters", i, counters[i], 0U);
    check_rows(outcome);
    return outcome;
  }

 private:
  [[nodiscard]] size_t rows() const { return static_cast<size_t>(cu_rows_.back()); }
  [[nodiscard]] size_t kv_heads() const { return static_cast<size_t>(shape_.num_kv_heads); }
  [[nodiscard]] size_t heads() const { return kv_heads() * static_cast<size_t>(shape_.group); }
  [[nodiscard]] size_t cache_rows() const { return table_.size() * kPageSize; }
  // Of the first element.
  [[nodiscard]] size_t cache_at(size_t sequence, size_t key, size_t kv_head) const {
    const size_t page = sequence * static_cast<size_t>(table_stride_) + key / kPageSize;
    const size_t row = static_cast<size_t>(table_[page]) * kPageSize + key % kPageSize;
    return (row * kv_heads() + kv_head) * kDepth;
  }
  uint16_t draw() { return core::float_to_bf16(normal_(random_)); }

  void fill_cache() {
    for (size_t b = 0; b < lengths_.size(); ++b) {
      for (size_t key = 0; key < static_cast<size_t>(lengths_[b]); ++key) {
        for (size_t head = 0; head < kv_heads(); ++head) {
          for (size_t i = cache_at(b, key, head), end = i + kDepth; i < end; ++i) {
            k_[i] = draw();
            v_[i] = draw();
          }
        }
      }
    }
  }

  template <class Traits>
  kernel::AttentionParams arguments() {
    using Config = typename Traits::Config;
    const int32_t fused = Traits::fuses_heads ? shape_.group : 1;
    const int32_t block_tokens = Traits::block_rows / fused;
    using Indices = PagedRowIndices<Config::tile.BN, kPageSize>;
    using Tile = KVTmaTile<typename Config::T, Indices::k_issue_rows, kDepth, Config::tile.swizzle>;
    const auto num_heads = static_cast<int32_t>(heads());
    kernel::AttentionParams params;
    params.sequences.batch = static_cast<int32_t>(lengths_.size());
    params.sequences.cu_rows = cu_rows_.data();
    params.sequences.keys.kind = KeyRowsKind::kPaged;
    params.sequences.keys.paged = {.pages = table_.data(),
                                   .table_stride = table_stride_,
                                   .lengths = lengths_.data(),
                                   .page_size = kPageSize,
                                   .row_stride = kPageSize};
    params.num_kv_heads = shape_.num_kv_heads;
    params.group = shape_.group;
    params.dim_qk = params.dim_vo = kDepth;
    params.q_data = q_.data();
    params.out_data = out_.data();
    params.lse = lse_.data();
    params.q_rows = params.out_rows = {0, num_heads * kDepth, kDepth};
    params.lse_rows = {0, num_heads, 1};
    params.is_out_by_tma = true;
    params.mask.interval.rule.right = 0;
    params.score_map = softmax::score_map(scale(), 0);
    params.grid.batch = params.sequences.batch;
    params.schedule = shape_.schedule;
    params.grid.num_heads = num_heads / fused;
    params.grid.tile_rows = Traits::blocks * block_tokens;
    params.grid.rows = cu_rows_.back();
    params.grid.cu_rows = cu_rows_.data();
    params.grid.num_splits = shape_.num_splits;
    params.grid.order = schedule::TileOrder::kLongestFirst;
    params.is_gathered = shape_.is_gathered;
    params.k_data = k_.data();
    params.v_data = v_.data();
    const auto row = static_cast<int64_t>(kv_heads()) * kDepth;
    params.k_rows = params.v_rows = {kPageSize * row, row, kDepth};
    params.q = rows_map(q_, Config::tile.swizzle, fused, block_tokens);
    params.out = rows_map(out_, arch::Swizzle::k128B, fused, block_tokens);
    KVRows cache{.address = reinterpret_cast<uint64_t>(k_.data()),
                 .num_rows = cache_rows(),
                 .num_heads = kv_heads(),
                 .depth = kDepth,
                 .row_stride_bytes = kv_heads() * kDepth * 2,
                 .head_stride_bytes = kDepth * 2};
    params.k = Tile::tensor_map(cache);
    cache.address = reinterpret_cast<uint64_t>(v_.data());
    params.v = Tile::tensor_map(cache);
    return params;
  }

  // Boxes of `tokens` tokens of `fused` heads.
  [[nodiscard]] arch::TensorMapSpec rows_map(const std::vector<uint16_t>& rows_of,
                                             arch::Swizzle swizzle, int32_t fused,
                                             int32_t tokens) const {
    const uint64_t row_bytes = heads() * kDepth * 2;
    return {.rank = 4,
            .address = reinterpret_cast<uint64_t>(rows_of.data()),
            .dims = {kDepth, heads(), rows(), 1},
            .strides_bytes = {kDepth * 2, row_bytes, row_bytes},
            .box = {swizzle_width_bytes(swizzle) / 2, static_cast<uint32_t>(fused),
                    static_cast<uint32_t>(tokens), 1},
            .swizzle = swizzle};
  }

  static float scale() { return 1 / std::sqrt(static_cast<float>(kDepth)); }

  void check_rows(Outcome& outcome) const {
    const std::vector<float> q = widen(q_), k = widen(k_), v = widen(v_), out = widen(out_);
    for (size_t b = 0; b < lengths_.size(); ++b) {
      const auto [num_rows, num_keys] = shape_.sequences[b];
      for (int i = 0; i < num_rows; ++i) {
        const auto row = static_cast<size_t>(cu_rows_[b] + i);
        for (size_t head = 0; head < heads(); ++head) {
          const size_t at = row * heads() + head;
          check_row(outcome, b, num_keys - num_rows + i + 1,
                    head / static_cast<size_t>(shape_.group), at, q.data() + at * kDepth, k, v,
                    out.data() + at * kDepth);
        }
      }
    }
  }

  // A row that sees the first `num_keys` keys.
  void check_row(Outcome& outcome, size_t sequence, int num_keys, size_t kv_head, size_t at,
                 const float* q, const std::vector<float>& k, const std::vector<float>& v,
                 const float* out) const {
    double sum = 0, expected[kDepth] = {};
    for (size_t key = 0; static_cast<int>(key) < num_keys; ++key) {
      const size_t from = cache_at(sequence, key, kv_head);
      double product = 0;
      for (size_t i = 0; i < kDepth; ++i) product += static_cast<double>(q[i]) * k[from + i];
      const double p = std::exp(product * scale());  // scores are small: no maximum is needed
      sum += p;
      for (size_t i = 0; i < kDepth; ++i) expected[i] += p * v[from + i];
    }
    for (size_t i = 0; i < kDepth; ++i) {
      const double value = sum == 0 ? 0 : expected[i] / sum;
      outcome.check_near("out", at * kDepth + i, out[i], value, 0.01 * (1 + std::abs(value)));
    }
    outcome.check_near("lse", at, lse_[at], std::log(sum), 1e-3);
  }

  static std::vector<float> widen(const std::vector<uint16_t>& values) {
    std::vector<float> wide(values.size());
    std::transform(values.begin(), values.end(), wide.begin(), core::bf16_to_float);
    return wide;
  }

  const AttentionShape& shape_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  int32_t table_stride_ = 0;
  std::vector<int32_t> cu_rows_{0}, lengths_, table_;
  std::vector<uint16_t> q_, k_, v_, out_;
  std::vector<float> lse_;
};

}  // namespace pagoda::emulated
