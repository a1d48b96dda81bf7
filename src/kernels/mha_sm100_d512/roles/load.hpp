// The load roles of each CTA: one warp loads K and V by TMA through PagedRowIndices, one lane loads
// Q. A CTA loads half of a tile's keys of K and half of its columns of V. Bytes complete on the
// leader's barriers, where each CTA expects its own. KV tiles go from the last to the first, as in
// every role.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fault.hpp"
#include "arch/fence.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "kernels/common/sm100/v_tail.hpp"
#include "kernels/mha_sm100_d512/rows.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm100_d512 {

// Loads K and V; all lanes of a warp call. The ring gets K(0) K(1) V(0) K(2) V(1) .. V(last), the
// order in which the MMAs read them; each tile takes several slots.
//
// The slot of V in which the sequence ends completes on the barrier `v_tail` of this warp. The warp
// then zeroes the rows past the end that the MMAs read (P is 0 there, but 0 * NaN is NaN) and
// arrives on the slot's full barrier.
template <class Config, int page_size, bool is_leader>
class Load {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = tile.BN, BK1 = tile.BK1();
  static constexpr int v_parts = BN / BK1;
  using Indices = operand::PagedRowIndices<BN, page_size, true, is_leader>;
  static_assert(Indices::k_issue_rows == Indices::template v_issue_rows<v_parts>);
  using Tile = operand::KVTmaTile<T, Indices::k_issue_rows, tile.BK0, tile.swizzle>;
  // Its bytes complete on the leader's barrier.
  using PairTile = operand::KVTmaTile<T, Indices::k_issue_rows, tile.BK0, tile.swizzle, true>;

  PAGODA_DEVICE Load(const AttentionParams& params, Storage<Config>& storage)
      : params_(params),
        storage_(storage),
        ring_(Ops::Ring::producer(storage.ring)),
        elect_(arch::elect_one()) {}

