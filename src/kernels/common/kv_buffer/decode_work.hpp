// make_decode_work: the work tile of a CTA in decoding, where every sequence has one token that
// sees all its keys. It has a quarter of the instructions of the general partition
// (stream_k_start.hpp): a kernel that runs once in a while reads its instructions from DRAM, and
// those before the first load are the largest part of a short decode.
//
//   CTAs are numbered by sequence, KV head, split (fastest). A sequence has
//   ceil(KV tiles / tiles_per_cta) splits, at least one; tiles_per_cta is the same for the whole
//   batch (DecodeArguments).
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/work_tile.hpp"

namespace pagoda::kernels::kv_buffer {

// The KV tiles that a CTA takes of `total`, those of the batch (DecodeArguments).
PAGODA_DEVICE int32_t tiles_per_cta(const DecodeArguments& decode, uint32_t total) {
  const float last = static_cast<float>(total - 1) + 0.5F;
  const int32_t share = static_cast<int32_t>(last * decode.cta_share) + 1;
  return share > decode.min_tiles_per_cta ? share : decode.min_tiles_per_cta;
}

// How the batch is divided among the CTAs. Every warp finds it for itself, without a barrier: a
// lane has neighbouring sequences, one of them in batches of up to kLanes.
template <class Config>
class DecodePartition {
 public:
  static constexpr int kLanes = Config::tile.warp_size;
  static constexpr uint32_t BN = Config::tile.BN;

  PAGODA_DEVICE explicit DecodePartition(const AttentionParams& params)
      : params_(params), sequences_of_lane_((params.sequences.batch - 1) / kLanes + 1) {
    // The first round sums up the KV tiles, the second one the CTAs.
    PAGODA_NO_UNROLL
    for (int round = 0; round < 2; ++round) {
      const int32_t begin = arch::lane_idx() * sequences_of_lane_;
      ctas_of_lane_ = 0;
      PAGODA_NO_UNROLL
      for (int32_t b = begin; b < begin + sequences_of_lane_ && b < params.sequences.batch; ++b) {
        ctas_of_lane_ += static_cast<uint32_t>(splits(num_keys(b)) * params.num_kv_heads);
      }
      if (round > 0) break;
      tiles_per_cta_ = kv_buffer::tiles_per_cta(params.decode, arch::reduce_add(ctas_of_lane_));
      divisor_ = arch::SmallDivisor{tiles_per_cta_};
    }
  }

  // A sequence: its first CTA, and the CTAs of each KV head: at least one, which writes O.
  struct Share {
    int32_t sequence = 0, num_keys = 0;
    int32_t first_cta = 0, splits = 1;
  };
  // The share that CTA `cta` is of. False: the CTA has no work.
  PAGODA_DEVICE bool find(int32_t cta, Share& share) const {
    uint32_t past = ctas_of_lane_;  // CTAs of this lane's sequences and of those before
    PAGODA_UNROLL
    for (int step = 1; step < kLanes; step *= 2) {
      const uint32_t below = arch::shuffle_up(past, step);
      if (arch::lane_idx() >= step) past += below;
    }
    // As many lanes as have all their CTAs before this one.
    const auto lane =
        static_cast<int32_t>(arch::reduce_add(past <= static_cast<uint32_t>(cta) ? 1U : 0U));
    if (lane == kLanes) return false;
    share.first_cta = static_cast<int32_t>(arch::shuffle(past - ctas_of_lane_, lane));
    PAGODA_NO_UNROLL
    for (share.sequence = lane * sequences_of_lane_;; ++share.sequence) {
      share.num_keys = num_keys(share.sequence);
      share.splits = splits(share.num_keys);
      const int32_t past_cta = share.first_cta + share.splits * params_.num_kv_heads;
      if (cta < past_cta) return true;
      share.first_cta = past_cta;
    }
  }

  [[nodiscard]] PAGODA_DEVICE int32_t tiles_per_cta() const { return tiles_per_cta_; }

 private:
  [[nodiscard]] PAGODA_DEVICE int32_t num_keys(int32_t b) const {
    if (params_.decode.lengths == nullptr) return params_.decode.num_keys;
    return arch::load_read_only(params_.decode.lengths + b);
  }
  [[nodiscard]] PAGODA_DEVICE int32_t splits(int32_t num_keys) const {
    const uint32_t last = num_keys > 0 ? static_cast<uint32_t>(num_keys - 1) / BN : 0;
    return divisor_.quotient(static_cast<int32_t>(last)) + 1;
  }

  const AttentionParams& params_;
  int32_t sequences_of_lane_;
  int32_t tiles_per_cta_ = 1;
  arch::SmallDivisor divisor_{1};  // tiles_per_cta_
  uint32_t ctas_of_lane_ = 0;
};

// All threads make the work tile of their CTA. False: it has none.
template <class Config>
PAGODA_DEVICE bool make_decode_work(const AttentionParams& params, Work& work) {
  constexpr int32_t BN = Config::tile.BN;
  const auto cta = static_cast<int32_t>(arch::block_idx().x);
  const DecodePartition<Config> partition(params);
  typename DecodePartition<Config>::Share share;
  if (!partition.find(cta, share)) return false;
  const int32_t sequence = share.sequence, keys = share.num_keys;
  work.num_splits = share.splits;
  work.kv_head = arch::SmallDivisor(share.splits).quotient(cta - share.first_cta);
  work.split = cta - share.first_cta - work.kv_head * share.splits;
  work.sequence = sequence;
  work.first_head = work.kv_head * params.group;
  work.num_heads = params.group;
  work.num_tokens = work.valid_tokens = 1;
  if (params.sequences.cu_rows != nullptr) {
    if (params.sequences.num_rows(sequence) == 0) return false;
    work.memory_row = params.sequences.first_row(sequence);
  }
  work.rows = mask::RowTile{sequence, keys, keys - 1, 0, 1};
  const int32_t split_keys = partition.tiles_per_cta() * BN;
  work.walk.tile_keys = BN;
  work.walk.start_column = work.split * split_keys;
  const int32_t left = keys - work.walk.start_column;
  const int32_t length = left < split_keys ? left : split_keys;
  work.walk.end_column = work.walk.start_column + length;
  work.walk.num_tiles = (length + BN - 1) / BN;
  work.first_slot = cta - work.split;
  work.next_slot = work.first_slot + 1;
  return true;
}

}  // namespace pagoda::kernels::kv_buffer
