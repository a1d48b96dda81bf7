// The steps of a work item: gather, pack, Q K^T, softmax, P V, merge, store.
#include "backends/cpu/tile_worker.hpp"

#include <algorithm>
#include <atomic>

#include "core/element.hpp"
#include "mask/expression.hpp"
#include "mask/row_mask.hpp"
#include "softmax/online.hpp"

namespace pagoda::cpu {
namespace {

// Up to this many rows a call is bound by memory and uses smaller tiles, whose panels stay in
// cache.
constexpr int32_t kColdRows = 32;
constexpr int32_t kColdTileKeys = 128;
// The distance of V's panels is not a multiple of 4 KiB, where stores alias (4K aliasing): 5 to 7
// % of a decode.
constexpr int32_t kPanelGap = kPanel;
// The prefetch distance of rows.
constexpr int32_t kAheadBytes = 8 << 10;
constexpr int32_t kQueryRowsAhead = 8;

static_assert(static_cast<int>(DType::kF32) == kElementF32);
static_assert(static_cast<int>(DType::kF16) == kElementF16);
static_assert(static_cast<int>(DType::kBF16) == kElementBF16);
static_assert(static_cast<int>(DType::kF8E4M3) == kElementF8E4M3);
static_assert(kMaxTileKeys <= mask::kMaxRun);

int element(DType dtype) { return static_cast<int>(dtype); }

const void* at(const void* base, DType dtype, int64_t index) {
  return static_cast<const std::byte*>(base) + index * size_bytes(dtype);
}

// Prefetches the cache lines of a row: rows of one head are far apart.
template <bool ForWrite>
void prefetch(const void* row, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(static_cast<const std::byte*>(row) + i, ForWrite ? 1 : 0);
  }
}

// Addresses of keys [first, first + count), page by page; the stride within a page is constant.
void gather_rows(const core::Problem& problem, const core::KVView& view, int32_t sequence,
                 int32_t kv_head, int32_t first, int32_t count, const void** rows) {
  const int64_t step = view.row_stride * size_bytes(view.dtype);
  const int32_t pad = problem.leftpad(sequence);
  for (int32_t i = 0; i < count;) {
    int32_t run = count - i;
    if (problem.kv_kind == core::KVKind::kPaged) {
      run = std::min(run, problem.page_size - (pad + first + i) % problem.page_size);
    }
    const auto* row = static_cast<const std::byte*>(
        at(view.data, view.dtype, problem.kv_offset(view, sequence, first + i, kv_head)));
    for (const int32_t end = i + run; i < end; ++i, row += step) rows[i] = row;
  }
}

}  // namespace

TileWorker::TileWorker(const core::Problem& problem, const TileOps& ops,
                       const TileGeometry& geometry, const Partials& partials, std::byte* scratch)
    : problem_(problem),
      ops_(ops),
      g_(geometry),
      partials_(partials),
      is_interval_mask_(mask::is_interval(problem.mask)),
      has_mods_(!is_interval_mask_ || !problem.score_mod.is_identity() ||
                problem.functor.type != nullptr || !(problem.softmax_scale > 0) ||
                problem.q_scales.values != nullptr),
      q_(scratch + geometry.q),
      o_(reinterpret_cast<float*>(scratch + geometry.o)),
      scores_{reinterpret_cast<float*>(scratch + geometry.scores),
              reinterpret_cast<float*>(scratch + geometry.scores + geometry.scores_bytes())},
      probs_{scratch + geometry.probs, scratch + geometry.probs + geometry.probs_bytes()},
      k_(reinterpret_cast<float*>(scratch + geometry.k)),
      v_(reinterpret_cast<float*>(scratch + geometry.v)),
      convert_(scratch + geometry.convert),
      q_panel_(scratch + geometry.q_panel) {}

void TileWorker::run(const schedule::WorkItem& item, int32_t kv_head) {
  begin_item(item, kv_head);
  if (item.key_begin < item.key_end) {
    ops_.begin();
    for (int32_t key = item.key_begin; key < item.key_end; key += tile_keys_) {
      const int32_t count = std::min(tile_keys_, item.key_end - key);
      load_tile(key, count);
      compute_tile(key, count);
    }
    ops_.end();
  }
  if (item.num_splits > 1) {
    write_partial();
    if (!is_last_of_group()) return;
    merge_group();
  }
  write_rows();
}

