// make_decode_work: the work tile of a CTA in decoding, where every sequence has one token that
// sees all its keys, or a few, which make one or a few row tiles of each KV head. It has a quarter
// of the instructions of the general partition (stream_k_start.hpp): those before the first load
// are the largest part of a short decode.
//
//   Clusters are numbered by sequence, KV head, row tile of the head, split (fastest). A sequence
//   has a split for each tiles_per_cluster of its KV tiles, at least one, and another for a rest of
//   a quarter or more; tiles_per_cluster is the same for the whole batch (DecodeArguments). Where a
//   sequence is longer than the mean by so much that it would have two splits, kHalvesUnequal makes
//   it half of that: work tiles of very different lengths end far apart. Where all sequences are
//   short each row tile has one cluster (kOneEach), which looks at no other length. The CTAs of a
//   cluster divide its KV tiles evenly. In kernels without clusters each CTA is one.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/kv_buffer/config.hpp"
#include "kernels/common/stream_k_start.hpp"
#include "kernels/common/work_tile.hpp"

namespace pagoda::kernels::kv_buffer {

// The KV tiles that a cluster takes of `total`, those of the batch (DecodeArguments).
PAGODA_DEVICE int32_t tiles_per_cluster(const DecodeArguments& decode, uint32_t total) {
  const float last = static_cast<float>(total - 1) + 0.5F;
  const int32_t share = static_cast<int32_t>(last * decode.cluster_share) + 1;
  return share > decode.min_tiles ? share : decode.min_tiles;
}
// The same where the longest sequence has `longest` KV tiles.
PAGODA_DEVICE int32_t tiles_per_cluster(const DecodeArguments& decode, uint32_t total,
                                        int32_t longest) {
  const int32_t share = tiles_per_cluster(decode, total);
  if (decode.shares != DecodeShares::kHalvesUnequal || longest + share * 3 / 4 < 2 * share) {
    return share;
  }
  const int32_t half = (share + 1) / 2;
  return half > decode.min_tiles ? half : decode.min_tiles;
}

// Of a sequence of a CSR page list, whose last page has `length` keys.
[[nodiscard]] PAGODA_DEVICE int32_t num_keys_of_pages(const DecodeArguments& decode,
                                                      int32_t sequence, int32_t length) {
  const arch::GlobalPtr<const int32_t> first = decode.first_page_of + sequence;
  const int32_t pages = arch::load_read_only(first + 1) - arch::load_read_only(first);
  return pages > 0 ? ((pages - 1) << decode.page_shift) + length : 0;
}
[[nodiscard]] PAGODA_DEVICE int32_t num_keys(const DecodeArguments& decode, int32_t sequence) {
  if (decode.lengths == nullptr) return decode.num_keys;
  const int32_t length = arch::load_read_only(decode.lengths + sequence);
  return decode.first_page_of == nullptr ? length : num_keys_of_pages(decode, sequence, length);
}

// The first key that is loaded of a sequence. With a window these are as many last keys as any
// token sees, and those before them in the rows that a warp loads at once.
template <class Config>
PAGODA_DEVICE int32_t first_key(const DecodeArguments& decode, int32_t num_keys) {
  if (!Config::tile.decodes_general || num_keys <= decode.window_keys) return 0;
  return (num_keys - decode.window_keys) / kPageRows * kPageRows;
}

// At least one: a sequence without keys has a work tile, too.
template <class Config>
PAGODA_DEVICE int32_t num_tiles(const DecodeArguments& decode, int32_t num_keys) {
  const int32_t loaded = num_keys - first_key<Config>(decode, num_keys);
  return loaded > 0 ? (loaded - 1) / Config::tile.BN + 1 : 1;
}

// Splits of a sequence of `tiles` > 0 KV tiles where a cluster takes `tiles_per_cluster` of them. A
// smaller rest is shared by the splits: a cluster more would cost more than it computes.
PAGODA_DEVICE int32_t num_splits(int32_t tiles, int32_t tiles_per_cluster,
                                 const arch::SmallDivisor& by_tiles_per_cluster) {
  const int32_t splits = by_tiles_per_cluster.quotient(tiles + tiles_per_cluster * 3 / 4);
  return splits > 1 ? splits : 1;
}

[[nodiscard]] PAGODA_DEVICE int32_t row_tiles_of_sequence(const AttentionParams& params) {
  return params.num_kv_heads * params.decode.token_tiles;
}

// A sequence of the batch: its query rows, where they may differ from one, and its clusters: the
// first, those of each row tile of a KV head (at least one, which writes O), and the KV tiles that
// each takes.
struct DecodeShare {
  int32_t sequence = 0, num_keys = 0;
  int32_t num_rows = 1, first_row = 0;
  int32_t first_cluster = 0, splits = 1;
  int32_t tiles_per_cluster = 1;
};
template <class Config>
PAGODA_DEVICE void load_rows(const AttentionParams& params, int32_t sequence, DecodeShare& share) {
  if (!Config::tile.has_tokens && params.sequences.cu_rows == nullptr) return;
  share.num_rows = params.sequences.num_rows(sequence);
  share.first_row = params.sequences.first_row(sequence);
}

// The share of cluster `cluster` where each row tile has one cluster. False: it has none.
template <class Config>
PAGODA_DEVICE bool find_only_share(const AttentionParams& params, int32_t cluster,
                                   DecodeShare& share) {
  share.sequence = params.decode.by_row_tiles.quotient(cluster);
  if (share.sequence >= params.sequences.batch) return false;
  load_rows<Config>(params, share.sequence, share);
  share.num_keys = num_keys(params.decode, share.sequence);
  share.first_cluster = share.sequence * row_tiles_of_sequence(params);
  share.tiles_per_cluster = num_tiles<Config>(params.decode, share.num_keys);
  return true;
}

// How a large batch is divided among the clusters. Every warp finds it for itself, without a
// barrier: a lane has neighbouring sequences. Where no sequence has more than one split, which the
// longest says, no other length matters to a cluster.
template <class Config>
class DecodePartition {
 public:
  static constexpr int kLanes = Config::tile.warp_size;

