// The consumer's main loop: S = Q K', softmax, O += P V over the key tiles of one piece of work, from
// the last to the first. The products of the next scores and of the last probabilities are in flight
// together while neither is needed:
//
//   S = Q K(n)                                  softmax(S)   P
//   for tile n - 1 .. 0:   S = Q K(i)   O += P V(i + 1)   softmax(S)  while P V runs   P
//   O += P V(0)
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fault.hpp"
#include "arch/warp.hpp"
#include "arch/wgmma.hpp"
#include "kernels/mha_sm90/named_barriers.hpp"
#include "kernels/mha_sm90/roles/load_q.hpp"
#include "kernels/mha_sm90/softmax.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

template <class Config>
class Attend {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = tile.BN;
  static constexpr bool is_gathered = tile.load == LoadKind::kGather;  // .. and may be fp8

  // `warpgroup`: of the consumers.
  PAGODA_DEVICE Attend(const AttentionParams& params, Storage<Config>& storage, int warpgroup)
      : params_(params),
        storage_(storage),
        warpgroup_(warpgroup),
        k_(Ops::KRing::consumer(storage.k_ring)),
        v_(Ops::VRing::consumer(storage.v_ring)),
        q_descriptor_(describe_at(Ops::q_tile, storage.q_place(0, warpgroup).address())),
        k_descriptor_(describe_at(Ops::KProducer::tile_layout, storage.k.data().address())),
        v_descriptor_(describe_at(Ops::VProducer::tile_layout, storage.v.data().address())) {}

  // Adds the keys of the reader's work to `rows` and `o`; `walk`, its own, has at least one tile.
  PAGODA_DEVICE void run(const WorkReader& reader, const mask::TileWalk& walk, Row (&rows)[2],
                         float (&o)[tile.depth_vo / 2]) {
    float s[BN / 2];
    uint32_t p[BN / 16][4];
    float factors[2];
    if constexpr (is_gathered) k_scale_ = params_.kv_scales.k_scale(reader.work().kv_head);
    if constexpr (is_gathered) {
      sync_warpgroup(warpgroup_);  // every warp has read the Q before
      RequestOrder<Config> order(storage_);
      PackedLoad<Config, kWarpgroup>::run(params_, storage_, reader.work(), order);
      sync_warpgroup(warpgroup_);
    } else {
      q_ring().consumer_wait();  // the load warp's Q has landed
      q_.step();
    }
    if constexpr (defers_q) q_descriptor_ = describe_at(Ops::q_tile, q_place().address());

    k_.consumer_wait();  // the load warp's K has landed
    see_gathered();
    take_turn();
    issue_scores(s);
    if constexpr (defers_q) free_q_before();
    arch::wgmma_wait_group<0>();
    arch::wgmma_pin(s);
    pass_turn();
    release(k_);
    const int32_t start = walk.start_column;
    int32_t i = walk.num_tiles - 1;
    const bool is_masked = i >= walk.unmasked_end || i < walk.unmasked_begin;
    make_probabilities(reader, start + i * BN, is_masked, s, rows, factors);
    pack<T, BN>(s, p);

    bool has_output = false;
    for (; i > walk.unmasked_end; --i) {
      step<true>(reader, start + (i - 1) * BN, s, p, rows, factors, o, has_output);
    }
    for (; i > walk.unmasked_begin; --i) {
      step<false>(reader, start + (i - 1) * BN, s, p, rows, factors, o, has_output);
    }
    for (; i > 0; --i) {
      step<true>(reader, start + (i - 1) * BN, s, p, rows, factors, o, has_output);
    }

    // Packed rows: the next Q may come. Tiles of tokens need its place for O.
    if constexpr (tile.rows == RowKind::kPacked && !is_gathered) free_q();
    v_.consumer_wait();
    see_gathered();
    issue_output(o, p, has_output);
    arch::wgmma_wait_group<0>();
    arch::wgmma_pin(o);
    release(v_);
  }