void TileWorker::begin_item(const schedule::WorkItem& item, int32_t kv_head) {
  item_ = &item;
  kv_head_ = kv_head;
  head_count_ = item.head_count;
  rows_ = item.rows();
  is_cold_ = rows_ <= kColdRows;
  tile_keys_ = is_cold_ ? std::min(kColdTileKeys, g_.tile_keys) : g_.tile_keys;
  // With scales of Q per head modify_scores() takes each row's own.
  scale_ = problem_.score_scale(item.sequence, kv_head * problem_.group);
  started_.fill(false);
  std::fill_n(m_.begin(), rows_, softmax::kMinusInfinity);
  std::fill_n(l_.begin(), rows_, 0.0F);
  if (item.key_begin >= item.key_end) return;

  const int32_t b = item.sequence;
  const int32_t seqlen_kv = problem_.seqlen_kv(b);
  const int32_t position = problem_.q_position(b);
  const int64_t q_row_bytes = int64_t{g_.depth} * g_.element_bytes;
  for (int32_t row = 0; row < rows_; ++row) {
    const auto r = static_cast<size_t>(row);
    if (row % head_count_ == 0) {
      const mask::Interval keys =
          mask::visible_interval(problem_.mask, b, position + token(row), seqlen_kv);
      lo_[r] = keys.lo;
      hi_[r] = keys.hi;
    } else {
      lo_[r] = lo_[r - 1];
      hi_[r] = hi_[r - 1];
    }
    const int64_t offset = problem_.row_offset(problem_.q, b, token(row), q_head(row));
    if (const int32_t later = row + kQueryRowsAhead; later < rows_) {
      prefetch<false>(at(problem_.q.data, problem_.q.dtype,
                         problem_.row_offset(problem_.q, b, token(later), q_head(later))),
                      problem_.head_dim_qk * size_bytes(problem_.q.dtype));
    }
    ops_.pack_q(q_ + row * q_row_bytes, at(problem_.q.data, problem_.q.dtype, offset),
                element(problem_.q.dtype), problem_.head_dim_qk, g_.depth);
  }
  is_direct_k_ = rows_ <= ops_.direct_k_rows;
  is_direct_v_ = rows_ <= ops_.direct_v_rows;
  if (is_direct_k_) {
    std::array<const void*, kPanel> rows;
    for (int32_t row = 0; row < rows_; ++row)
      rows[static_cast<size_t>(row)] = q_ + row * q_row_bytes;
    const PanelSource q{rows.data(), rows_, ops_.is_bf16 ? kElementBF16 : kElementF32,
                        g_.depth,    0,     0};
    ops_.pack_k(q_panel_, &q, g_.depth, convert_);
  }
}

// Packs K and V of keys [first_key, first_key + count). For few rows it computes the scores from
// the rows of K instead and does not pack V.
void TileWorker::load_tile(int32_t first_key, int32_t count) {
  const core::Problem& p = problem_;
  // In the order of their use, so that V's first rows are prefetched while K's last are used.
  const void** k_rows = rows_ahead_.data();
  const void** v_rows = k_rows + count;
  const int32_t next_key = first_key + count;
  const int32_t next = is_cold_ ? std::min(kMaxRowsAhead, item_->key_end - next_key) : 0;
  gather_rows(p, p.k, item_->sequence, kv_head_, first_key, count, k_rows);
  gather_rows(p, p.v, item_->sequence, kv_head_, first_key, count, v_rows);
  gather_rows(p, p.k, item_->sequence, kv_head_, next_key, next, v_rows + count);
  const auto ahead = [](DType dtype, int32_t width) {
    const auto row_bytes = static_cast<int32_t>(size_bytes(dtype)) * width;
    return std::clamp(kAheadBytes / row_bytes, 1, kMaxRowsAhead);
  };
  const PanelSource k{.rows = k_rows,
                      .count = count,
                      .element = element(p.k.dtype),
                      .width = p.head_dim_qk,
                      .ahead = ahead(p.k.dtype, p.head_dim_qk),
                      .known = 2 * count + next};
  v_source_ = {.rows = v_rows,
               .count = count,
               .element = element(p.v.dtype),
               .width = p.head_dim_vo,
               .ahead = ahead(p.v.dtype, p.head_dim_vo),
               .known = count + next};
  if (is_direct_k_) {
    const DirectScores scores{.scores = scores_[0],
                              .ld = g_.tile_keys,
                              .q = q_,
                              .ldq = g_.depth_words(),
                              .q_panel = q_panel_,
                              .rows = rows_,
                              .k = &k,
                              .scratch = convert_};
    ops_.direct_scores(&scores);
  } else {
    ops_.pack_k(k_, &k, g_.depth, convert_);
  }
  if (is_direct_v_) return;
  v_panel_words_ = int64_t{core::align_up(count, 32) / g_.word_elements()} * kPanel + kPanelGap;
  ops_.pack_v(v_, &v_source_, v_panel_words_);
}

