// AttentionParams: everything that an attention kernel is told at run time. Built on the host
// (kernels/mha_sm90/launch_plan.cpp) without reading a length: what varies from step to step is behind
// pointers, so that a captured launch serves any lengths below its bounds.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/tma.hpp"
#include "core/target.hpp"
#include "mask/expression_mask.hpp"
#include "operand/key_rows.hpp"
#include "schedule/tile_grid.hpp"
#include "softmax/score.hpp"

namespace pagoda::kernels {

// Rows of Q, O, LSE or the row maxima: element (sequence b, row i, head h) stands at
//   b * sequence_stride + (begin(b) + i) * row_stride + h * head_stride         [elements]
struct RowsView {
  int64_t sequence_stride = 0;  // padded; 0 where ragged
  int64_t row_stride = 0;
  int64_t head_stride = 0;

  PAGODA_HOST_DEVICE int64_t offset(int32_t sequence, int64_t row, int32_t head) const {
    return sequence * sequence_stride + row * row_stride + head * head_stride;
  }
};

// The batch: how many query rows and keys every sequence has, and where its queries stand.
struct Sequences {
  int32_t batch = 0;
  int32_t padded_rows = 0;                              // padded: rows of each sequence in memory
  arch::GlobalPtr<const int32_t> cu_rows = nullptr;     // ragged: [batch + 1]
  arch::GlobalPtr<const int32_t> valid_rows = nullptr;  // padded, optional: [batch]
  arch::GlobalPtr<const int32_t> q_positions =
      nullptr;  // optional: [batch], position of row 0; else keys - rows
  operand::KeyRows keys{};

  // First row in memory, counted within a ragged tensor or within the sequence's own.
  PAGODA_DEVICE int32_t first_row(int32_t b) const {
    return cu_rows != nullptr ? arch::load_read_only(cu_rows + b) : 0;
  }
  // Rows that are written.
  PAGODA_DEVICE int32_t num_rows(int32_t b) const {
    if (cu_rows == nullptr) return padded_rows;
    return arch::load_read_only(cu_rows + b + 1) - arch::load_read_only(cu_rows + b);
  }
  // Of these, rows that hold queries; the others get zeros.
  PAGODA_DEVICE int32_t num_valid_rows(int32_t b) const {
    return valid_rows != nullptr ? arch::load_read_only(valid_rows + b) : num_rows(b);
  }
  PAGODA_DEVICE int32_t q_position(int32_t b, int32_t num_keys) const {
    return q_positions != nullptr ? arch::load_read_only(q_positions + b)
                                  : num_keys - num_valid_rows(b);
  }
};

// Who takes which tiles of rows. (Kernels of sm_90 have one of these each.)
enum class Schedule : uint8_t {
  kQueue,       // CTAs draw from a queue
  kPersistent,  // CTA i takes tiles i, i + CTAs, ..
  kTransient,   // a CTA a tile
  kShares,      // an equal share of all key tiles a CTA (attention/key_shares.hpp)
};

// All but the tensor maps, which are another type on every machine.
struct AttentionArguments {
  Sequences sequences;
  int32_t num_kv_heads = 1;
  int32_t group = 1;  // query heads of a KV head
  int32_t dim_qk = 0, dim_vo = 0;

  arch::GlobalPtr<const void> q_data = nullptr;
  arch::GlobalPtr<void> out_data = nullptr;
  arch::GlobalPtr<float> lse = nullptr;      // optional
  arch::GlobalPtr<float> row_max = nullptr;  // optional
  RowsView q_rows, out_rows, lse_rows, row_max_rows;
  bool is_out_by_tma = false;  // full tiles of O
  bool is_gathered = false;    // K and V; kernels of sm_90 have instances of their own for that
  // Gathered K and V: `sequence` of a row is its page where there are pages (0 where ragged).
  arch::GlobalPtr<const void> k_data = nullptr;
  arch::GlobalPtr<const void> v_data = nullptr;
  RowsView k_rows, v_rows;
  int32_t kv_element_bytes = 2;  // 1: e4m3

  mask::ExpressionMask mask;  // plain instances read its interval alone
  softmax::ScoreMap score_map;
  arch::GlobalPtr<const float> alibi_slopes = nullptr;  // [num_q_heads], natural units
  arch::GlobalPtr<const float> sinks = nullptr;         // [num_q_heads]
  operand::KVScaleFactors kv_scales;

  // Tiles of tokens: the grid; sequences of fewer than min_rows rows are another launch's.
  Schedule schedule = Schedule::kQueue;
  schedule::TileGrid grid;
  arch::GlobalPtr<uint32_t> grid_counter = nullptr;  // zero between launches
  int32_t min_rows = 0;
  // Packed rows: sequences of more than max_rows rows are another launch's.
  int32_t max_rows = INT32_MAX;
  bool has_whole_units = false;  // rows are never split (batch-invariant)

  // Partial results of split rows: slots of 64 rows, see partial.hpp; counters are zero between launches.
  arch::GlobalPtr<float> partial_out = nullptr;
  arch::GlobalPtr<float> partial_stats = nullptr;
  arch::GlobalPtr<uint32_t> counters = nullptr;
};

struct AttentionParams : AttentionArguments {
  // For the operands that TMA moves (launch_plan.hpp says which).
  arch::TensorMap q;     // [batch, rows, heads, dim], boxes of 64 rows of one head
  arch::TensorMap k, v;  // KVTmaTile
  arch::TensorMap out;   // like q
};

}  // namespace pagoda::kernels
