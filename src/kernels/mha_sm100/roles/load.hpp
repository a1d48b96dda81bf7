// The load roles: one warp loads K and V by TMA through PagedRowIndices, one lane loads Q. Key
// tiles go from the last to the first, as in every role.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "kernels/common/sm100/v_tail.hpp"
#include "kernels/mha_sm100/rings.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm100 {

// Loads K and V, part by part; all lanes of a warp call. The part of V in which the sequence ends
// completes on the barrier `v_tail` of this warp. The warp then zeroes the rows past the end that
// the MMAs read (P is 0 there, but 0 * NaN is NaN) and arrives on the part's full barrier. It
// requests the next K first. The MMAs read no part of V past the end.
//
// In a CTA pair each CTA loads its half of the keys of K and of the columns of V. The bytes of both
// complete on the leader's barriers.
template <class Config, int page_size, bool is_leader>
class Load {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = tile.BN;
  static constexpr bool is_pair = tile.ctas == 2;
  using Indices = operand::PagedRowIndices<BN, page_size, is_pair, is_leader>;
  static constexpr int parts = tile.num_mma_stages();  // of K and of V
  static constexpr int k_rows = tile.kv_tiling().k_rows_per_cta();
  static constexpr int k_columns = tile.kv_tiling().BK0;
  static constexpr int v_rows = tile.kv_tiling().BK1;
  static constexpr int v_columns = tile.kv_tiling().v_cols_per_cta();
  using KTile = operand::KVTmaTile<T, Indices::k_issue_rows, k_columns, tile.swizzle, is_pair>;
  template <bool of_pair>
  using VTile = operand::KVTmaTile<T, Indices::template v_issue_rows<parts>, v_columns,
                                   tile.swizzle, of_pair>;

  PAGODA_DEVICE Load(const AttentionParams& params, Storage<Config>& storage)
      : params_(params),
        storage_(storage),
        rings_(storage),
        elect_(arch::elect_one()),
        first_v_column_(
            is_leader ? 0 : static_cast<uint32_t>(Ops::output_columns(params) / tile.ctas)) {}

