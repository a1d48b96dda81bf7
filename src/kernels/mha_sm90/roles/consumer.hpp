// Consumer: the mainloop of a consumer warpgroup with wgmma. S = Q K', softmax, O += P V over the
// KV tiles of a work tile, from the last (masked) to the first. tile.overlaps_pv: S of a tile and
// P V of the tile before it are issued back to back, and the softmax of the tile runs while P V
// executes:
//
//   first tile      S = Q K(n - 1)'                      P = softmax(S)
//   i = n - 2 .. 0  S = Q K(i)'       O += P V(i + 1)    P = softmax(S), while P V(i + 1) executes
//   after the loop                    O += P V(0)
//
// Else P V(i + 1) is complete before S = Q K(i)' is issued: S may take P's registers, which leaves
// room for a third consumer.
//
// With ping-pong on, consumers issue their products in turn, so that the softmax of one runs under
// the products of the others.
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fault.hpp"
#include "arch/warp.hpp"
#include "arch/wgmma.hpp"
#include "kernels/common/row_power.hpp"
#include "kernels/mha_sm90/named_barriers.hpp"
#include "kernels/mha_sm90/roles/load_q.hpp"
#include "kernels/mha_sm90/roles/multiply_again.hpp"
#include "kernels/mha_sm90/softmax.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

using kernels::LargestOfPairs;
using kernels::RowPower;
using kernels::scaled_to_f16;

// One object in every thread of a consumer warpgroup.
template <class Config>
class Consumer {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Product = typename Ops::Product;
  using Row = mha_sm90::Row<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = tile.BN;
  using Out = typename Ops::Out;
  static constexpr bool is_gathered = tile.load == LoadKind::kGather;
  // Whether the cache may be fp8 under queries of T.
  static constexpr bool is_cache_fp8 = is_gathered || tile.widens();
  static constexpr bool converts_q = !std::same_as<T, Product>;
  // Whether tiles without a mask leave out the maxima of their scores if they can (exp2_at_pivots).
  // With O of 256 columns over an e4m3 cache 32 bytes would spill.
  static constexpr bool skips_maxima = OwnTilesOf<Config>::exist &&
                                       !kernels::kHasFunctorScore<Config> &&
                                       !(tile.widens() && tile.depth_vo == 256);
  // overlaps_pv: whether the steps are one loop, masked or not, instead of three. It is less code,
  // which short prompts read from DRAM: 4 x 300 causal tokens, 40/8 heads, d128 30.0 for 32.0 us
  // (H100). With e4m3 it is 5 % slower at 8k keys.
  static constexpr bool has_one_loop = skips_maxima && tile.element_bytes == 2;
  // Instructions of P V over the keys, and columns of each. ptxas compiles none of 256 columns if
  // a thread has 128 registers at launch, which those of O alone would take.
  static constexpr int steps_pv = BN / kKeysOfMma<T>;
  static constexpr int columns_pv =
      tile.num_converters() > 0 && tile.depth_vo > 128 ? 128 : tile.depth_vo;

  // `warpgroup`: index among the consumers.
  PAGODA_DEVICE Consumer(const AttentionParams& params, Storage<Config>& storage, int warpgroup)
      : params_(params),
        storage_(storage),
        warpgroup_(warpgroup),
        k_(Ops::KRing::consumer(storage.k_ring)),
        v_(Ops::VRing::consumer(storage.v_ring)),
        q_descriptor_(descriptor_at(Ops::q_tile, storage.q_at(0, warpgroup).address())),
        k_descriptor_(descriptor_at(Ops::k_tile, storage.k.data().address())),
        v_descriptor_(descriptor_at(Ops::v_tile, storage.v.data().address())) {}

