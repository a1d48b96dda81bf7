// A launch of an attention kernel in the emulator: causal, over pages of 16 keys, with instances so
// small that a few keys make several KV tiles and wrap the rings. Plain loops in double compute the
// scores; testing/oracle computes the expected rows and their tolerances.
//
// Every third row is random. The scores of every other third grow from KV tile to KV tile, by 10 in
// log2 units, and those of the last third fall: in whichever order a kernel processes the tiles,
// every tile rescales some row of each warp. Every head has a sink, K and V have scales.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "arch/layout/types.hpp"
#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/common/kv_buffer/decode_arguments.hpp"
#include "kernels/common/mixed_work.hpp"
#include "kernels/mha_sm90/latent_launch.hpp"
#include "operand/kv_tma_tile.hpp"
#include "operand/paged_row_indices.hpp"
#include "pagoda/dtype.hpp"
#include "testing/emulate/kernel.hpp"
#include "testing/oracle/comparison.hpp"
#include "testing/oracle/row.hpp"

namespace pagoda::emulate {

struct AttentionSequence {
  int rows, keys;
};

struct AttentionShape {
  const char* kernel;
  std::vector<AttentionSequence> sequences;
  int num_kv_heads, group;
  int ctas;
  int packed_heads = 1;  // query heads of a row tile of tokens
  int num_splits = 1, least_split_tiles = 1;
  bool has_equal_shares = false;
  bool is_merge_shared = false;
  bool is_mixed = false;  // sequences of up to a block of tokens are decoded beside the others
  kernels::Schedule schedule = kernels::Schedule::kQueue;
  bool is_gathered = false;
  int page_size = 16;  // TMA: 16
  int dim_qk = 64;     // of Q and K; V and O have kDepth
  int window = 0;      // decoding: keys before its own that a row sees; 0: all
  float softcap = 0;
  kernels::DecodeShares shares = kernels::DecodeShares::kEven;  // kv_buffer, decoding
  bool is_v_inside_k = false;  // V is the first kDepth columns of K; dim_qk may be larger
  int side_by_side = 1;        // latent rows: CTAs that take the same keys
  bool leaps = false;  // the scores of a third of the rows leap by 150 in log2 units at tile 0
};

// Conversions of the elements of Q, K and V.
template <class T>
struct CaseElement;
template <>
struct CaseElement<arch::BFloat16> {
  using Bits = uint16_t;
  static Bits make(float value) { return core::float_to_bf16(value); }
  static float value(Bits bits) { return core::bf16_to_float(bits); }
  static constexpr DType dtype = DType::kBF16;
};
template <>
struct CaseElement<arch::Float8E4M3> {
  using Bits = uint8_t;
  static Bits make(float value) { return core::float_to_f8e4m3(value); }
  static float value(Bits bits) { return core::f8e4m3_to_float(bits); }
  static constexpr DType dtype = DType::kF8E4M3;
};

// Causal attention over a paged cache. Rows are ragged; the cache is NaN where it holds no key.
// O is bf16. T: the type of Q, KV: that of K and V; depth: the head dim of V and O.
template <class T, class KV = T, int depth = 64>
class TypedAttentionCase {
 public:
  using Element = CaseElement<T>;
  using KVElement = CaseElement<KV>;
  using Bits = typename Element::Bits;
  using KVBits = typename KVElement::Bits;
  static constexpr int kDepth = depth, kPageSize = 16;
  static constexpr KVBits kNan = static_cast<KVBits>(0xffff);
  // Of the copies of K and V by TMA.
  arch::Eviction kv_eviction = arch::Eviction::kNormal;
  // Kernels support a K scale for 8-bit K only.
  static constexpr float kKScale = sizeof(KV) == 1 ? 1.25F : 1, kVScale = 0.75F;