  PAGODA_DEVICE explicit DecodePartition(const AttentionParams& params)
      : params_(params), sequences_of_lane_((params.sequences.batch - 1) / kLanes + 1) {
    const int32_t begin = arch::lane_idx() * sequences_of_lane_;
    const int32_t batch = params.sequences.batch;
    const int32_t end = begin + sequences_of_lane_ < batch ? begin + sequences_of_lane_ : batch;
    int32_t tiles = 0, longest = 1;
    PAGODA_NO_UNROLL
    for (int32_t b = begin; b < end; b += kTogether) {
      int32_t keys[kTogether];
      load_num_keys(b, keys);
      PAGODA_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        const int32_t count = b + i < end ? num_tiles<Config>(params.decode, keys[i]) : 0;
        tiles += count;
        if (longest < count) longest = count;
      }
    }
    longest = static_cast<int32_t>(arch::reduce_max(static_cast<uint32_t>(longest)));
    const uint32_t total =
        arch::reduce_add(static_cast<uint32_t>(tiles * row_tiles_of_sequence(params)));
    tiles_per_cluster_ = kv_buffer::tiles_per_cluster(params.decode, total, longest);
    divisor_ = arch::SmallDivisor{tiles_per_cluster_};
    has_one_each_ = num_splits(longest, tiles_per_cluster_, divisor_) == 1;
    if (has_one_each_) return;
    PAGODA_NO_UNROLL
    for (int32_t b = begin; b < end; ++b) {
      clusters_of_lane_ += splits(num_keys(params.decode, b)) * row_tiles_of_sequence(params);
    }
  }

  // The share that cluster `cluster` is of. False: the cluster has no work.
  PAGODA_DEVICE bool find(int32_t cluster, DecodeShare& share) const {
    if (has_one_each_) return find_only_share<Config>(params_, cluster, share);
    // Of this lane's sequences and of those before.
    const int32_t past = inclusive_sum_of_warp<kLanes>(clusters_of_lane_);
    // As many lanes as have all their clusters before this one.
    const auto lane = static_cast<int32_t>(arch::reduce_add(past <= cluster ? 1U : 0U));
    if (lane == kLanes) return false;
    share.first_cluster = arch::shuffle(past - clusters_of_lane_, lane);
    share.tiles_per_cluster = tiles_per_cluster_;
    PAGODA_NO_UNROLL
    for (share.sequence = lane * sequences_of_lane_;; ++share.sequence) {
      share.num_keys = num_keys(params_.decode, share.sequence);
      share.splits = splits(share.num_keys);
      const int32_t end = share.first_cluster + share.splits * row_tiles_of_sequence(params_);
      if (cluster < end) break;
      share.first_cluster = end;
    }
    load_rows<Config>(params_, share.sequence, share);
    return true;
  }