  PAGODA_DEVICE void run() {
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      if (work.walk.num_tiles > 0) load(work);
    }
    // Waits until the leader's commits have released every slot: a commit must not arrive in the
    // shared memory of a CTA that has exited.
    ring_.producer_drain();
  }

 private:
  PAGODA_DEVICE void load(const Work& work) {
    num_keys_ = static_cast<uint32_t>(work.rows.seqlen_kv);
    head_ = static_cast<uint32_t>(work.kv_head);
    int32_t i = work.walk.num_tiles - 1;
    Indices rows = populate(work, i);
    load_k(rows, key(work, i));
    PAGODA_NO_UNROLL
    for (; i >= 0; --i) {
      const Indices v_rows = rows;
      if (i > 0) {
        rows = populate(work, i - 1);
        load_k(rows, key(work, i - 1));
      }
      load_v(v_rows, key(work, i), work.walk.valid_keys(i));
    }
  }

  PAGODA_DEVICE Indices populate(const Work& work, int32_t i) const {
    return params_.sequences.keys.template populate<Indices>(work.sequence,
                                                             static_cast<uint32_t>(key(work, i)));
  }
  // The first key of a tile.
  static PAGODA_DEVICE int32_t key(const Work& work, int32_t i) {
    return kernels::first_key_of<Config>(work.walk, i);
  }

  // Rows past the sequence's end hold the rest of a page, or what the slot held before: the mask
  // replaces their scores.
  PAGODA_DEVICE void load_k(const Indices& rows, int32_t column) {
    const uint32_t valid = Indices::k_num_valid_pages(static_cast<uint32_t>(column), num_keys_);
    PAGODA_NO_UNROLL
    for (int32_t depth = 0; depth < params_.dim_qk; depth += tile.BK0) {
      acquire();
      expect_bytes(valid * PairTile::bytes);
      rows.template tma_copy_k<true, BN / 2>(PairTile{&params_.k}, slot(), full(), head_, elect_,
                                             params_.kv_eviction, valid,
                                             static_cast<uint32_t>(depth));
      ring_.step();
    }
  }

  // The MMAs read the first `keys` keys of the tile: a part past them is not loaded.
  PAGODA_DEVICE void load_v(const Indices& rows, int32_t column, int32_t keys) {
    PAGODA_NO_UNROLL
    for (int section = 0; section * tile.section_columns() < params_.dim_vo; ++section) {
      const int first = section * tile.section_columns();
      const int cta_columns = computed_columns<Config>(params_, section) / kPair;
      const int depth = first + (is_leader ? 0 : cta_columns);
      load_v_part<0>(rows, column, static_cast<uint32_t>(depth));
      if (keys > BK1) load_v_part<1>(rows, column, static_cast<uint32_t>(depth));
    }
  }

  template <int part>
  PAGODA_DEVICE void load_v_part(const Indices& rows, int32_t column, uint32_t depth) {
    const uint32_t first_key = static_cast<uint32_t>(column) + part * BK1;
    acquire();
    if (first_key + BK1 <= num_keys_) {
      expect_bytes(tile.slot_bytes());
      rows.template tma_copy_v<false, v_parts, part>(PairTile{&params_.v}, slot(), full(), head_,
                                                     elect_, params_.kv_eviction,
                                                     Indices::template v_pages<v_parts>, depth);
    } else {
      const uint32_t pages = Indices::template v_num_valid_pages<v_parts>(
          static_cast<uint32_t>(column), num_keys_, part);
      storage_.v_tail.arrive_expect_tx_if(elect_, pages * Tile::bytes);
      rows.template tma_copy_v<true, v_parts, part>(Tile{&params_.v}, slot(), storage_.v_tail,
                                                    head_, elect_, params_.kv_eviction, pages,
                                                    depth);
      storage_.v_tail.wait(tail_phase_);  // waits until TMA has loaded this CTA's columns
      tail_phase_ ^= 1U;
      const auto keys_left = static_cast<int32_t>(num_keys_ - first_key);
      constexpr int panels = tile.BK0 / Ops::panel_columns;
      kernels::sm100::zero_rows<panels, BK1, Ops::panel_columns* static_cast<int>(sizeof(T))>(
          slot(), keys_left, core::align_up(keys_left, tile.mma_k()));
      arch::fence_proxy_async_shared();  // orders the zeros before the MMAs' reads of V
      arch::syncwarp();
      if (elect_ != 0) full().arrive_remote(kLeader);
    }
    ring_.step();
  }

  // Waits until the MMAs that read this slot have completed; the leader's commit arrives.
  PAGODA_DEVICE void acquire() const {
    ring_.producer_acquire();
    arch::syncwarp();
  }
  // Expects this CTA's bytes on the leader's barrier, which counts one arrival of each CTA.
  // Relaxed: the MMAs read nothing that this thread wrote.
  PAGODA_DEVICE void expect_bytes(uint32_t bytes) const {
    if (elect_ != 0) full().arrive_expect_tx_remote_relaxed(kLeader, bytes);
  }
  [[nodiscard]] PAGODA_DEVICE arch::MBarrier& full() const { return ring_.producer_mbar(); }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> slot() const {
    const uint32_t stage = arch::mutable_stage("K and V stages share memory", ring_.state.index);
    return storage_.kv.at(static_cast<int32_t>(stage) * Ops::slot_elements);
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  typename Ops::Ring ring_;
  int32_t elect_;
  uint32_t num_keys_ = 0, head_ = 0;
  uint32_t tail_phase_ = 0;
};

// Loads Q: one lane, which is also the scheduler's, calls after it has written `work` to the ring.
template <class Config>
class LoadQ {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;

  PAGODA_DEVICE LoadQ(const AttentionParams& params, Storage<Config>& storage, int rank)
      : params_(params), storage_(storage), rank_(rank) {}

  // Loads this CTA's block. Padding rows hold rows of another sequence, or zeros; their results are
  // not stored.
  PAGODA_DEVICE void load(const Work& work) {
    if (work.walk.num_tiles == 0) return;
    // Waits until the MMAs have read Q and TMA has read the O staged there; a correction lane
    // arrives.
    storage_.q_empty.wait(phase_);
    phase_ ^= 1U;
    const bool is_ragged = params_.sequences.cu_rows != nullptr;
    const int32_t tokens = tokens_of_block<Config>(work);
    const int32_t row = work.first_token + rank_ * tokens + (is_ragged ? work.memory_row : 0);
    // TMA fills columns past the head dim with zeros.
    const int32_t columns = core::align_up(params_.dim_qk, Ops::panel_columns);
    // A release: MMAs also read padding rows, which may hold an O that correction lanes stored.
    storage_.q_full.arrive_expect_tx_remote(
        kLeader, static_cast<uint32_t>(tokens * work.num_heads * columns) * sizeof(T));
    for (int column = 0; column < columns; column += Ops::panel_columns) {
      arch::tma_load_pair<4>(1, storage_.q.at(column * tile.block_rows), params_.q,
                             {{column, work.first_head, row, is_ragged ? 0 : work.sequence}},
                             storage_.q_full, arch::Eviction::kFirst);
    }
  }

 private:
  const AttentionParams& params_;
  Storage<Config>& storage_;
  int rank_;
  uint32_t phase_ = 1;
};

}  // namespace pagoda::mha_sm100_d512
