// AttentionParams: the parameters of an attention kernel. The host builds them (launch_plan.cpp of
// each family) without reading a length: what varies from step to step is behind pointers, so that
// a captured launch serves any lengths up to its bounds.
#pragma once

#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/memory.hpp"
#include "arch/quotient.hpp"
#include "arch/tma.hpp"
#include "core/target.hpp"
#include "mask/expression_mask.hpp"
#include "operand/key_rows.hpp"
#include "pagoda/dtype.hpp"
#include "schedule/tile_grid.hpp"
#include "softmax/score.hpp"

namespace pagoda::kernels {

// Strides of Q, O, LSE or the row maxima, in elements. Row i of sequence b and head h is at
//   b * sequence_stride + (first_row(b) + i) * row_stride + h * head_stride
struct RowsView {
  int64_t sequence_stride = 0;  // padded; 0 where ragged
  int64_t row_stride = 0;
  int64_t head_stride = 0;

  PAGODA_HOST_DEVICE int64_t offset(int32_t sequence, int64_t row, int32_t head) const {
    return sequence * sequence_stride + row * row_stride + head * head_stride;
  }
};

// The batch: the query rows and keys of every sequence, and the positions of its queries.
struct Sequences {
  int32_t batch = 0;
  int32_t padded_rows = 0;                              // padded: rows of each sequence in memory
  arch::GlobalPtr<const int32_t> cu_rows = nullptr;     // ragged: [batch + 1]
  arch::GlobalPtr<const int32_t> valid_rows = nullptr;  // optional: [batch]
  // Optional: [batch], position of row 0; else keys - rows.
  arch::GlobalPtr<const int32_t> q_positions = nullptr;
  operand::KeyRows keys{};

  // The lengths of queries and keys, of up to 1024 sequences, by a warp.
  PAGODA_DEVICE void prefetch_lengths(int32_t lane) const {
    const int32_t first = 32 * lane;  // of a cache line
    if (first >= batch) return;
    if (cu_rows != nullptr) arch::prefetch_l1(cu_rows + first);
    keys.prefetch_lengths(first);
  }
  // Row of the sequence's token 0 in memory; 0 where padded.
  PAGODA_DEVICE int32_t first_row(int32_t b) const {
    return cu_rows != nullptr ? arch::load_read_only(cu_rows + b) : 0;
  }
  // Rows of O, padding rows included.
  PAGODA_DEVICE int32_t num_rows(int32_t b) const {
    if (cu_rows == nullptr) return padded_rows;
    return arch::load_read_only(cu_rows + b + 1) - arch::load_read_only(cu_rows + b);
  }
  // Rows that hold queries. Those after them are padding rows: O = 0.
  PAGODA_DEVICE int32_t num_valid_rows(int32_t b) const {
    return valid_rows != nullptr ? arch::load_read_only(valid_rows + b) : num_rows(b);
  }
  PAGODA_DEVICE int32_t q_position(int32_t b, int32_t num_keys) const {
    return q_positions != nullptr ? arch::load_read_only(q_positions + b)
                                  : num_keys - num_valid_rows(b);
  }
};

// A token and a query head: of the sequence, or counted from the first token and head of a block.
struct TokenAndHead {
  int32_t token, head;
};

// How the query heads of a group fill the blocks of a row tile of tokens: row r of a block is token
// r / heads and head r % heads. Rows from heads * tokens on are empty.
struct RowBlock {
  int32_t heads = 1;   // neighbouring query heads of a KV head
  int32_t tokens = 1;  // of a block
  arch::Divisor by_heads;