  // Adds the keys of the reader's work tile, which has KV tiles, to `rows` and `o`. make_rows() is
  // called under the first product, finish_rows() under the last. False: the rows of this consumer
  // see none of the keys; nothing was called.
  template <class MakeRows, class FinishRows>
  PAGODA_DEVICE bool mainloop(const WorkReader& reader, Row (&rows)[2],
                              float (&o)[tile.depth_vo / 2], const MakeRows& make_rows,
                              const FinishRows& finish_rows) {
    float s[BN / 2];
    uint32_t p[steps_pv][4];
    float factors[2];
    OwnTiles walk;
    if constexpr (is_cache_fp8) stored_scales_[0] = kernels::k_scale(params_, reader.work());
    if constexpr (is_gathered) {
      sync_warpgroup(warpgroup_);  // the products of all four warps have read the previous Q
      QBeforeKV<Config> order(storage_);
      PackedLoad<Config, kWarpgroup>::run(params_, storage_, reader.work(), order);
      sync_warpgroup(warpgroup_);  // all threads have stored their part of Q
    } else {
      // Load Q: its bytes have landed, or its lanes have stored it; own tiles are stored.
      q_ring().consumer_wait();
      if constexpr (OwnTilesOf<Config>::are_found_by_load_q) {
        walk = arch::load(storage_.own_tiles_at(q_.index, warpgroup_));
        // All lanes have read it before one releases the stage; else the turn's barrier says so.
        if constexpr (!is_ping_pong) arch::syncwarp();
      }
      q_.step();
    }
    if constexpr (!OwnTilesOf<Config>::are_found_by_load_q) {
      walk = may_skip ? OwnTilesOf<Config>::find(params_, reader.work(), warpgroup_)
                      : OwnTiles::of(reader.work().walk);
    }
    if constexpr (may_skip) skip_other_tiles(reader, walk.num_tiles);
    if constexpr (has_two_q_stages) {
      q_descriptor_ = descriptor_at(Ops::q_tile, q_smem().address());
    }
    if constexpr (may_skip) {
      if (walk.num_tiles == 0) {
        if constexpr (defers_q_release) release_previous_q();
        if constexpr (!tile.stages_o_in_q()) release_q_stage();
        return false;
      }
    }

    if constexpr (converts_q) convert_q();
    k_.consumer_wait();  // load K: the bytes of the tile have landed
    fence_gathered();
    wait_turn();
    issue_qk(s);
    make_rows();
    if constexpr (!tile.overlaps_pv) {
      PAGODA_UNROLL
      for (float& sum : o) sum = 0;
    }
    if constexpr (tile.element_bytes == 1) load_scales(reader.work(), rows);
    if constexpr (defers_q_release) release_previous_q();
    arch::wgmma_wait_group<0>();  // S is complete
    arch::wgmma_pin(s);
    pass_turn();
    release(k_);
    int32_t i = walk.num_tiles - 1;
    const auto tile_at = [&walk, start = reader.work().walk.start_column](int32_t index) {
      return KVTile{.index = index,
                    .start = start,
                    .is_masked = index >= walk.unmasked_end || index < walk.unmasked_begin,
                    .needs_maxima = index >= walk.maxima_begin};
    };
    bool has_output = !tile.overlaps_pv;
    if constexpr (tile.overlaps_pv) {
      compute_p(reader, tile_at(i).with_maxima(), s, rows, factors);
      convert_p<Product, BN>(s, p);
      if constexpr (has_one_loop) {
        PAGODA_NO_UNROLL
        for (; i > 0; --i) step(reader, tile_at(i - 1), s, p, rows, factors, o, has_output);
      } else {
        for (; i > (skips_maxima ? walk.maxima_begin : walk.unmasked_end); --i) {
          const KVTile next = skips_maxima ? tile_at(i - 1).with_maxima() : tile_at(i - 1).masked();
          step(reader, next, s, p, rows, factors, o, has_output);
        }
        for (; i > walk.unmasked_begin; --i) {
          step(reader, tile_at(i - 1).unmasked(), s, p, rows, factors, o, has_output);
        }
        for (; i > 0; --i) {
          step(reader, tile_at(i - 1).masked(), s, p, rows, factors, o, has_output);
        }
      }
    } else {
      PAGODA_NO_UNROLL
      for (;; --i) {
        const bool rescales = compute_p(reader, tile_at(i), s, rows, factors);
        if (rescales) rescale_output(o, factors);
        convert_p<Product, BN>(s, p);
        if (i == 0) break;
        issue_in_turn(s, p, o);
      }
    }

    // All products Q K' are complete. Q is released here, unless the epilogue stages O there, or
    // converts O of packed rows there.
    if (releases_q_early()) release_q_stage();
    v_.consumer_wait();  // load V or transpose V: the tile is full, its tail zeroed
    fence_gathered();
    issue_pv(o, p, has_output);
    finish_rows();
    arch::wgmma_wait_group<0>();  // O is complete
    arch::wgmma_pin(o);
    release(v_);
    return true;
  }