// The next row group from `first_row` on with visible columns of the tile; advances `first_row`.
bool TileWorker::next_group(int32_t& first_row, int32_t first_key, int32_t count,
                            GroupTile& group) const {
  for (; first_row < rows_; first_row += kRowGroup) {
    group.first_row = first_row;
    group.rows = std::min(kRowGroup, rows_ - first_row);
    int32_t begin = count;
    int32_t end = 0;
    for (int32_t i = 0; i < group.rows; ++i) {
      const auto r = static_cast<size_t>(first_row + i);
      const auto n = static_cast<size_t>(i);
      group.lo[n] = std::clamp(lo_[r] - first_key, 0, count);
      group.hi[n] = std::clamp(hi_[r] - first_key, 0, count);
      if (group.lo[n] >= group.hi[n]) continue;
      begin = std::min(begin, group.lo[n]);
      end = std::max(end, group.hi[n]);
    }
    if (begin >= end) continue;
    group.begin = core::align_down(begin, 32);
    group.columns = core::align_up(end - group.begin, 32);
    for (int32_t i = 0; i < group.rows; ++i) {
      group.lo[static_cast<size_t>(i)] -= group.begin;
      group.hi[static_cast<size_t>(i)] -= group.begin;
    }
    first_row += kRowGroup;
    return true;
  }
  return false;
}

// Q K^T, softmax and P V of every row group against the loaded tile. The softmax of one group is
// interleaved with P V of the group before it and Q K^T of the group after it: AMX products run in
// the tile unit, so the vector units are free.
void TileWorker::compute_tile(int32_t first_key, int32_t count) {
  std::array<GroupTile, 3> ring;
  int32_t row = 0;
  int32_t n = 0;
  if (!next_group(row, first_key, count, ring[0])) return;
  if (!is_direct_k_) multiply_qk(ring[0], nullptr);
  for (;; ++n) {
    GroupTile& current = ring[static_cast<size_t>(n % 3)];
    GroupTile& next = ring[static_cast<size_t>((n + 1) % 3)];
    const bool has_previous = n > 0;
    const bool has_next = next_group(row, first_key, count, next);
    if (has_mods_) modify_scores(current, first_key);
    const int32_t middle = !has_previous ? 0 : (has_next ? current.rows / 2 : current.rows);
    if (!has_previous && !has_next) {
      const ScoreTile all = score_tile(current, 0, current.rows);
      ops_.softmax(&all);
    }
    if (has_previous) {
      const ScoreTile side = score_tile(current, 0, middle);
      multiply_pv(ring[static_cast<size_t>((n + 2) % 3)], &side);
    }
    if (!has_next) {
      multiply_pv(current, nullptr);
      return;
    }
    next.buffer = 1 - current.buffer;
    const ScoreTile side = score_tile(current, middle, current.rows);
    multiply_qk(next, &side);
  }
}

// The softmax of rows [begin, end) of a group.
ScoreTile TileWorker::score_tile(const GroupTile& group, int32_t begin, int32_t end) {
  const int64_t row = group.first_row + begin;
  const int64_t offset = int64_t{begin} * g_.tile_keys;
  const auto buffer = static_cast<size_t>(group.buffer);
  return {.scores = scores_[buffer] + group.begin + offset,
          .probs = probs_[buffer] + (group.begin + offset) * g_.element_bytes,
          .ld = g_.tile_keys,
          .rows = end - begin,
          .keys = group.columns,
          .lo = group.lo.data() + begin,
          .hi = group.hi.data() + begin,
          .scale_log2 = has_mods_ ? softmax::kLog2e : scale_ * softmax::kLog2e,
          .has_minus_infinity = has_mods_,
          .m = m_.data() + row,
          .l = l_.data() + row,
          .o = o_ + row * g_.columns,
          .ldo = g_.columns,
          .columns = g_.columns,
          .is_first = !started_[static_cast<size_t>(group.first_row / kRowGroup)]};
}