 private:
  static constexpr int kTogether = 4;  // lengths that a lane waits for together

  // Of sequences first, first + 1, .. of the batch; past its end any.
  PAGODA_DEVICE void load_num_keys(int32_t first, int32_t (&keys)[kTogether]) const {
    const DecodeArguments& decode = params_.decode;
    PAGODA_UNROLL
    for (int32_t& of_sequence : keys) of_sequence = decode.num_keys;
    if (decode.lengths == nullptr) return;
    int32_t sequences[kTogether];
    PAGODA_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const int32_t last = params_.sequences.batch - 1;
      sequences[i] = first + i < last ? first + i : last;
      keys[i] = arch::load_read_only(decode.lengths + sequences[i]);
    }
    if (decode.first_page_of == nullptr) return;
    PAGODA_UNROLL
    for (int i = 0; i < kTogether; ++i) keys[i] = num_keys_of_pages(decode, sequences[i], keys[i]);
  }

  [[nodiscard]] PAGODA_DEVICE int32_t splits(int32_t num_keys) const {
    return num_splits(num_tiles<Config>(params_.decode, num_keys), tiles_per_cluster_, divisor_);
  }

  const AttentionParams& params_;
  int32_t sequences_of_lane_;
  int32_t tiles_per_cluster_ = 1;
  arch::SmallDivisor divisor_{1};  // tiles_per_cluster_
  bool has_one_each_ = false;
  int32_t clusters_of_lane_ = 0;
};

// The same of a batch of up to a sequence for each lane, in half of the instructions; and what
// memory has of a sequence is loaded at once.
template <class Config>
PAGODA_DEVICE bool find_share_of_few(const AttentionParams& params, int32_t cluster,
                                     DecodeShare& share) {
  const DecodeArguments& decode = params.decode;
  const int32_t own = arch::lane_idx();
  const bool exists = own < params.sequences.batch;
  DecodeShare of_lane;
  if (exists) {
    load_rows<Config>(params, own, of_lane);
    of_lane.num_keys = num_keys(decode, own);
  }
  const int32_t tiles = num_tiles<Config>(decode, of_lane.num_keys);
  const int32_t row_tiles = exists ? row_tiles_of_sequence(params) : 0;
  const uint32_t total = arch::reduce_add(static_cast<uint32_t>(tiles * row_tiles));
  int32_t longest = 0;
  if (decode.shares == DecodeShares::kHalvesUnequal) {
    longest = static_cast<int32_t>(arch::reduce_max(static_cast<uint32_t>(tiles)));
  }
  share.tiles_per_cluster = tiles_per_cluster(decode, total, longest);
  const int32_t splits =
      num_splits(tiles, share.tiles_per_cluster, arch::SmallDivisor(share.tiles_per_cluster));
  const int32_t past = inclusive_sum_of_warp<Config::tile.warp_size>(splits * row_tiles);
  // As many lanes as have all their clusters before this one.
  share.sequence = static_cast<int32_t>(arch::reduce_add(past <= cluster ? 1U : 0U));
  if (share.sequence == Config::tile.warp_size) return false;
  share.first_cluster = arch::shuffle(past - splits * row_tiles, share.sequence);
  share.splits = arch::shuffle(splits, share.sequence);
  share.num_keys = arch::shuffle(of_lane.num_keys, share.sequence);
  share.num_rows = arch::shuffle(of_lane.num_rows, share.sequence);
  share.first_row = arch::shuffle(of_lane.first_row, share.sequence);
  return true;
}

// The same of a batch of one sequence, in a third of the instructions.
template <class Config>
PAGODA_DEVICE bool find_share_of_one(const AttentionParams& params, int32_t cluster,
                                     DecodeShare& share) {
  const DecodeArguments& decode = params.decode;
  load_rows<Config>(params, 0, share);
  share.num_keys = num_keys(decode, 0);
  const int32_t tiles = num_tiles<Config>(decode, share.num_keys);
  const auto total = static_cast<uint32_t>(tiles * row_tiles_of_sequence(params));
  share.tiles_per_cluster = tiles_per_cluster(decode, total);
  share.splits =
      num_splits(tiles, share.tiles_per_cluster, arch::SmallDivisor(share.tiles_per_cluster));
  return cluster < share.splits * row_tiles_of_sequence(params);
}

