// LatentMainloop: O and the online softmax of a work tile of decoding latent rows (MLA), whose
// first 512 of 576 columns are V, in the same memory.
//
// A row tile has 16 rows, and each of eight warps a panel of 64 columns: it multiplies Q and K of
// these columns for all keys of a KV tile, and later P and V. So it waits for its own copies alone.
// The last 64 columns of K are shared by keys, eight a warp. The sum of the nine partial scores is
// made by other threads than these: a warp has two rows of it, with their online softmax.
//
//   a warp, KV tile i                          in shared memory
//     wait for its panel
//     S = Q K' of its columns, all keys        partial scores      -> a barrier of the CTA
//     softmax of its two rows, all keys        P, factors of O     -> a barrier of the CTA
//     O += P V of its columns, all keys
//     request its panel of tile i - 2
#pragma once

#include <cstdint>
#include <utility>

#include "arch/cp_async.hpp"
#include "arch/fault.hpp"
#include "arch/named_barrier.hpp"
#include "arch/warp.hpp"
#include "kernels/common/kv_buffer/latent_loads.hpp"
#include "kernels/common/kv_buffer/softmax.hpp"
#include "kernels/common/kv_buffer/storage.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Config>
class LatentMainloop {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using I = typename Ops::Instruction;
  using Loads = LatentLoads<Config>;
  using Output = typename Ops::Output;
  static constexpr TileConfig tile = Config::tile;
  static_assert(tile.warps_m == 1 && Ops::m_tiles == 1 && tile.mma.M == 16 && tile.mma.N == 8);

  // Issues the first loads of `work`, which has KV tiles. Those of Q are issued, in no group yet.
  PAGODA_DEVICE LatentMainloop(const AttentionParams& params, Storage<Config>& storage,
                               const Work& work, int /*warp_m*/, int warp)
      : params_(params),
        storage_(storage),
        work_(work),
        warp_(warp),
        softmax_(params, 0),
        loads_(params, work, warp) {
    arch::cp_async_commit();
    const int32_t last = work.walk.num_tiles - 1;
    pages_ = loads_.find_pages(last);
    next_pages_ = loads_.find_pages(last > 0 ? last - 1 : 0);
    PAGODA_NO_UNROLL
    for (int i = 0; i < kSlots; ++i) load(last - i, i);
  }

  PAGODA_DEVICE void run(Online (&online)[Ops::rows], Output& o) {
    arch::cp_async_wait<kSlots>();
    arch::syncthreads();  // all threads' parts of Q are in shared memory
    Q q;
    load_panel(storage_.q.data() + warp_ * kQPanelSize, q.own);
    load_panel(storage_.q.data() + (Loads::kPanels - 1) * kQPanelSize, q.last);
    arch::syncthreads();  // all warps have read Q, whose memory the scores take
    own_keys_ = keys_of_row();
    PAGODA_NO_UNROLL
    for (int32_t i = work_.walk.num_tiles; i-- > 0;) kv_tile(i, q, o);
    share_sums(online);
  }

 private:
  static constexpr int kSlots = tile.k_tiles;
  static constexpr int kQPanelSize = tile.BM * Loads::kPanelColumns;
  static constexpr int kSteps = Loads::kPanelColumns / tile.mma.K;  // of a panel
  static constexpr int kKeySteps = tile.BN / tile.mma.K, kKeyTiles = tile.BN / tile.mma.N;
  static constexpr operand::VectorLayout q_panel =
      operand::panel_layout(tile.BM, Loads::kPanelColumns / 8);
  using Fragment = uint32_t[I::kAWords];
  using Words = arch::Words<4>;
  // Of the warp's panel and of the last one.
  struct Q {
    Fragment own[kSteps], last[kSteps];
  };

  // --- loads -------------------------------------------------------------------------------------

  // A KV tile, and the warp's panel of it.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> keys(int slot) const {
    return storage_.k() + slot * (Loads::kPanels * Loads::kPanelSize);
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> panel(int slot) const {
    return keys(slot) + warp_ * Loads::kPanelSize;
  }
  PAGODA_DEVICE void load(int32_t index, int slot) {
    if (index >= 0) {
      loads_.load(index, pages_, keys(slot));
      // Ids of pages are requested a KV tile before they are needed.
      pages_ = next_pages_;
      next_pages_ = loads_.find_pages(index > 1 ? index - 2 : 0);
    }
    arch::cp_async_commit();
  }
  static PAGODA_DEVICE void load_panel(arch::SharedPtr<T> from, Fragment (&q)[kSteps]) {
    I::template load_a<q_panel, 0>(q, from, 0);
  }

  // --- one KV tile -------------------------------------------------------------------------------

  PAGODA_DEVICE void kv_tile(int32_t index, const Q& q, Output& o) {
    arch::cp_async_wait<kSlots - 1>();
    arch::syncwarp();  // the panel of all lanes is in shared memory
    multiply_k(q);
    arch::syncthreads();  // the scores of all warps are stored
    exponentials(index);
    arch::syncthreads();  // P of all warps is stored
    rescale(o);
    multiply_v(o);
    arch::syncwarp();  // all lanes have read the panel
    load(index - kSlots, slot_);
    slot_ = kSlots - 1 - slot_;
  }