void TileWorker::multiply_qk(const GroupTile& group, const ScoreTile* side) {
  const Gemm product{.c = scores_[static_cast<size_t>(group.buffer)] + group.begin,
                     .ldc = g_.tile_keys,
                     .a = q_ + int64_t{group.first_row} * g_.depth * g_.element_bytes,
                     .lda = g_.depth_words(),
                     .panels = k_ + group.begin / kPanel * g_.k_panel_words(),
                     .panel_words = g_.k_panel_words(),
                     .rows = group.rows,
                     .num_panels = group.columns / kPanel,
                     .contraction = g_.depth_words(),
                     .accumulate = false};
  ops_.gemm(&product, side);
}

void TileWorker::multiply_pv(const GroupTile& group, const ScoreTile* side) {
  bool& started = started_[static_cast<size_t>(group.first_row / kRowGroup)];
  const int32_t per_word = g_.word_elements();
  if (is_direct_v_) {
    PanelSource v = v_source_;
    v.rows += group.begin;
    v.count = std::min(group.columns, v.count - group.begin);
    v.known -= group.begin;
    const DirectOutput output{.o = o_,
                              .ldo = g_.columns,
                              .probs = probs_[0] + int64_t{group.begin} * g_.element_bytes,
                              .ldp = g_.tile_keys / per_word,
                              .rows = group.rows,
                              .v = &v,
                              .accumulate = started};
    ops_.direct_output(&output);
    started = true;
    return;
  }
  const Gemm product{
      .c = o_ + int64_t{group.first_row} * g_.columns,
      .ldc = g_.columns,
      .a = probs_[static_cast<size_t>(group.buffer)] + int64_t{group.begin} * g_.element_bytes,
      .lda = g_.tile_keys / per_word,
      .panels = v_ + group.begin / per_word * kPanel,
      .panel_words = v_panel_words_,
      .rows = group.rows,
      .num_panels = g_.columns / kPanel,
      .contraction = group.columns / per_word,
      .accumulate = started};
  ops_.gemm(&product, side);
  started = true;
}

void TileWorker::modify_scores(const GroupTile& group, int32_t tile_key) {
  const ScoreMod& mod = problem_.score_mod;
  const int32_t position = problem_.q_position(item_->sequence);
  const int32_t first_key = tile_key + group.begin;
  for (int32_t i = 0; i < group.rows; ++i) {
    const int32_t row = group.first_row + i;
    const int32_t q_position = position + token(row);
    const int32_t head = q_head(row);
    float* scores =
        scores_[static_cast<size_t>(group.buffer)] + group.begin + int64_t{i} * g_.tile_keys;
    const ScoreMods mods{
        .scale = problem_.score_scale(item_->sequence, head),
        .softcap = mod.softcap,
        .alibi_slope = mod.alibi_slopes.empty()
                           ? 0.0F
                           : core::elements(mod.alibi_slopes)[static_cast<size_t>(head)],
        .first_delta = static_cast<float>(int64_t{first_key} - q_position)};
    ops_.modify(scores, group.columns, &mods);
    if (!is_interval_mask_ || mod.functor != nullptr || problem_.functor.type != nullptr) {
      mask::apply(problem_, {item_->sequence, token(row), head, q_position}, first_key,
                  group.columns, scores);
    }
  }
}

void TileWorker::write_partial() {
  const int64_t first = kv_head_ * partials_.num_partial_rows + item_->partial_row;
  float* sums = partials_.sums + first * 2;
  for (int32_t row = 0; row < rows_; ++row) {
    const auto r = static_cast<size_t>(row);
    sums[2 * row] = m_[r];
    sums[2 * row + 1] = l_[r];
    if (started_[r / kRowGroup]) {
      std::copy_n(o_ + int64_t{row} * g_.columns, g_.columns,
                  partials_.o + (first + row) * g_.columns);
    }
  }
}