  PAGODA_DEVICE void run() {
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      const auto num_keys = static_cast<uint32_t>(work.rows.seqlen_kv);
      for (int32_t i = work.walk.num_tiles; i-- > 0;) {
        const auto column = static_cast<uint32_t>(kernels::first_key_of<Config>(work.walk, i));
        const auto rows = params_.sequences.keys.template populate<Indices>(work.sequence, column);
        const auto head = static_cast<uint32_t>(work.kv_head);
        load_k<0>(rows, head, column, num_keys);
        rings_.k().commit_step();
        zero_tail();
        load_v<0>(rows, head, column, num_keys);
        rings_.v().commit_step();
      }
      zero_tail();
    }
    rings_.drain();
  }

 private:
  // Rows past the sequence's end hold the rest of a page, or what the stage held before: the mask
  // replaces their scores.
  template <int part>
  PAGODA_DEVICE void load_k(const Indices& rows, uint32_t head, uint32_t column,
                            uint32_t num_keys) {
    auto& k = rings_.k();
    // Waits until the MMAs that read this stage have completed; the MMA warp's commit arrives.
    k.template acquire_k<part>();
    arch::syncwarp();
    const KTile op{&params_.k};
    constexpr uint32_t depth = part * k_columns;
    if (Indices::is_whole(column, num_keys)) {
      const auto to = get_k<part>(tile.ctas * Ops::KProducer::tile_bytes);
      rows.template tma_copy_k<false, k_rows>(op, to.smem, to.mbar, head, elect_,
                                              params_.kv_eviction, Indices::k_pages, depth);
    } else {
      // In a pair every CTA fills its part of every stage, with zeros where it has no key: else the
      // leader's MMAs could release a stage that a lane of the peer is still waiting for.
      constexpr auto missing =
          is_pair ? operand::MissingPages::kZero : operand::MissingPages::kSkip;
      const uint32_t pages = Indices::k_num_valid_pages(column, num_keys);
      const auto to =
          get_k<part>(is_pair ? tile.ctas * Ops::KProducer::tile_bytes : pages * KTile::bytes);
      rows.template tma_copy_k<true, k_rows, missing>(op, to.smem, to.mbar, head, elect_,
                                                      params_.kv_eviction, pages, depth);
    }
    if constexpr (part + 1 < parts) load_k<part + 1>(rows, head, column, num_keys);
  }

  template <int part>
  PAGODA_DEVICE void load_v(const Indices& rows, uint32_t head, uint32_t column,
                            uint32_t num_keys) {
    auto& v = rings_.v();
    v.template acquire_v<part>();  // waits for the MMA warp's commit, as load_k() does
    arch::syncwarp();
    const uint32_t first_key = column + part * v_rows;
    if (first_key + v_rows <= num_keys) {
      const auto to = get_v<part>();
      rows.template tma_copy_v<false, parts, part>(
          VTile<is_pair>{&params_.v}, to.smem, to.mbar, head, elect_, params_.kv_eviction,
          Indices::template v_pages<parts>, first_v_column_);
    } else if (part == 0 || first_key < num_keys) {
      const uint32_t pages = Indices::template v_num_valid_pages<parts>(column, num_keys, part);
      tail_ = v.template get_v_smem<part>();
      storage_.v_tail.arrive_expect_tx_if(elect_, pages * VTile<false>::bytes);
      rows.template tma_copy_v<true, parts, part>(VTile<false>{&params_.v}, tail_, storage_.v_tail,
                                                  head, elect_, params_.kv_eviction, pages,
                                                  first_v_column_);
      tail_rows_ = static_cast<int32_t>(num_keys - first_key);
      tail_full_ = &v.pipeline.template producer_mbar<part>();
      tail_stage_ = v.pipeline.state.index;
    } else if constexpr (is_pair) {  // no key: every CTA fills its half with zeros, as of K
      const auto to = get_v<part>();
      rows.template tma_copy_v<true, parts, part, operand::MissingPages::kZero>(
          VTile<is_pair>{&params_.v}, to.smem, to.mbar, head, elect_, params_.kv_eviction, 0,
          first_v_column_);
    } else {
      v.template get_v<part>(elect_, 0);  // no key, no bytes
    }
    if constexpr (part + 1 < parts) load_v<part + 1>(rows, head, column, num_keys);
  }

  // The destination of a copy. The leader arrives on the full barrier and expects the bytes of
  // every CTA; the peer's bytes may complete first, because the phase can't end before the arrival.
  template <int part>
  PAGODA_DEVICE auto get_k(uint32_t bytes_of_group) {
    if constexpr (is_leader) {
      return rings_.k().template get_k<part>(elect_, bytes_of_group);
    } else {
      return rings_.k().template get_k<part>();
    }
  }
  template <int part>
  PAGODA_DEVICE auto get_v() {
    if constexpr (is_leader) {
      return rings_.v().template get_v<part>(elect_, tile.ctas * Ops::VProducer::tile_bytes);
    } else {
      return rings_.v().template get_v<part>();
    }
  }

  // Zeroes the tail that load_v() requested, missing pages too, then arrives on the full barrier of
  // its stage.
  PAGODA_DEVICE void zero_tail() {
    if (tail_full_ == nullptr) return;
    storage_.v_tail.wait(tail_phase_);  // waits until TMA has loaded the tail
    constexpr int panels = v_columns / Ops::panel_columns;
    kernels::sm100::zero_rows<panels, v_rows, Ops::panel_columns* static_cast<int>(sizeof(T))>(
        tail_, tail_rows_, core::align_up(tail_rows_, tile.mma_k()));
    arch::fence_proxy_async_shared();  // orders the zeros before the MMAs' reads of V
    arch::MBarrier& of_peer = storage_.v_tail_of_peer[is_pair ? tail_stage_ : 0];
    if constexpr (is_pair && is_leader) {
      // Waits until the peer CTA has zeroed its columns; the peer's load warp arrives.
      of_peer.wait_cluster(peer_phases_ >> tail_stage_ & 1U);
      peer_phases_ ^= 1U << tail_stage_;
    }
    tail_phase_ ^= 1U;
    arch::syncwarp();
    if constexpr (is_leader) {
      tail_full_->arrive_if(elect_);
    } else {
      of_peer.arrive_remote_if(elect_, Ops::Group::kLeader);
    }
    tail_full_ = nullptr;
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  LoadRings<Config> rings_;
  int32_t elect_;
  uint32_t first_v_column_;              // of this CTA
  arch::MBarrier* tail_full_ = nullptr;  // full barrier of the tail's stage; nullptr: no tail
  arch::SharedPtr<T> tail_{};
  int32_t tail_rows_ = 0;  // in range; the rows behind them are zeroed
  uint32_t tail_phase_ = 0;
  uint32_t tail_stage_ = 0;
  uint32_t peer_phases_ = 0;  // one bit per stage
};

// Loads Q: one lane, which is also the scheduler's, calls after it has written `work` to the ring.
template <class Config>
class LoadQ {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;

  PAGODA_DEVICE LoadQ(const AttentionParams& params, Storage<Config>& storage)
      : params_(params), storage_(storage) {}

  // Padding rows hold rows of another sequence, or zeros; their results are not stored.
  PAGODA_DEVICE void load(const Work& work) {
    if (work.walk.num_tiles == 0) return;
    const bool is_ragged = params_.sequences.cu_rows != nullptr;
    const int32_t tokens = tokens_of_half(work);
    for (int half = 0; half < num_halves<Config>(work); ++half) {
      // Waits until the MMAs have read Q and TMA has read the O staged there; a correction lane
      // arrives.
      storage_.q_empty[half].wait(phases_ >> half & 1U);
      phases_ ^= 1U << half;
      arch::MBarrier& full = storage_.q_full[half];
      Ops::Group::arrive_expect_tx(
          full, static_cast<uint32_t>(tokens * work.num_heads * Config::tile.depth) * sizeof(T));
      const int32_t row =
          work.first_token + Ops::block_of(half) * tokens + (is_ragged ? work.memory_row : 0);
      PAGODA_UNROLL
      for (int column = 0; column < Config::tile.depth; column += Ops::panel_columns) {
        Ops::Group::template tma_load<4>(
            1, storage_.q.at(half * Ops::q_elements + column * kRows), params_.q,
            {{column, work.first_head, row, is_ragged ? 0 : work.sequence}}, full,
            arch::Eviction::kFirst);
      }
    }
  }

 private:
  const AttentionParams& params_;
  Storage<Config>& storage_;
  uint32_t phases_ = 3;  // one bit per half
};

}  // namespace pagoda::mha_sm100