  [[nodiscard]] PAGODA_HOST_DEVICE int32_t rows() const { return heads * tokens; }
  [[nodiscard]] PAGODA_HOST_DEVICE TokenAndHead at(int32_t row) const {
    const int32_t token = by_heads.quotient(row);
    return {token, row - token * heads};
  }
};

// How work tiles are assigned to CTAs. An instance for sm_90 is compiled for one of them.
enum class Schedule : uint8_t {
  kQueue,       // CTAs draw row tiles from an atomic counter (grid_work.hpp)
  kPersistent,  // CTA i takes row tiles i, i + CTAs, ..
  kTransient,   // one CTA for each row tile
  kStreamK,     // every CTA takes the same number of KV tiles (stream_k.hpp)
};

// How decoding divides the KV tiles of a batch among clusters (kv_buffer/decode_work.hpp).
enum class DecodeShares : uint8_t {
  kOneEach,        // a cluster has all KV tiles of a row tile
  kEven,           // as many KV tiles as the others, of one row tile
  kHalvesUnequal,  // the same where all lengths are alike, else half as many
};

// What the kernels of kv_buffer for decoding read instead of Sequences, KeyRows and RowsView, the
// same call with fewer cases and 32-bit strides; and LatentWork, the lengths.
struct DecodeArguments {
  // The KV tiles that a cluster takes, in kernels without clusters a CTA: those of the batch times
  // `cluster_share`, rounded up, and `min_tiles` or more. The share is above 1 / clusters by 2^-21
  // of it, more than fp32 rounds off: those that get work are never more than the launch has.
  float cluster_share = 1.0F;
  int32_t min_tiles = 1;
  DecodeShares shares = DecodeShares::kEven;
  // Row tiles of a KV head, and the tokens of each but the last. 0: a token has several.
  // token_tiles of LatentWork: row tiles whose CTAs, side by side, take the same keys.
  uint8_t token_tiles = 1, tile_tokens = 1;
  arch::Divisor by_row_tiles;  // of a sequence: num_kv_heads * token_tiles
  int32_t num_keys = 0;        // of every sequence where there are no lengths
  // TileConfig::decodes_general: the last keys of a sequence, those that any token of it sees.
  int32_t window_keys = INT32_MAX;
  arch::GlobalPtr<const int32_t> lengths = nullptr;  // optional: [batch]
  // Optional: [batch, table_stride] page ids of 1 << page_shift keys. Without it the keys of
  // sequence b are in "page" b. With first_page_of, [batch + 1], the ids of sequence b begin there,
  // and `lengths` are those of last pages.
  arch::GlobalPtr<const int32_t> pages = nullptr;
  arch::GlobalPtr<const int32_t> first_page_of = nullptr;
  int32_t table_stride = 0, page_shift = 30;
  // Strides in bytes. Q: of its rows, which are the tokens of all sequences.
  int32_t q_row_bytes = 0, q_head_bytes = 0;
  struct Operand {
    int32_t page_bytes = 0, row_bytes = 0, head_bytes = 0;
  } k, v;
};

// All parameters but the tensor maps, whose type differs between GPU and emulator. What is read
// before the first loads of Q, K and V comes first: the first load from a line of constants takes
// 121 cycles, later ones 48 (mha_sm90/notes/start_of_a_call.md).
struct AttentionArguments {
  Sequences sequences;
  int32_t num_kv_heads = 1;
  int32_t group = 1;       // query heads of a KV head
  arch::Divisor by_group;  // of `group`
  // mha_sm90: kMayPackHeads. Beside `group`, with which it is read (row_tiles.md).
  RowBlock row_block;
  // kv_buffer: CTAs of each KV head where the batch is one sequence of at most one token, instead
  // of a stream-K partition. Latent rows: of each head tile, for LatentWork. 0: it is not used.
  int32_t ctas_per_kv_head = 0;
  DecodeArguments decode;
  arch::GlobalPtr<const void> q_data = nullptr;
  // Of kernels that gather K and V.
  arch::GlobalPtr<const void> k_data = nullptr;
  arch::GlobalPtr<const void> v_data = nullptr;
  // Row tiles of tokens. This launch skips sequences of fewer than min_rows launch_rows.
  Schedule schedule = Schedule::kQueue;
  schedule::TileDecoder grid;
  arch::GlobalPtr<uint32_t> grid_counter = nullptr;  // zero between launches
  int32_t min_rows = 0;
  bool is_merge_shared = false;  // all CTAs of a row tile merge its splits: SharedMerge
  // Packed rows. This launch skips sequences of more than max_rows launch_rows.
  int32_t max_rows = INT32_MAX;
  bool is_batch_invariant = false;  // no row tile is split
  mask::ExpressionMask mask;        // plain instances read its interval alone
  int32_t dim_qk = 0, dim_vo = 0;

  // Partial results of split rows (split_rows.hpp). The counters are zero between launches.
  arch::GlobalPtr<float> partial_out = nullptr;
  arch::GlobalPtr<float> partial_stats = nullptr;
  arch::GlobalPtr<uint32_t> counters = nullptr;
  arch::GlobalPtr<void> out_data = nullptr;
  arch::GlobalPtr<float> lse = nullptr;      // optional
  float lse_factor = 1;                      // of the natural logarithm
  arch::GlobalPtr<float> row_max = nullptr;  // optional
  RowsView q_rows, out_rows, lse_rows, row_max_rows;
  DType out_dtype = DType::kBF16;
  DType q_dtype = DType::kBF16, kv_dtype = DType::kBF16;  // read in kernels by mha_simt alone
  float out_factor = 1;                                   // 1 / out_scale
  bool is_out_by_tma = false;                             // full tiles of O are stored by TMA
  bool is_gathered = false;  // K and V are (sm_90: LoadKind::kGather instead)
  // Of gathered K and V. Where they are paged, a page takes the place of the sequence.
  RowsView k_rows, v_rows;
  int32_t kv_element_bytes = 2;  // 1: e4m3
  // L2 policy of K and V that TMA loads: kv_eviction() of call_arguments.hpp.
  arch::Eviction kv_eviction = arch::Eviction::kNormal;

  softmax::ScoreMap score_map;
  arch::GlobalPtr<const float> alibi_slopes = nullptr;  // [num_q_heads], natural units
  arch::GlobalPtr<const float> sinks = nullptr;         // [num_q_heads]
  // Q's and K's scales are factors of the scores, V's is one of O. Only e4m3 queries have scales
  // per head, which q_scale_group neighbouring heads share, and mha_sm90, mha_sm100 and mha_simt
  // serve those.
  operand::ScaleFactors q_scales, k_scales, v_scales;
  int32_t q_scale_group = 1;

  // The query rows by which the launches of a plan divide the sequences among them. The length that
  // a sequence is padded to depends on the rest of its batch.
  PAGODA_DEVICE int32_t launch_rows(int32_t b) const {
    return is_batch_invariant ? sequences.num_valid_rows(b) : sequences.num_rows(b);
  }
};

#if PAGODA_ON_AMD
using AttentionParams = AttentionArguments;  // no TMA
#else
struct AttentionParams : AttentionArguments {
  // Only those of the operands that TMA loads or stores are set.
  arch::TensorMap q;     // [batch, rows, heads, dim], boxes of 64 rows of one head or a RowBlock
  arch::TensorMap k, v;  // KVTmaTile
  arch::TensorMap out;   // like q
};
#endif

}  // namespace pagoda::kernels