// Every item decrements the counter after it has stored its partial result (acq_rel); the worker
// that reaches zero therefore sees all partial results.
bool TileWorker::is_last_of_group() const {
  int32_t& counter = partials_.counters[kv_head_ * partials_.num_merge_groups + item_->merge_group];
  return std::atomic_ref<int32_t>(counter).fetch_sub(1, std::memory_order_acq_rel) == 1;
}

// In the order of the splits, so that the result does not depend on timing.
void TileWorker::merge_group() {
  const int64_t first =
      kv_head_ * partials_.num_partial_rows + item_->partial_row - int64_t{item_->split} * rows_;
  started_.fill(true);
  for (int32_t row = 0; row < rows_; ++row) {
    const auto r = static_cast<size_t>(row);
    float* o = o_ + int64_t{row} * g_.columns;
    softmax::Sums sums;
    for (int32_t s = 0; s < item_->num_splits; ++s) {
      const int64_t index = first + int64_t{s} * rows_ + row;
      const softmax::Sums part{partials_.sums[2 * index], partials_.sums[2 * index + 1]};
      if (!part.has_keys()) continue;  // its O was never written
      const softmax::Merged merged = softmax::merge(sums, part);
      if (!sums.has_keys()) std::fill_n(o, g_.columns, 0.0F);
      ops_.blend(o, partials_.o + index * g_.columns, g_.columns, merged.a, merged.b);
      sums = merged.sums;
    }
    m_[r] = sums.pivot;
    l_[r] = sums.sum;
  }
}

// Converts and stores a row of O.
void TileWorker::store_row(std::byte* out, const float* o, float factor) {
  const core::Problem& p = problem_;
  if (p.out.dtype != DType::kF8E4M3) {
    ops_.store(out, element(p.out.dtype), o, p.head_dim_vo, factor);
    return;
  }
  constexpr int32_t kColumns = 64;  // whole panels: ops_ may order the columns within a panel
  float values[kColumns];
  for (int32_t first = 0; first < p.head_dim_vo; first += kColumns) {
    const int32_t count = std::min(kColumns, p.head_dim_vo - first);
    ops_.store(values, element(DType::kF32), o + first, count, factor);
    for (int32_t d = 0; d < count; ++d) {
      core::store_element(out, DType::kF8E4M3, first + d, values[d]);
    }
  }
}

// Adds the sink, normalises, converts and stores.
void TileWorker::write_rows() {
  const core::Problem& p = problem_;
  const int32_t b = item_->sequence;
  const float o_scale = p.o_scale(b, kv_head_);
  for (int32_t row = 0; row < rows_; ++row) {
    const auto r = static_cast<size_t>(row);
    const int32_t head = q_head(row);
    const softmax::Sums sums{m_[r], l_[r]};
    const bool has_sink = !p.sinks.empty() && !item_->is_padding;
    const float sink = has_sink ? p.sinks[static_cast<size_t>(head)] : softmax::kMinusInfinity;
    const softmax::RowResult end = softmax::finish(sums, sink, o_scale);
    auto* out = static_cast<std::byte*>(p.out.data) +
                p.row_offset(p.out, b, token(row), head) * size_bytes(p.out.dtype);
    if (const int32_t later = row + kQueryRowsAhead; later < rows_) {
      prefetch<true>(
          at(p.out.data, p.out.dtype, p.row_offset(p.out, b, token(later), q_head(later))),
          p.head_dim_vo * size_bytes(p.out.dtype));
    }
    float* o = o_ + int64_t{row} * g_.columns;
    if (!sums.has_keys()) std::fill_n(o, g_.columns, 0.0F);
    store_row(out, o, end.o_factor);
    if (p.lse.data != nullptr) {
      static_cast<float*>(p.lse.data)[p.row_offset(p.lse, b, token(row), head)] =
          end.lse() * p.lse_factor;
    }
    if (p.row_max.data != nullptr) {
      static_cast<float*>(p.row_max.data)[p.row_offset(p.row_max, b, token(row), head)] =
          softmax::finish_max(sums.pivot, sink);
    }
  }
}

}  // namespace pagoda::cpu