  // Of Q, and of the O that takes it when the products are complete.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> q_place() const {
    return storage_.q_place(q_stage(), warpgroup_);
  }
  // The rows have ended; O is being stored from Q's place, or was never there. With a second place the
  // next rows go first, and free this one when they have issued products.
  PAGODA_DEVICE void leave_q() {
    if constexpr (defers_q) {
      has_q_before_ = true;
    } else {
      free_q();
    }
  }

 private:
  static constexpr bool defers_q = tile.q_stages > 1;
  static_assert(tile.q_stages <= 2);

  [[nodiscard]] PAGODA_DEVICE typename Ops::QRing q_ring() const {
    return {storage_.q_ring[warpgroup_], q_};
  }
  [[nodiscard]] PAGODA_DEVICE uint32_t k_stage() const {
    return arch::mutable_stage("K stages share memory", k_.state.index);
  }
  [[nodiscard]] PAGODA_DEVICE uint32_t v_stage() const {
    return arch::mutable_stage("V stages share memory", v_.state.index);
  }
  [[nodiscard]] PAGODA_DEVICE uint32_t q_stage() const { return defers_q ? q_.index ^ 1U : 0; }

  // By every warp: it reads Q, or the O that took its place, no longer. The elected lane has waited
  // for the product, and waits for the store, itself.
  PAGODA_DEVICE void free_q() {
    if constexpr (tile.rows == RowKind::kTokens) arch::bulk_wait_group_read<0>();
    q_ring().consumer_release_at(q_stage(), arch::elect_one());
  }
  // The place of the rows before, which is the next rows'.
  PAGODA_DEVICE void free_q_before() {
    if (!has_q_before_) return;
    arch::bulk_wait_group_read<0>();
    q_ring().consumer_release_at(q_.index, arch::elect_one());
    has_q_before_ = false;
  }

  static PAGODA_DEVICE arch::SmemDescriptor describe_at(arch::OperandTile operand,
                                                        uint32_t address) {
    operand.start_bytes = address;
    return arch::encode(arch::describe(operand), arch::DescriptorFormat::kSm90);
  }

  // The scores of the next tile, while the probabilities of the last one meet their V.
  template <bool is_masked>
  PAGODA_DEVICE void step(const WorkReader& reader, int32_t column, float (&s)[BN / 2],
                          uint32_t (&p)[BN / 16][4], Row (&rows)[2], float (&factors)[2],
                          float (&o)[tile.depth_vo / 2], bool& has_output) {
    k_.consumer_wait();  // the load warps' K and V have landed
    if constexpr (is_gathered) {
      v_.consumer_wait();
      see_gathered();
    }
    take_turn();
    issue_scores(s);
    if constexpr (!is_gathered) v_.consumer_wait();
    issue_output(o, p, has_output);
    pass_turn();
    has_output = true;
    arch::wgmma_wait_group<1>();
    arch::wgmma_pin(s);
    release(k_);
    const bool rescales = make_probabilities(reader, column, is_masked, s, rows, factors);
    arch::wgmma_wait_group<0>();
    arch::wgmma_pin(o);
    release(v_);
    if (rescales) {
      PAGODA_UNROLL
      for (int i = 0; i < tile.depth_vo / 2; ++i) o[i] *= factors[i / 2 % 2];
    }
    pack<T, BN>(s, p);
  }

  PAGODA_DEVICE void issue_scores(float (&s)[BN / 2]) {
    const arch::SmemDescriptor keys =
        arch::advance(k_descriptor_, k_stage() * (Ops::k_elements * sizeof(T)));
    constexpr arch::OperandTile q_tile = Ops::q_tile, k_tile = Ops::KProducer::tile_layout;
    arch::wgmma_fence();
    PAGODA_UNROLL
    for (int k = 0; k < tile.depth_qk / 16; ++k) {
      arch::Wgmma<T, BN>::ss(s, arch::advance(q_descriptor_, tile_offset(q_tile, 0, 16 * k)),
                             arch::advance(keys, tile_offset(k_tile, 0, 16 * k)), k > 0);
    }
    arch::wgmma_commit_group();
  }

  PAGODA_DEVICE void issue_output(float (&o)[tile.depth_vo / 2], uint32_t (&p)[BN / 16][4],
                                  bool accumulates) {
    const arch::SmemDescriptor values =
        arch::advance(v_descriptor_, v_stage() * (Ops::v_elements * sizeof(T)));
    constexpr arch::OperandTile v_tile = Ops::VProducer::tile_layout;
    PAGODA_UNROLL
    for (int k = 0; k < BN / 16; ++k) arch::wgmma_pin(p[k]);
    arch::wgmma_fence();
    PAGODA_UNROLL
    for (int k = 0; k < BN / 16; ++k) {
      const int from = arch::mutable_value("V of the tile's first keys", k, 0);
      arch::Wgmma<T, tile.depth_vo, arch::Major::kK, arch::Major::kMN>::rs(
          o, p[k], arch::advance(values, tile_offset(v_tile, 0, 16 * from)), accumulates || k > 0);
    }
    arch::wgmma_commit_group();
  }

  PAGODA_DEVICE bool make_probabilities(const WorkReader& reader, int32_t column, bool is_masked,
                                        float (&s)[BN / 2], Row (&rows)[2], float (&factors)[2]) {
    constexpr bool is_general = tile.scores == ScoreClass::kGeneral;
    const float scale = apply_k_scale(s);
    if constexpr (is_general) score<Config>(params_, reader, rows, column, s);
    if (is_masked) hide<Config>(params_, reader, rows, column, s);
    return soften<BN>(s, rows, is_general ? 1.0F : scale, factors);
  }

  // The scale of linear scores, with the factor of an fp8 cache in it. Where that can't be (a soft cap;
  // under a scale of 0 hidden scores would become NaN) the products are multiplied.
  PAGODA_DEVICE float apply_k_scale(float (&s)[BN / 2]) const {
    const float scale = params_.score_map.scale_log2;
    if constexpr (!is_gathered) return scale;
    const bool folds = tile.scores == ScoreClass::kPlain && scale * k_scale_ > 0;
    if (folds) return scale * k_scale_;
    PAGODA_UNROLL
    for (int i = 0; i < BN / 2; ++i) s[i] *= k_scale_;
    return scale;
  }

  // What is gathered are ordinary writes of other threads, ordered before wgmma's reads here. In the
  // gathering threads the fence would be one of all their memory (MEMBAR.ALL), copies under way, too:
  // fp8 decode of 64 x 4096 keys took 261 us for 253 (H200).
  PAGODA_DEVICE void see_gathered() {
    if constexpr (is_gathered) arch::fence_proxy_async_shared();
  }

  // One arrival a warp: its part of the product has read the stage.
  template <class Ring>
  PAGODA_DEVICE void release(Ring& ring) {
    ring.consumer_release(arch::elect_one());
  }

  static constexpr bool has_turns = tile.has_turns && tile.num_consumers > 1;

  // Consumers issue their products in turns, so that the softmax of one runs under the products of
  // the others.
  PAGODA_DEVICE void take_turn() {
    if constexpr (has_turns) arch::named_barrier_sync(kTurnBarrier + warpgroup_, 2 * kWarpgroup);
  }
  PAGODA_DEVICE void pass_turn() {
    if constexpr (has_turns) {
      const int next = warpgroup_ + 1 == tile.num_consumers ? 0 : warpgroup_ + 1;
      arch::named_barrier_arrive(kTurnBarrier + next, 2 * kWarpgroup);
    }
  }

 public:
  // The first turn is consumer 0's; after the last one it takes back what the last consumer passed.
  PAGODA_DEVICE void begin() {
    if constexpr (has_turns) {
      if (warpgroup_ == tile.num_consumers - 1) pass_turn();
    }
  }
  PAGODA_DEVICE void end() {
    if constexpr (has_turns) {
      if (warpgroup_ == 0) take_turn();
    }
    if constexpr (defers_q) arch::bulk_wait_group_read<0>();  // shared memory ends with the CTA
  }

 private:
  const AttentionParams& params_;
  Storage<Config>& storage_;
  int warpgroup_;
  typename Ops::KRing k_;
  typename Ops::VRing v_;
  typename Ops::QRing::State q_ = Ops::QRing::State::consumer();  // of the next Q
  bool has_q_before_ = false;
  arch::SmemDescriptor q_descriptor_, k_descriptor_, v_descriptor_;
  float k_scale_ = 1;  // of gathered keys
};

}  // namespace pagoda::mha_sm90