  // Where the epilogue stages O when the products are complete: the stage of the work tile's Q, or
  // memory of its own.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<Out> out_smem() const {
    if constexpr (tile.stages_o_in_q()) {
      return q_smem();
    } else {
      return storage_.conversion.out.at(warpgroup_ * kRows * tile.depth_vo);
    }
  }
  // Called after the epilogue of a work tile with KV tiles: O has been stored from registers, or
  // TMA is reading it from the Q stage. With two stages this stage is released in the next work
  // tile's mainloop, when that has issued products; until then TMA has time to read.
  PAGODA_DEVICE void release_q() {
    if constexpr (defers_q_release) {
      if constexpr (!is_ping_pong) arch::syncwarp();  // else its barrier comes before the release
      has_previous_q_ = true;
    } else if constexpr (!is_gathered) {
      if (releases_q_early()) return;
      arch::syncwarp();  // all lanes have read O, or executed their fence after writing the stage
      release_q_stage();
    }
  }

 private:
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> q_smem() const {
    return storage_.q_at(q_stage(), warpgroup_);
  }
  // Gathered rows have no ring of Q.
  [[nodiscard]] PAGODA_DEVICE bool releases_q_early() const {
    if constexpr (!tile.stages_o_in_q()) return true;
    if constexpr (tile.rows == RowKind::kTokens || is_gathered) return false;
    return kernels::is_out_of<Out>(params_);
  }
  static constexpr bool has_two_q_stages = tile.q_stages > 1;
  static_assert(tile.q_stages <= 2);
  static constexpr bool defers_q_release = has_two_q_stages && tile.stages_o_in_q();
  // Whether TMA reads O from memory of its own.
  static constexpr bool has_out_by_tma = tile.rows == RowKind::kTokens && !tile.stages_o_in_q();
  static constexpr bool may_skip = OwnTilesOf<Config>::exist;

  // Q in bf16 becomes f16, in place, each row scaled by a power of two. Two lanes a row of the
  // warp's 16, the only ones that this warp's share of a product reads. stored_scales_ has the
  // scale of K.
  PAGODA_DEVICE void convert_q() {
    constexpr int words = Ops::chunk / 8;  // of 16 bytes, in a row of a panel
    const int lane = arch::lane_idx();
    const int row = 16 * (arch::warp_idx() % 4) + lane / 2;
    const arch::SharedPtr<T> q = q_smem();
    const auto word_at = [&](int panel, int i) {
      const uint32_t offset = Ops::panel_offset(kRows, row, 8 * (2 * i + lane % 2));
      const uint32_t address = swizzle_address(q.address() + offset, tile.swizzle);
      return (q + (panel * kRows * Ops::chunk +
                   static_cast<int32_t>((address - q.address()) / sizeof(T))))
          .template as<arch::Words<4>>();
    };
    // Not of an empty row of a block, which nothing may have written.
    const int panels = row < rows_of_consumer<Config>(params_) ? tile.depth_qk / Ops::chunk : 0;
    LargestOfPairs largest;
    PAGODA_NO_UNROLL
    for (int panel = 0; panel < panels; ++panel) {
      PAGODA_UNROLL
      for (int i = 0; i < words / 2; ++i) {
        for (const uint32_t pair : arch::load(word_at(panel, i)).word) largest.add(pair);
      }
    }
    const float of_lane = largest.value(), of_other = arch::shuffle_xor(of_lane, 1);
    // Of a NaN and a number either: the row's scores are NaN anyway.
    const RowPower power = RowPower::of(of_other > of_lane ? of_other : of_lane);
    PAGODA_NO_UNROLL
    for (int panel = 0; panel < panels; ++panel) {
      PAGODA_UNROLL
      for (int i = 0; i < words / 2; ++i) {
        arch::Words<4> value = arch::load(word_at(panel, i));
        for (uint32_t& pair : value.word) pair = scaled_to_f16(pair, power.factor);
        arch::store(word_at(panel, i), value);
      }
    }
    stored_scales_[1] = stored_scales_[0] * arch::shuffle(power.inverse, lane / 4 * 2 + 16);
    stored_scales_[0] *= arch::shuffle(power.inverse, lane / 4 * 2);
    arch::fence_proxy_async_shared();  // orders this lane's stores of Q before wgmma reads them
    // All lanes have stored their part and executed the fence when the turn's barrier is passed.
    if constexpr (!is_ping_pong) arch::syncwarp();
  }

  // Releases the last KV tiles of the work tile, after the `own` first of them, without a product:
  // no row of this consumer sees a key of them.
  PAGODA_DEVICE void skip_other_tiles(const WorkReader& reader, int32_t own) {
    const int32_t num_tiles = reader.work().walk.num_tiles;
    for (int32_t i = own; i < num_tiles; ++i) {
      k_.consumer_wait();  // load K: the bytes have landed; a stage is released in its phase only
      wait_turn();         // ping-pong: both consumers take as many turns
      pass_turn();
      release(k_);
      v_.consumer_wait();  // load V: the same
      release(v_);
    }
  }

  [[nodiscard]] PAGODA_DEVICE typename Ops::QRing q_ring() const {
    return {storage_.q_ring[warpgroup_], q_};
  }
  [[nodiscard]] PAGODA_DEVICE uint32_t k_stage() const {
    return arch::mutable_stage("K stages share memory", k_.state.index);
  }
  [[nodiscard]] PAGODA_DEVICE uint32_t v_stage() const {
    return arch::mutable_stage("V stages share memory", v_.state.index);
  }
  // The work tile's stage: q_ has stepped past it.
  [[nodiscard]] PAGODA_DEVICE uint32_t q_stage() const {
    return has_two_q_stages ? q_.index ^ 1U : 0;
  }

  // Every warp arrives at q empty. Its elected lane has waited for the products that read Q; if it
  // has issued the TMA store of O, it waits here until TMA has read O from the stage.
  PAGODA_DEVICE void release_q_stage() {
    if constexpr (tile.rows == RowKind::kTokens && tile.stages_o_in_q()) {
      arch::bulk_wait_group_read<0>();
    }
    q_ring().consumer_release_at(q_stage(), arch::elect_one());
  }
  // With two stages q_, already stepped, is at the stage that the previous work tile used.
  PAGODA_DEVICE void release_previous_q() {
    if (!has_previous_q_) return;
    arch::bulk_wait_group_read<0>();
    q_ring().consumer_release_at(q_.index, arch::elect_one());
    has_previous_q_ = false;
  }

  struct KVTile {
    int32_t index;
    int32_t start;  // first column of tile 0
    bool is_masked;
    bool needs_maxima;  // skips_maxima: without a mask, too; not read of a functor's tiles

    // The same tile where the mainloop's place says more.
    [[nodiscard]] PAGODA_DEVICE KVTile with_maxima() const {
      return {index, start, is_masked, true};
    }
    [[nodiscard]] PAGODA_DEVICE KVTile masked() const { return {index, start, true, true}; }
    [[nodiscard]] PAGODA_DEVICE KVTile unmasked() const { return {index, start, false, false}; }

    // Loaded again where start, or a gap, would take registers in the tiles without a mask.
    [[nodiscard]] PAGODA_DEVICE int32_t first_key(const WorkReader& reader) const {
      if constexpr (kernels::kHasFunctorMask<Config>) return reader.work().walk.first_key(index);
      return (skips_maxima ? reader.work().walk.start_column : start) + index * BN;
    }
  };

  // e4m3: P are converted under the exponentials of the keys after them, which leave most issue
  // slots free. P V of the tile before must have read P's registers by then: after the exponentials
  // of the first keys. 16-bit P, whose P V takes as long as all exponentials, gain nothing by it.
  static constexpr bool converts_early = tile.element_bytes == 1 && skips_maxima;
  struct ConvertEarly {
    static constexpr int kParts = steps_pv;  // the keys of an instruction of P V
    Consumer& consumer;
    float (&s)[BN / 2];
    uint32_t (&p)[steps_pv][4];
    float (&o)[tile.depth_vo / 2];

    PAGODA_DEVICE void has_p_of(int part) {
      if (part == 0) {
        arch::wgmma_wait_group_here<0>(consumer.params_.max_rows);  // O is complete
        arch::wgmma_pin(o);
        consumer.release(consumer.v_);
      } else {
        convert_p<Product, BN>(s, p, part - 1, part);
      }
      if (part == kParts - 1) convert_p<Product, BN>(s, p, part, kParts);
    }
    PAGODA_DEVICE void has_other_pivots(const float (&factors)[2]) {
      rescale_output(o, factors);
      convert_p<Product, BN>(s, p);
    }
  };

  // S of `next`, and P V of the tile before; then the softmax of `next`.
  PAGODA_DEVICE void step(const WorkReader& reader, const KVTile& next, float (&s)[BN / 2],
                          uint32_t (&p)[steps_pv][4], Row (&rows)[2], float (&factors)[2],
                          float (&o)[tile.depth_vo / 2], bool& has_output) {
    k_.consumer_wait();  // load K: the bytes of the tile have landed
    if constexpr (is_gathered) {
      v_.consumer_wait();  // gathering warps: V is stored; one fence serves K and V
      fence_gathered();
    }
    wait_turn();
    issue_qk(s);
    if constexpr (!is_gathered) v_.consumer_wait();  // load or transpose V: full, its tail zeroed
    issue_pv(o, p, has_output);
    pass_turn();
    has_output = true;
    arch::wgmma_wait_group<1>();  // S is complete
    arch::wgmma_pin(s);
    release(k_);
    if constexpr (converts_early) {
      compute_p(reader, next, s, rows, factors, ConvertEarly{*this, s, p, o});
      return;
    }
    const bool rescales = compute_p(reader, next, s, rows, factors);
    // O is complete.
    if constexpr (is_gathered) {
      arch::wgmma_wait_group<0>();  // the other one spills
    } else {                        // the exponentials run under P V
      arch::wgmma_wait_group_after<0>(rows[0].online.sums().sum + rows[1].online.sums().sum);
    }
    arch::wgmma_pin(o);
    release(v_);
    if (rescales) rescale_output(o, factors);
    convert_p<Product, BN>(s, p);
  }

  // P V of a tile, then S of the next. Both are complete when it returns.
  PAGODA_DEVICE void issue_in_turn(float (&s)[BN / 2], uint32_t (&p)[steps_pv][4],
                                   float (&o)[tile.depth_vo / 2]) {
    static_assert(!is_gathered);
    v_.consumer_wait();  // load V: full, its tail zeroed
    wait_turn();
    issue_pv(o, p, true);
    k_.consumer_wait();           // load K: the bytes of the tile have landed
    arch::wgmma_wait_group<0>();  // O is complete: S may take P's registers
    arch::wgmma_pin(o);
    issue_qk(s);
    pass_turn();
    release(v_);
    arch::wgmma_wait_group<0>();  // S is complete
    arch::wgmma_pin(s);
    release(k_);
  }

  // S = Q K', as one wgmma group.
  PAGODA_DEVICE void issue_qk(float (&s)[BN / 2]) {
    const arch::SmemDescriptor keys =
        arch::advance(k_descriptor_, k_stage() * (Ops::k_elements * sizeof(T)));
    constexpr arch::OperandTile q_tile = Ops::q_tile, k_tile = Ops::k_tile;
    arch::wgmma_fence();
    PAGODA_UNROLL
    for (int k = 0; k < tile.depth_qk / kKeysOfMma<T>; ++k) {
      const int column = kKeysOfMma<T> * k;
      arch::Wgmma<Product, BN>::ss(s, arch::advance(q_descriptor_, tile_offset(q_tile, 0, column)),
                                   arch::advance(keys, tile_offset(k_tile, 0, column)), k > 0);
    }
    arch::wgmma_commit_group();
  }

  // O += P V, or O = P V, as one wgmma group.
  PAGODA_DEVICE void issue_pv(float (&o)[tile.depth_vo / 2], uint32_t (&p)[steps_pv][4],
                              bool accumulates) {
    const arch::SmemDescriptor values =
        arch::advance(v_descriptor_, v_stage() * (Ops::v_elements * sizeof(T)));
    constexpr arch::OperandTile v_tile = Ops::v_tile;
    PAGODA_UNROLL
    for (int k = 0; k < steps_pv; ++k) arch::wgmma_pin(p[k]);
    arch::wgmma_fence();
    PAGODA_UNROLL
    for (int k = 0; k < steps_pv; ++k) {
      const int from = arch::mutable_value("V of the tile's first keys", k, 0);
      PAGODA_UNROLL
      for (int column = 0; column < tile.depth_vo; column += columns_pv) {
        const uint32_t offset = tile_offset(v_tile, column, kKeysOfMma<T> * from);
        auto& sums = reinterpret_cast<float(&)[columns_pv / 2]>(o[column / 2]);
        arch::Wgmma<Product, columns_pv, arch::Major::kK, v_tile.major>::rs(
            sums, p[k], arch::advance(values, offset), accumulates || k > 0);
      }
    }
    arch::wgmma_commit_group();
  }

  // S of `at` becomes P. Returns whether O must be multiplied with `factors`; `follow_up` has done
  // so, if it is ConvertEarly.
  template <class FollowUp = NoFollowUp>
  PAGODA_DEVICE bool compute_p(const WorkReader& reader, const KVTile& at, float (&s)[BN / 2],
                               Row (&rows)[2], float (&factors)[2], FollowUp follow_up = {}) {
    if constexpr (tile.scores == ScoreClass::kCapped) {
      return compute_capped_p(reader, at, s, rows, factors);
    }
    constexpr bool is_general = tile.scores == ScoreClass::kGeneral;
    float scales[2];
    apply_stored_scales(s, scales);
    if constexpr (is_general) {
      apply_score_mods<Config>(params_, reader, rows, at.first_key(reader), s);
    }
    if constexpr (kernels::kHasFunctorScore<Config>) {
      apply_functor_score<Config>(params_, reader, rows, at.first_key(reader), scales, s);
    }
    PAGODA_UNROLL
    for (float& scale : scales) {
      scale = is_general ? 1.0F : kernels::score_factor<Config>(scale);
    }
    if constexpr (skips_maxima) {
      if (!at.is_masked && !needs_maxima(at, rows)) {
        const auto scores_again = [&](float(&again)[BN / 2]) {
          MultiplyAgain<Config>(params_, reader.work(), q_smem()).run(at.first_key(reader), again);
        };
        return exp2_at_pivots<BN>(s, rows, scales, factors, scores_again, follow_up);
      }
    }
    if (at.is_masked) apply_mask<Config>(params_, reader, rows, at.first_key(reader), s);
    const bool rescales = exp2_scores<BN>(s, rows, scales, factors);
    if constexpr (FollowUp::kParts > 0) {
      PAGODA_UNROLL
      for (int part = 0; part < FollowUp::kParts; ++part) follow_up.has_p_of(part);
      if (rescales) follow_up.has_other_pivots(factors);
    }
    return rescales;
  }

  // The same of scores with a soft cap.
  PAGODA_DEVICE bool compute_capped_p(const WorkReader& reader, const KVTile& at,
                                      float (&s)[BN / 2], Row (&rows)[2], float (&factors)[2]) {
    static_assert(tile.scores != ScoreClass::kCapped || (skips_maxima && !is_cache_fp8));
    const float factor = params_.score_map.inverse_range;
    const float scales[2] = {params_.score_map.scale_log2, params_.score_map.scale_log2};
    const bool are_small = has_small_scores<BN>(factor, s);
    const bool has_pivots = !at.is_masked && !needs_maxima(at, rows);
    const auto scores_again = [&](float(&again)[BN / 2]) {
      MultiplyAgain<Config>(params_, reader.work(), q_smem()).run(at.first_key(reader), again);
      PAGODA_NO_UNROLL
      for (float& score : again) score = softmax::tanh_by_exp2(score * factor);
    };
    if constexpr (tile.depth_vo <= 128) {  // spills beside O of 256 columns
      if (has_pivots && are_small) {
        return exp2_at_pivots<BN>(s, rows, scales, factors, scores_again, NoFollowUp{},
                                  softmax::ShortTanh::of(factor));
      }
    }
    apply_soft_cap<Config>(factor, are_small, s);
    if (has_pivots) return exp2_at_pivots<BN>(s, rows, scales, factors, scores_again, NoFollowUp{});
    if (at.is_masked) apply_mask<Config>(params_, reader, rows, at.first_key(reader), s);
    return exp2_scores<BN>(s, rows, scales, factors);
  }

  PAGODA_DEVICE bool needs_maxima(const KVTile& at, const Row (&rows)[2]) const {
    if constexpr (!kernels::kHasFunctorMask<Config>) return at.needs_maxima;
    // The rows of a functor may have their first key in any tile.
    int has_no_pivot = 0;
    PAGODA_UNROLL
    for (const Row& row : rows) {
      has_no_pivot |=
          static_cast<int>(!row.keys.empty()) & static_cast<int>(!row.online.has_pivot());
    }
    return params_.row_max != nullptr || arch::any(has_no_pivot);
  }

  // Keys of an fp8 cache have a scale; e4m3 queries too, those of packed rows for each row, and
  // converted ones.
  static constexpr int num_stored_scales =
      converts_q || (tile.element_bytes == 1 && tile.rows == RowKind::kPacked) ? 2 : 1;
  [[nodiscard]] PAGODA_DEVICE float stored_scale(int r) const {
    return stored_scales_[r % num_stored_scales];
  }
  PAGODA_DEVICE void load_scales(const Work& work, const Row (&rows)[2]) {
    PAGODA_UNROLL
    for (int r = 0; r < num_stored_scales; ++r) {
      stored_scales_[r] = kernels::k_scale(params_, work);
      if (params_.q_scales.values == nullptr) continue;
      stored_scales_[r] *=
          params_.q_scales.of(work.sequence, rows[r].q_head / params_.q_scale_group);
    }
  }
  // Makes `scales`, of each row, from products to log2 units. Folds the scales of stored Q and K
  // into those of linear scores, or multiplies S with them where that is impossible: under a soft
  // cap, or keys of an fp8 cache with a scale of 0 (0 * -infinity of masked scores is NaN).
  PAGODA_DEVICE void apply_stored_scales(float (&s)[BN / 2], float (&scales)[2]) const {
    scales[0] = scales[1] = params_.score_map.scale_log2;
    if constexpr (is_cache_fp8 || tile.element_bytes == 1) {
      bool folds = tile.scores == ScoreClass::kPlain;
      if constexpr (is_cache_fp8) {
        PAGODA_UNROLL
        for (int r = 0; r < num_stored_scales; ++r)
          folds = folds && scales[r] * stored_scale(r) > 0;
      }
      if (folds) {
        PAGODA_UNROLL
        for (int r = 0; r < 2; ++r) scales[r] *= stored_scale(r);
      } else {
        PAGODA_UNROLL
        for (int i = 0; i < BN / 2; ++i) s[i] *= stored_scale(i / 2 % 2);
      }
    }
  }

  // Orders the gathering threads' stores of K and V, and this warpgroup's of Q, which barriers made
  // visible to this thread, before wgmma reads them (async proxy). In the gathering threads the
  // fence would also wait for their copies in flight (MEMBAR.ALL): fp8 decode of 64 x 4096 keys
  // took 261 us with the fence there, 253 us with it here (H200).
  PAGODA_DEVICE void fence_gathered() {
    if constexpr (is_gathered) arch::fence_proxy_async_shared();
  }

  // One arrival a warp, when the products that read the stage are complete.
  template <class Ring>
  PAGODA_DEVICE void release(Ring& ring) {
    ring.consumer_release(arch::elect_one());
  }

  static constexpr bool is_ping_pong = tile.is_ping_pong && tile.num_consumers > 1;

  // Waits until the previous consumer has issued its products.
  PAGODA_DEVICE void wait_turn() {
    if constexpr (is_ping_pong) {
      arch::named_barrier_sync(kPingPongBarrier + warpgroup_, 2 * kWarpgroup);
    }
  }
  // Lets the next consumer issue.
  PAGODA_DEVICE void pass_turn() {
    if constexpr (is_ping_pong) {
      const int next = warpgroup_ + 1 == tile.num_consumers ? 0 : warpgroup_ + 1;
      arch::named_barrier_arrive(kPingPongBarrier + next, 2 * kWarpgroup);
    }
  }

 public:
  // The last consumer lets consumer 0 issue first.
  PAGODA_DEVICE void start_ping_pong() {
    if constexpr (is_ping_pong) {
      if (warpgroup_ == tile.num_consumers - 1) pass_turn();
    }
  }
  // Called after the last work tile.
  PAGODA_DEVICE void finish() {
    if constexpr (is_ping_pong) {
      if (warpgroup_ == 0) wait_turn();  // completes the phase in which the last consumer arrived
    }
    // TMA has read O from shared memory, which is gone when the CTA ends.
    if constexpr (defers_q_release || has_out_by_tma) arch::bulk_wait_group_read<0>();
  }

 private:
  const AttentionParams& params_;
  Storage<Config>& storage_;
  int warpgroup_;
  typename Ops::KRing k_;
  typename Ops::VRing v_;
  typename Ops::QRing::State q_ = Ops::QRing::State::consumer();  // of the next work tile's Q
  bool has_previous_q_ = false;  // the stage of the previous work tile is not released
  arch::SmemDescriptor q_descriptor_, k_descriptor_, v_descriptor_;
  float stored_scales_[num_stored_scales];  // of products of stored Q and K, see stored_scale()
};

}  // namespace pagoda::mha_sm90