template <class Config>
PAGODA_DEVICE bool find_share(const AttentionParams& params, int32_t cluster, DecodeShare& share) {
  if (params.decode.shares == DecodeShares::kOneEach) {
    return find_only_share<Config>(params, cluster, share);
  }
  const int32_t batch = params.sequences.batch;
  if (batch == 1) return find_share_of_one<Config>(params, cluster, share);
  if (batch <= Config::tile.warp_size) return find_share_of_few<Config>(params, cluster, share);
  return DecodePartition<Config>(params).find(cluster, share);
}

// The token and the heads of row tile `row_tile` of a KV head, whose group has more heads than a
// row tile has rows. `work` has all heads of the group.
PAGODA_DEVICE void set_heads(int32_t row_tile, int32_t rows, Work& work) {
  const int32_t head_tiles = (work.num_heads - 1) / rows + 1;
  work.first_token = arch::SmallDivisor(head_tiles).quotient(row_tile);
  const int32_t first = (row_tile - work.first_token * head_tiles) * rows;
  work.first_head += first;
  if (work.num_heads - first < rows) rows = work.num_heads - first;
  work.num_heads = rows;
}

// All threads make the work tile of their CTA. False: its cluster has none.
template <class Config>
PAGODA_DEVICE bool make_decode_work(const AttentionParams& params, Work& work) {
  constexpr int32_t BN = Config::tile.BN;
  constexpr int32_t kCtas = Config::tile.cluster;
  const uint32_t cta = arch::block_idx().x;
  const auto cluster = static_cast<int32_t>(cta / kCtas), rank = static_cast<int32_t>(cta % kCtas);
  DecodeShare share;
  if (!find_share<Config>(params, cluster, share)) return false;
  const int32_t sequence = share.sequence, keys = share.num_keys;
  work.num_splits = share.splits;
  const int32_t row_tile = arch::SmallDivisor(share.splits).quotient(cluster - share.first_cluster);
  work.split = cluster - share.first_cluster - row_tile * share.splits;
  work.kv_head = row_tile;
  if constexpr (Config::tile.has_tokens || Config::tile.is_latent()) {
    const int32_t token_tiles = params.decode.token_tiles;
    work.kv_head = arch::SmallDivisor(token_tiles).quotient(row_tile);
    work.first_token = (row_tile - work.kv_head * token_tiles) * params.decode.tile_tokens;
  }
  work.sequence = sequence;
  work.first_head = work.kv_head * params.group;
  work.num_heads = params.group;
  int32_t tile_tokens = params.decode.tile_tokens;
  if constexpr (Config::tile.is_latent()) {
    if (tile_tokens == 0) {  // a token has several row tiles
      tile_tokens = 1;
      set_heads(row_tile - work.kv_head * params.decode.token_tiles, Config::tile.BM, work);
    }
  }
  const int32_t tokens = share.num_rows;
  if (tokens <= work.first_token) return false;
  work.memory_row = share.first_row;
  work.num_tokens = tokens - work.first_token;
  if (Config::tile.has_tokens && work.num_tokens > tile_tokens) work.num_tokens = tile_tokens;
  work.valid_tokens = work.num_tokens;
  work.rows = mask::RowTile{sequence, keys, keys - tokens, work.first_token, work.num_tokens};
  const int32_t tiles = num_tiles<Config>(params.decode, keys);
  int32_t tiles_of_cluster = share.tiles_per_cluster;
  if (share.splits * tiles_of_cluster < tiles) {
    tiles_of_cluster = arch::SmallDivisor(share.splits).quotient(tiles - 1) + 1;
  }
  const int32_t split_keys = tiles_of_cluster * BN;
  work.walk.tile_keys = BN;
  work.walk.start_column = first_key<Config>(params.decode, keys) + work.split * split_keys;
  const int32_t left = keys > work.walk.start_column ? keys - work.walk.start_column : 0;
  const int32_t length = left < split_keys ? left : split_keys;
  work.walk.end_column = work.walk.start_column + length;
  work.walk.num_tiles = (length + BN - 1) / BN;
  if constexpr (kCtas > 1) {
    const int32_t begin = work.walk.num_tiles * rank / kCtas;
    const int32_t end = work.walk.num_tiles * (rank + 1) / kCtas;
    work.walk.start_column += begin * BN;
    work.walk.num_tiles = end - begin;
  }
  // CTA `rank` of each cluster of the row tile has a slot.
  work.first_slot = (cluster - work.split) * kCtas + rank;
  work.slot_step = kCtas;
  work.next_slot = work.first_slot + work.slot_step;
  return true;
}

}  // namespace pagoda::kernels::kv_buffer
