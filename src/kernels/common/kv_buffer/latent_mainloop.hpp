// LatentMainloop: O and the online softmax of a work tile of decoding latent rows (MLA), whose
// first 512 of 576 columns are V, in the same memory.
//
// A row tile has 16 rows, and rows of K nine panels of 64 columns. Each of eight warps loads one
// panel of a KV tile, which it multiplies as V later, and eight keys of the last panel, which is no
// part of V. Of S it makes the part of 16 columns of each panel, for half of the keys. The sum of
// the four partial scores is made by other threads than these: a warp has two rows of it, with
// their online softmax.
//
//   a warp, KV tile i                             in shared memory
//     wait for its panel                          K              -> a barrier of the CTA
//     S = Q K' of its columns and keys            partial scores -> a barrier of the CTA
//     softmax of its rows, all keys               P, factors     -> a barrier of the CTA
//     O += P V of its panel, all keys
//     request its panel of tile i - 2
#pragma once

#include <cstdint>
#include <utility>

#include "arch/cp_async.hpp"
#include "arch/fault.hpp"
#include "arch/ldmatrix.hpp"
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
  static_assert(Ops::m_tiles == 1 && tile.mma.M == 16 && tile.mma.N == 8);

  // Issues the first loads of `work`, which has KV tiles. Those of Q are issued, in no group yet.
  PAGODA_DEVICE LatentMainloop(const AttentionParams& params, Storage<Config>& storage,
                               const Work& work, int /*warp_m*/, int warp)
      : params_(params),
        storage_(storage),
        num_tiles_(work.walk.num_tiles),
        warp_(warp),
        softmax_(params, 0),
        loads_(params, work, warp) {
    arch::cp_async_commit();
    const int32_t last = work.walk.num_tiles - 1;
    static_assert(kSlots == 2);
    page_ = loads_.find_page(last);
    const int32_t second_page = loads_.find_page(last > 0 ? last - 1 : 0);
    PAGODA_NO_UNROLL
    for (int i = 0; i < kSlots; ++i) {
      load(last - i, i);
      page_ = second_page;
    }
    find_page(last - kSlots);
    own_keys_ = keys_of_row(work, own_row());
  }

  PAGODA_DEVICE void run(Online (&online)[Ops::rows], Output& o) {
    arch::cp_async_wait<kSlots>();
    arch::syncthreads();  // all threads' parts of Q are in shared memory
    load_q_fragments(std::make_integer_sequence<int, Loads::kPanels>());
    PAGODA_NO_UNROLL
    for (int32_t i = num_tiles_; i-- > 0;) kv_tile(i, o);
    share_sums(online);
  }

 private:
  static constexpr int kSlots = tile.k_tiles;
  static constexpr int kQPanelSize = tile.BM * Loads::kPanelColumns;
  static constexpr int kKeySteps = tile.BN / tile.mma.K;
  static constexpr operand::VectorLayout q_panel =
      operand::panel_layout(tile.BM, Loads::kPanelColumns / 8);
  using Fragment = uint32_t[I::kAWords];
  using Words = arch::Words<4>;

  // --- loads -------------------------------------------------------------------------------------

  // Panel `panel` of a KV tile.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> keys(int slot, int panel) const {
    return storage_.k() + (slot * Loads::kPanels + panel) * Loads::kPanelSize;
  }
  // Of which page_ is the page.
  PAGODA_DEVICE void load(int32_t index, int slot) const {
    if (index >= 0) loads_.load(index, page_, keys(slot, 0));
    arch::cp_async_commit();
  }
  // Requested a KV tile before it is needed.
  PAGODA_DEVICE void find_page(int32_t index) { page_ = loads_.find_page(index > 0 ? index : 0); }

  // --- one KV tile -------------------------------------------------------------------------------

  PAGODA_DEVICE void kv_tile(int32_t index, Output& o) {
    arch::cp_async_wait<kSlots - 1>();
    arch::syncthreads();  // all panels are in shared memory; at first all warps have read Q
    multiply_k();
    arch::syncthreads();  // the scores of all warps are stored
    exponentials(index);
    arch::syncthreads();  // P of all warps is stored
    rescale(o);
    multiply_v(o);
    arch::syncwarp();  // all lanes have read the panel
    load(index - kSlots, slot_);
    find_page(index - kSlots - 1);
    slot_ = kSlots - 1 - slot_;
  }

  // Of S a warp has k-step `k_step()` of each panel, and these keys.
  static constexpr int kParts = tile.warps_n / 2, kPartKeys = tile.BN / 2;
  static constexpr int kKeyTiles = kPartKeys / tile.mma.N;
  static_assert(kParts * tile.mma.K == Loads::kPanelColumns);
  [[nodiscard]] PAGODA_DEVICE int k_step() const { return warp_ % kParts; }
  [[nodiscard]] PAGODA_DEVICE int first_key() const { return warp_ / kParts * kPartKeys; }
  using PartialScores = float[kKeyTiles][Ops::elements];

  template <int... panel>
  PAGODA_DEVICE void load_q_fragments(std::integer_sequence<int, panel...> /*panels*/) {
    (load_q_fragment<panel>(), ...);
  }
  template <int panel>
  PAGODA_DEVICE void load_q_fragment() {
    const int lane = arch::lane_idx();
    const int at = operand::vector_index<q_panel>(lane % 16, 2 * k_step() + lane / 16);
    arch::ldmatrix<4>(q_[panel], storage_.q.data() + (panel * kQPanelSize + 8 * at));
  }
  PAGODA_DEVICE void multiply_k() const {
    PartialScores s = {};
    multiply_panels(s, std::make_integer_sequence<int, Loads::kPanels>());
    PAGODA_UNROLL
    for (int n = 0; n < kKeyTiles; ++n) store_scores(first_key() + n * tile.mma.N, s[n]);
  }
  template <int... panel>
  PAGODA_DEVICE void multiply_panels(PartialScores& s,
                                     std::integer_sequence<int, panel...> /*panels*/) const {
    (multiply_panel<panel>(s), ...);
  }
  template <int panel>
  PAGODA_DEVICE void multiply_panel(PartialScores& s) const {
    Words words[kKeyTiles];
    I::template load_b<Loads::layout, 1, true, 0, 0, kKeyTiles>(words, keys(slot_, panel),
                                                                first_key(), 2 * k_step());
    PAGODA_UNROLL
    for (int n = 0; n < kKeyTiles; ++n) multiply(s[n], q_[panel], words[n]);
  }

  // Partial scores: [part][row][key]. Rows are padded, so that the lanes of a store have different
  // banks.
  static constexpr int kRowStride = Storage<Config>::kScoreStride;
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> scores(int part, int row, int key) const {
    return storage_.q.data().template as<float>() + ((part * tile.BM + row) * kRowStride + key);
  }
  PAGODA_DEVICE void store_scores(int first_key, const float (&s)[Ops::elements]) const {
    PAGODA_UNROLL
    for (int r = 0; r < Ops::rows; ++r) {
      const int key = first_key + I::column(arch::lane_idx(), 0);
      arch::store(scores(k_step(), softmax_.row_index(r), key).template as<FloatPair>(),
                  FloatPair{s[2 * r], s[2 * r + 1]});
    }
  }

  // The softmax of the warp's rows: 16 lanes have a row, four neighbouring keys each.
  static constexpr int kRowLanes = 16, kKeysOfLane = tile.BN / kRowLanes;
  static_assert(tile.BM == tile.threads() / kRowLanes && kKeysOfLane == 4);
  [[nodiscard]] PAGODA_DEVICE int own_row() const {
    return warp_ * (tile.warp_size / kRowLanes) + arch::lane_idx() / kRowLanes;
  }
  // Keys of the work tile that a row sees.
  [[nodiscard]] PAGODA_DEVICE int32_t keys_of_row(const Work& work, int row) const {
    int32_t end = work.rows.seqlen_kv;
    if constexpr (tile.has_tokens) {
      end = tile_row<softmax::RescaleLazily, tile.row_map()>(params_, work, row).keys.hi;
    }
    return end - work.walk.start_column;
  }
  PAGODA_DEVICE void exponentials(int32_t index) {
    const int row = own_row(), key = arch::lane_idx() % kRowLanes * kKeysOfLane;
    float s[kKeysOfLane] = {};
    PAGODA_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const FloatQuad of_part = arch::load(scores(part, row, key).template as<FloatQuad>());
      PAGODA_UNROLL
      for (int c = 0; c < kKeysOfLane; ++c) s[c] += of_part.value[c];
    }
    const int32_t left = own_keys_ - index * tile.BN - key;
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
    multiply_v_steps(o, std::make_integer_sequence<int, kKeySteps>());
  }
  template <int... step>
  PAGODA_DEVICE void multiply_v_steps(Output& o,
                                      std::integer_sequence<int, step...> /*steps*/) const {
    (multiply_v_step<step>(o), ...);
  }
  // 16 keys.
  template <int step>
  PAGODA_DEVICE void multiply_v_step(Output& o) const {
    const int lane = arch::lane_idx();
    const int of_p = arch::mutable_value("P of the tile's first keys", step, 0);
    const int at = operand::vector_index<Ops::p_layout>(lane % 16, 2 * of_p + lane / 16);
    Fragment p;
    arch::ldmatrix<4>(p, storage_.p.data() + 8 * at);
    Words words[Ops::o_tiles];
    I::template load_b<Loads::layout, 1, false, step, 0, Ops::o_tiles>(words, keys(slot_, warp_), 0,
                                                                       0);
    PAGODA_UNROLL
    for (int n = 0; n < Ops::o_tiles; ++n) multiply(o[0][n], p, words[n]);
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
  int32_t num_tiles_;
  int warp_;
  Softmax<Config> softmax_;
  Loads loads_;
  int32_t page_ = 0;  // LatentLoads::find_page() of the KV tile that is loaded next
  int slot_ = 0;      // of the KV tile in multiplication
  Fragment q_[Loads::kPanels];
  // Of own_row(): its softmax, the sum of the lane's keys alone, and the keys of this work tile
  // that it sees.
  Online own_;
  int32_t own_keys_ = 0;
};

}  // namespace pagoda::kernels::kv_buffer