  // Partial scores: [panel][row][key]. Rows are padded, so that the lanes of a store have different
  // banks.
  static constexpr int kRowStride = Storage<Config>::kScoreStride;
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> scores(int panel, int row, int key) const {
    return storage_.q.data().template as<float>() + ((panel * tile.BM + row) * kRowStride + key);
  }
  PAGODA_DEVICE void store_scores(int panel, int first_key, const float (&s)[Ops::elements]) const {
    PAGODA_UNROLL
    for (int r = 0; r < I::kRows; ++r) {
      const int key = first_key + I::column(arch::lane_idx(), 0);
      arch::store(scores(panel, softmax_.row_index(r), key).template as<FloatPair>(),
                  FloatPair{s[2 * r], s[2 * r + 1]});
    }
  }
  PAGODA_DEVICE void multiply_k(const Q& q) const {
    float last[Ops::elements] = {};
    multiply_last<0>(q, last);
    multiply_last<1>(q, last);
    store_scores(Loads::kPanels - 1, warp_ * Loads::kLastRows, last);
    float s[kKeyTiles][Ops::elements] = {};
    multiply_k_steps(q, s, std::make_integer_sequence<int, kSteps>());
    PAGODA_UNROLL
    for (int n = 0; n < kKeyTiles; ++n) store_scores(warp_, n * tile.mma.N, s[n]);
  }
  // Two k-steps of the last panel, for the warp's eight keys.
  template <int pair>
  PAGODA_DEVICE void multiply_last(const Q& q, float (&s)[Ops::elements]) const {
    Words words[1];
    I::template load_b<Loads::layout, 2, true, pair, 0, 1>(
        words, keys(slot_) + (Loads::kPanels - 1) * Loads::kPanelSize, warp_ * Loads::kLastRows, 0);
    PAGODA_UNROLL
    for (int i = 0; i < 2; ++i) {
      const uint32_t b[I::kBWords] = {words[0].word[2 * i], words[0].word[2 * i + 1]};
      I::multiply(s, q.last[2 * pair + i], b);
    }
  }
  template <int... step>
  PAGODA_DEVICE void multiply_k_steps(const Q& q, float (&s)[kKeyTiles][Ops::elements],
                                      std::integer_sequence<int, step...> /*steps*/) const {
    (multiply_k_step<step>(q, s), ...);
  }
  template <int step>
  PAGODA_DEVICE void multiply_k_step(const Q& q, float (&s)[kKeyTiles][Ops::elements]) const {
    Words words[kKeyTiles];
    I::template load_b<Loads::layout, 1, true, step, 0, kKeyTiles>(words, panel(slot_), 0, 0);
    PAGODA_UNROLL
    for (int n = 0; n < kKeyTiles; ++n) multiply(s[n], q.own[step], words[n]);
  }