  TypedAttentionCase(const AttentionShape& shape, uint64_t seed)
      : shape_(shape), random_(static_cast<uint32_t>(seed)) {
    for (const AttentionSequence& s : shape.sequences) {
      cu_rows_.push_back(cu_rows_.back() + s.rows);
      lengths_.push_back(s.keys);
      table_stride_ = std::max(table_stride_, (s.keys - 1) / shape_.page_size + 1);
    }
    table_.resize(shape.sequences.size() * static_cast<size_t>(table_stride_));
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), random_);
    for (size_t head = 0; head < heads(); ++head) sinks_.push_back(normal_(random_));
    q_.assign(rows() * heads() * dim_qk(), 0);
    for (size_t i = 0; i < q_.size(); ++i) {
      const size_t column = i % dim_qk();
      q_[i] = column == 0 ? trend(i / dim_qk()) : draw<T>();
      // Column 1: those that fall leap by 105 natural units at tile 0.
      if (shape.leaps && column == 1) q_[i] = Element::make(i / dim_qk() % 3 == 2 ? 14 : 0);
    }
    k_.assign(cache_rows() * kv_heads() * dim_qk(), kNan);
    v_.assign(cache_rows() * kv_heads() * kDepth, kNan);
    out_.assign(rows() * heads() * kDepth, uint16_t{0xffff});
    lse_.assign(rows() * heads(), std::numeric_limits<float>::quiet_NaN());
  }

  // Traits: Kernel, Config, block_rows, blocks (of a tile, or slot of partial results),
  // fuses_heads.
  template <class Traits>
  Outcome run(const emulator::Options& options) {
    using Kernel = typename Traits::Kernel;
    fill_cache(Traits::Config::tile.BN);
    kernels::AttentionParams params = arguments<Traits>();
    const int32_t of_mixed =
        kernels::decode_slots(shape_.ctas) + kernels::prompt_slots(shape_.ctas);
    const int32_t of_others = 2 * std::max(shape_.ctas, params.grid.size());
    const auto slots = static_cast<size_t>(shape_.is_mixed ? of_mixed : of_others);
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
         emulator::input("sinks", sinks_.data(), sinks_.size()),
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
  template <class E>
  static constexpr arch::TensorMapType kMapType = sizeof(E) == 1 ? arch::TensorMapType::kU8
                                                                 : arch::TensorMapType::kBF16;
  [[nodiscard]] size_t rows() const { return static_cast<size_t>(cu_rows_.back()); }
  [[nodiscard]] size_t kv_heads() const { return static_cast<size_t>(shape_.num_kv_heads); }
  [[nodiscard]] size_t heads() const { return kv_heads() * static_cast<size_t>(shape_.group); }
  [[nodiscard]] size_t cache_rows() const { return table_.size() * page_size(); }
  [[nodiscard]] size_t page_size() const { return static_cast<size_t>(shape_.page_size); }
  [[nodiscard]] size_t dim_qk() const { return static_cast<size_t>(shape_.dim_qk); }
  // Index of a key's row of one head in the cache.
  [[nodiscard]] size_t cache_at(size_t sequence, size_t key, size_t kv_head) const {
    const size_t page = sequence * static_cast<size_t>(table_stride_) + key / page_size();
    const size_t row = static_cast<size_t>(table_[page]) * page_size() + key % page_size();
    return row * kv_heads() + kv_head;
  }
  template <class E>
  typename CaseElement<E>::Bits draw() {
    return CaseElement<E>::make(normal_(random_));
  }

  // Column 0 of Q and K makes the scores of two rows in three grow or fall by 7 a tile of keys.
  static Bits trend(size_t row) {
    constexpr float kSigns[] = {0, 4, -4};
    return Element::make(kSigns[row % 3]);
  }
  static KVBits height(size_t tile) {
    return KVElement::make(14 / kKScale * static_cast<float>(tile));
  }

  void fill_cache(int block_keys) {
    for (size_t b = 0; b < lengths_.size(); ++b) {
      for (size_t key = 0; key < static_cast<size_t>(lengths_[b]); ++key) {
        for (size_t head = 0; head < kv_heads(); ++head) {
          const size_t row = cache_at(b, key, head);
          for (size_t i = 0; i < std::max<size_t>(kDepth, dim_qk()); ++i) {
            if (i < dim_qk()) k_[row * dim_qk() + i] = draw<KV>();
            if (i < kDepth) v_[row * kDepth + i] = draw<KV>();
          }
          const size_t tile = key / static_cast<size_t>(block_keys);
          k_[row * dim_qk()] = height(tile);
          if (shape_.leaps) k_[row * dim_qk() + 1] = KVElement::make(tile == 0 ? 60 / kKScale : 0);
        }
      }
    }
  }

  // Kernels without TMA use no map.
  template <class Config>
  static constexpr arch::Swizzle swizzle_of() {
    if constexpr (requires { Config::tile.swizzle; }) return Config::tile.swizzle;
    return arch::Swizzle::k128B;
  }

  template <class Config>
  static constexpr arch::Swizzle kv_swizzle_of() {
    if constexpr (requires { Config::tile.loaded_swizzle(); }) return Config::tile.loaded_swizzle();
    return swizzle_of<Config>();
  }

  template <class Config>
  static constexpr arch::Swizzle out_swizzle_of() {
    if constexpr (requires { Config::tile.out_swizzle(); }) return Config::tile.out_swizzle();
    return sizeof(T) == 1 ? arch::Swizzle::k64B : arch::Swizzle::k128B;
  }

  template <class Traits>
  kernels::AttentionParams arguments() {
    using Config = typename Traits::Config;
    const int32_t fused = Traits::fuses_heads ? shape_.group : shape_.packed_heads;
    const int32_t block_tokens = Traits::block_rows / fused;
    using Indices = operand::PagedRowIndices<Config::tile.BN, kPageSize>;
    constexpr arch::Swizzle swizzle = swizzle_of<Config>();
    using Tile = operand::KVTmaTile<KV, Indices::k_issue_rows, kDepth, kv_swizzle_of<Config>()>;
    const auto num_heads = static_cast<int32_t>(heads());
    kernels::AttentionParams params;
    params.sequences.batch = static_cast<int32_t>(lengths_.size());
    params.sequences.cu_rows = cu_rows_.data();
    params.sequences.keys.kind = operand::KeyRowsKind::kPaged;
    params.sequences.keys.paged = {.pages = table_.data(),
                                   .table_stride = table_stride_,
                                   .lengths = lengths_.data(),
                                   .page_size = shape_.page_size,
                                   .row_stride = static_cast<uint32_t>(shape_.page_size)};
    params.num_kv_heads = shape_.num_kv_heads;
    params.group = shape_.group;
    params.by_group = arch::Divisor{shape_.group};
    params.dim_qk = shape_.dim_qk;
    params.dim_vo = kDepth;
    params.q_data = q_.data();
    params.out_data = out_.data();
    params.lse = lse_.data();
    params.sinks = sinks_.data();
    params.k_scales.shared = kKScale;
    params.v_scales.shared = kVScale;
    params.q_rows = {0, num_heads * shape_.dim_qk, shape_.dim_qk};
    params.out_rows = {0, num_heads * kDepth, kDepth};
    params.lse_rows = {0, num_heads, 1};
    params.is_out_by_tma = true;
    params.mask.interval.rule.right = 0;
    if (shape_.window > 0) params.mask.interval.rule.left = shape_.window;
    params.score_map = softmax::score_map(scale(), shape_.softcap);
    params.schedule = shape_.schedule;
    schedule::TileGrid grid{.batch = params.sequences.batch,
                            .num_heads = num_heads / fused,
                            .tile_rows = Traits::blocks * block_tokens,
                            .rows = cu_rows_.back(),
                            .cu_rows = cu_rows_.data(),
                            .num_splits = shape_.num_splits,
                            .least_split_tiles = shape_.least_split_tiles,
                            .order = schedule::TileOrder::kLongestFirst};
    if (shape_.has_equal_shares) grid.divide_among(shape_.ctas);
    params.grid = grid;
    params.is_merge_shared = shape_.is_merge_shared;
    if (shape_.is_mixed) {
      params.max_rows = block_tokens;
      params.min_rows = block_tokens + 1;
    }
    params.row_block = {fused, block_tokens, arch::Divisor{fused}};
    params.is_gathered = shape_.is_gathered;
    params.k_data = k_.data();
    params.v_data = v_.data();
    const auto key_rows = [&](int32_t dim) -> decltype(params.k_rows) {
      const int64_t row = int64_t{shape_.num_kv_heads} * dim;
      return {shape_.page_size * row, row, dim};
    };
    params.k_rows = key_rows(shape_.dim_qk);
    params.v_rows = key_rows(kDepth);
    params.kv_element_bytes = sizeof(KV);
    params.q_dtype = Element::dtype;
    params.kv_dtype = KVElement::dtype;
    params.kv_eviction = kv_eviction;
    params.q = rows_map(q_, dim_qk(), kMapType<T>, swizzle, fused, block_tokens);
    params.out = rows_map(out_, kDepth, arch::TensorMapType::kBF16, out_swizzle_of<Config>(), fused,
                          block_tokens);
    const auto cache = [&](const std::vector<KVBits>& keys, size_t dim) {
      return Tile::tensor_map(operand::KVRows{.address = reinterpret_cast<uint64_t>(keys.data()),
                                              .num_rows = cache_rows(),
                                              .num_heads = kv_heads(),
                                              .depth = dim,
                                              .row_stride_bytes = kv_heads() * dim * sizeof(KV),
                                              .head_stride_bytes = dim * sizeof(KV),
                                              .type = kMapType<KV>});
    };
    const int32_t clusters = shape_.ctas / Traits::Kernel::kClusterSize;
    int tokens = 0;  // most of a sequence
    for (const AttentionSequence& sequence : shape_.sequences) {
      tokens = std::max(tokens, sequence.rows);
    }
    constexpr bool is_on_kv_buffer = requires { Config::tile.is_decode; };
    constexpr int kDecodeRows = is_on_kv_buffer ? Traits::block_rows : 16;
    const int of_tile = kDecodeRows / shape_.group;  // 0: a token has several row tiles
    const int row_tiles =
        of_tile == 0 ? tokens * ((shape_.group - 1) / kDecodeRows + 1) : (tokens - 1) / of_tile + 1;
    params.decode = kernels::kv_buffer::decode_arguments(
        params, std::max(1, clusters - 1), 1, shape_.shares, row_tiles, kDecodeRows,
        shape_.window > 0 ? shape_.window + tokens : INT32_MAX);
    if (shape_.is_v_inside_k && !is_on_kv_buffer) {
      mha_sm90::set_latent_work(shape_.ctas, shape_.side_by_side, params);
    }
    params.k = cache(k_, dim_qk());
    params.v = cache(v_, kDepth);
    return params;
  }

  // Boxes of `tokens` tokens of `fused` heads.
  template <class Word>
  [[nodiscard]] arch::TensorMapSpec rows_map(const std::vector<Word>& rows_of, uint64_t dim,
                                             arch::TensorMapType type, arch::Swizzle swizzle,
                                             int32_t fused, int32_t tokens) const {
    const uint64_t row_bytes = heads() * dim * sizeof(Word);
    return {.type = type,
            .rank = 4,
            .address = reinterpret_cast<uint64_t>(rows_of.data()),
            .dims = {dim, heads(), rows(), 1},
            .strides_bytes = {dim * sizeof(Word), row_bytes, row_bytes},
            .box = {static_cast<uint32_t>(swizzle_width_bytes(swizzle) / sizeof(Word)),
                    static_cast<uint32_t>(fused), static_cast<uint32_t>(tokens), 1},
            .swizzle = swizzle};
  }

  // 1 / sqrt(64), for any depth: the scores of a third of the rows grow by 10 a KV tile.
  static float scale() { return 0.125F; }

  void check_rows(Outcome& outcome) const {
    const std::vector<float> q = widen<T>(q_), k = widen<KV>(k_), v = widen<KV>(v_);
    const std::vector<float> out = widen<arch::BFloat16>(out_);
    oracle::Comparison comparison;
    for (size_t b = 0; b < lengths_.size(); ++b) {
      const auto [num_rows, num_keys] = shape_.sequences[b];
      for (int i = 0; i < num_rows; ++i) {
        const auto row = static_cast<size_t>(cu_rows_[b] + i);
        for (size_t head = 0; head < heads(); ++head) {
          const size_t at = row * heads() + head;
          const size_t kv_head = head / static_cast<size_t>(shape_.group);
          const oracle::ExpectedRow expected = oracle::expect_row(
              visible_keys(b, num_keys - num_rows + i + 1, kv_head, q.data() + at * dim_qk(), k, v),
              kDepth, {Element::dtype, DType::kBF16}, double{kVScale}, double{sinks_[head]});
          comparison.add(expected, {static_cast<int32_t>(b), i, static_cast<int32_t>(head)},
                         std::span(out).subspan(at * kDepth, kDepth), &lse_[at]);
        }
      }
    }
    comparison.finish();
    outcome.add(comparison.checked(), comparison.mismatches(), comparison.message());
    outcome.error_share = comparison.shares().worst();
  }

  // The first `num_keys` keys, or the window of them, as a row sees them.
  [[nodiscard]] std::vector<oracle::VisibleKey> visible_keys(size_t sequence, int num_keys,
                                                             size_t kv_head, const float* q,
                                                             const std::vector<float>& k,
                                                             const std::vector<float>& v) const {
    std::vector<oracle::VisibleKey> keys;
    const double factor = double{scale()} * double{kKScale};
    const int first = shape_.window > 0 ? std::max(0, num_keys - 1 - shape_.window) : 0;
    for (auto key = static_cast<size_t>(first); static_cast<int>(key) < num_keys; ++key) {
      const size_t row = cache_at(sequence, key, kv_head);
      const float* const k_row = k.data() + row * dim_qk();
      oracle::VisibleKey visible{.value = shape_.is_v_inside_k ? k_row : v.data() + row * kDepth};
      for (size_t i = 0; i < dim_qk(); ++i) {
        const double term = factor * static_cast<double>(q[i]) * static_cast<double>(k_row[i]);
        visible.score += term;
        visible.magnitude += std::abs(term);
      }
      if (shape_.softcap > 0) {
        const double cap{shape_.softcap};
        visible.score = cap * std::tanh(visible.score / cap);
        visible.magnitude += cap;  // whose last digits bound those of tanh
      }
      keys.push_back(visible);
    }
    return keys;
  }

  template <class E>
  static std::vector<float> widen(const std::vector<typename CaseElement<E>::Bits>& values) {
    std::vector<float> wide(values.size());
    std::transform(values.begin(), values.end(), wide.begin(), CaseElement<E>::value);
    return wide;
  }

  const AttentionShape& shape_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  int32_t table_stride_ = 0;
  std::vector<int32_t> cu_rows_{0}, lengths_, table_;
  std::vector<Bits> q_;
  std::vector<KVBits> k_, v_;
  std::vector<uint16_t> out_;
  std::vector<float> lse_, sinks_;
};

using AttentionCase = TypedAttentionCase<arch::BFloat16>;

}  // namespace pagoda::emulate