  // The softmax of the warp's rows: 16 lanes have a row, four neighbouring keys each.
  static constexpr int kRowLanes = 16, kKeysOfLane = tile.BN / kRowLanes;
  static_assert(tile.BM == tile.warps_n * (tile.warp_size / kRowLanes) && kKeysOfLane == 4);
  [[nodiscard]] PAGODA_DEVICE int own_row() const {
    return warp_ * (tile.warp_size / kRowLanes) + arch::lane_idx() / kRowLanes;
  }
  [[nodiscard]] static PAGODA_DEVICE int own_key() {
    return arch::lane_idx() % kRowLanes * kKeysOfLane;
  }
  // Keys that the warp's row sees.
  [[nodiscard]] PAGODA_DEVICE int32_t keys_of_row() const {
    if constexpr (!tile.has_tokens) return work_.rows.seqlen_kv;
    return tile_row<softmax::RescaleLazily, tile.row_map()>(params_, work_, own_row()).keys.hi;
  }
  PAGODA_DEVICE void exponentials(int32_t index) {
    const int row = own_row(), key = own_key();
    float s[kKeysOfLane] = {};
    PAGODA_UNROLL
    for (int panel = 0; panel < Loads::kPanels; ++panel) {
      const FloatQuad part = arch::load(scores(panel, row, key).template as<FloatQuad>());
      PAGODA_UNROLL
      for (int c = 0; c < kKeysOfLane; ++c) s[c] += part.value[c];
    }
    const int32_t left = own_keys_ - work_.walk.column(index) - key;
    int32_t visible = arch::mutable_value("one key dropped", left, left - 1);
    visible = arch::mutable_value("one hidden key kept", visible, left + 1);
    float largest = softmax::kMinusInfinity;
    PAGODA_UNROLL
    for (int c = 0; c < kKeysOfLane; ++c) {
      if (c >= visible) s[c] = softmax::kMinusInfinity;
      largest = fmaxf(largest, s[c]);
    }
    PAGODA_UNROLL
    for (int step = 1; step < kRowLanes; step *= 2) {
      largest = fmaxf(largest, arch::shuffle_xor(largest, step));
    }
    const float scale = arch::mutable_factor("softmax scale x 1.02", params_.score_map.scale_log2);
    largest *= scale;
    const float factor = own_.begin_tile(largest, own_.wants_rescale(largest));
    own_.add(arch::mutable_value("row sum not rescaled", 0.0F, own_.sums().sum * (1 / factor - 1)));
    const float offset = own_.offset();
    PAGODA_UNROLL
    for (int c = 0; c < kKeysOfLane; ++c) s[c] = arch::exp2_approx(s[c] * scale + offset);
    own_.add((s[0] + s[1]) + (s[2] + s[3]));
    const int at = operand::vector_index<Ops::p_layout>(row, key / 8) * 8 + key % 8;
    using Softmax = kv_buffer::Softmax<Config>;
    arch::store(storage_.p.at(at).template as<arch::Words<2>>(),
                arch::Words<2>{{Softmax::pack_p(s[0], s[1]), Softmax::pack_p(s[2], s[3])}});
    if (arch::lane_idx() % kRowLanes == 0) arch::store(factor_of(row), factor);
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> factor_of(int row) const {
    return storage_.stats.at(4 * tile.BM + row);
  }

  PAGODA_DEVICE void rescale(Output& o) const {
    float factors[Ops::rows];
    bool moves = false;
    PAGODA_UNROLL
    for (int r = 0; r < Ops::rows; ++r) {
      factors[r] = arch::load(factor_of(softmax_.row_index(r)));
      moves |= factors[r] != 1;
      factors[r] = arch::mutable_value("O not rescaled", factors[r], 1.0F);
    }
    if (!arch::any(moves)) return;
    PAGODA_UNROLL
    for (int n = 0; n < Ops::o_tiles; ++n) {
      PAGODA_UNROLL
      for (int e = 0; e < Ops::elements; ++e) o[0][n][e] *= factors[e / I::kColumns];
    }
  }
  PAGODA_DEVICE void multiply_v(Output& o) const {
    Fragment p[kKeySteps];
    I::template load_a<Ops::p_layout, 0>(p, storage_.p.data(), 0);
    multiply_v_steps(p, o, std::make_integer_sequence<int, kKeySteps>());
  }
  template <int... step>
  PAGODA_DEVICE void multiply_v_steps(const Fragment (&p)[kKeySteps], Output& o,
                                      std::integer_sequence<int, step...> /*steps*/) const {
    (multiply_v_step<step>(p, o), ...);
  }
  template <int step>
  PAGODA_DEVICE void multiply_v_step(const Fragment (&p)[kKeySteps], Output& o) const {
    Words words[Ops::o_tiles];
    I::template load_b<Loads::layout, 1, false, step, 0, Ops::o_tiles>(words, panel(slot_), 0, 0);
    const int of_p = arch::mutable_value("P of the tile's first keys", step, 0);
    PAGODA_UNROLL
    for (int n = 0; n < Ops::o_tiles; ++n) multiply(o[0][n], p[of_p], words[n]);
  }
  static PAGODA_DEVICE void multiply(float (&d)[Ops::elements], const Fragment& a,
                                     const Words& words) {
    const uint32_t b[I::kBWords] = {words.word[0], words.word[1]};
    I::multiply(d, a, b);
  }

  // The pivots, sums and maxima of all rows to the lanes that have their O.
  PAGODA_DEVICE void share_sums(Online (&online)[Ops::rows]) const {
    softmax::Sums sums = own_.sums();
    PAGODA_UNROLL
    for (int step = 1; step < kRowLanes; step *= 2) sums.sum += arch::shuffle_xor(sums.sum, step);
    if (arch::lane_idx() % kRowLanes == 0) {
      arch::store(stats(own_row()), FloatQuad{{sums.pivot, sums.sum, own_.max(), 0}});
    }
    arch::syncthreads();  // the sums of all rows are stored
    PAGODA_UNROLL
    for (int r = 0; r < Ops::rows; ++r) {
      const FloatQuad of_row = arch::load(stats(softmax_.row_index(r)));
      online[r] = Online();
      online[r].begin_tile(of_row.value[0], true);
      online[r].add(of_row.value[1]);
      online[r].begin_tile(of_row.value[2], false);  // the pivot may lag behind the maximum
    }
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<FloatQuad> stats(int row) const {
    return storage_.stats.at(4 * row).template as<FloatQuad>();
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  const Work& work_;
  int warp_;
  Softmax<Config> softmax_;
  Loads loads_;
  typename Loads::Pages pages_, next_pages_;
  int slot_ = 0;  // of the KV tile in multiplication
  // Of own_row(): its softmax, the sum of the lane's keys alone, and the keys that it sees.
  Online own_;
  int32_t own_keys_ = 0;
};

}  // namespace pagoda::kernels::kv_buffer
