// WarpConsumer: the mainloop of the consumer for an fp8 cache and up to 16 rows, with mma.sync.
// Every warp has all rows and a quarter of the keys of every KV tile, with its own softmax and O;
// warp_epilogue.hpp adds them up. A warp loads K and V from shared memory, converts them to f16 in
// registers and multiplies; no warp waits for another.
//
// The products are in f16, which represents every e4m3 number. bf16 queries are converted to f16
// (RowPower). P is at most 2^8 (softmax/online.hpp) and has three bits more than in bf16.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>

#include "arch/fault.hpp"
#include "arch/mma.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row_power.hpp"
#include "kernels/mha_sm90/fp8_fragments.hpp"
#include "kernels/mha_sm90/named_barriers.hpp"
#include "kernels/mha_sm90/roles/load_q.hpp"
#include "kernels/mha_sm90/softmax.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

using kernels::RowPower;

// The Config of softmax.hpp: a warp's quarter of a KV tile.
template <class Config>
struct WarpSlice {
  static constexpr TileConfig make() {
    TileConfig tile = Config::tile;
    tile.BN = Config::tile.BN / 4;
    return tile;
  }
  using T = typename Config::T;
  using Functor = kernels::FunctorOf<Config>;
  static constexpr TileConfig tile = make();
  static_assert(tile.BN == 32 || tile.BN == 16);
};

template <class Config>
class WarpConsumer {
 public:
  using Ops = Operands<Config>;
  using Row = mha_sm90::Row<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = WarpSlice<Config>::tile.BN;  // keys of a warp in a KV tile
  static_assert(tile.num_consumers == 1);
  using Keys = Fp8Tile<tile.BN, tile.depth_qk, tile.swizzle>;
  using Values = Fp8Tile<tile.BN, tile.depth_vo, tile.swizzle>;

  PAGODA_DEVICE WarpConsumer(const AttentionParams& params, Storage<Config>& storage)
      : params_(params),
        storage_(storage),
        k_(Ops::KRing::consumer(storage.k_ring)),
        v_(Ops::VRing::consumer(storage.v_ring)),
        order_(storage),
        key_offset_(Keys::key_offset(first_key())),
        value_offsets_(Values::value_offsets(first_key())) {}

  // Adds this warp's keys of the reader's work tile to `rows` (lane / 4 and lane / 4 + 8) and `o`.
  // `walk`: its KV tiles, at least one.
  PAGODA_DEVICE void mainloop(const WorkReader& reader, const mask::KVTileRange& walk,
                              Row (&rows)[2], float (&o)[tile.depth_vo / 2]) {
    load_q(reader);
    PAGODA_UNROLL
    for (int i = 0; i < tile.depth_vo / 2; ++i) o[i] = 0;
    const int32_t first = walk.start_column + first_key();
    for (int32_t i = walk.num_tiles; i-- > 0;) {
      const bool is_masked = i >= walk.unmasked_end || i < walk.unmasked_begin;
      int32_t column = first + i * tile.BN;
      if constexpr (kernels::kHasFunctorMask<Config>) column = walk.first_key(i) + first_key();
      step(reader, column, is_masked, rows, o);
    }
  }

  // Called instead of mainloop() for a work tile without keys.
  PAGODA_DEVICE void skip() { order_.arrive_q_issued(); }

 private:
  static PAGODA_DEVICE int first_key() { return arch::warp_idx() % 4 * BN; }  // in a KV tile

  // --- Q -----------------------------------------------------------------------------------------

  static constexpr int steps = tile.depth_qk / 16;  // of the product: MMA K

  // Loads this thread's columns of its two rows as A fragments. They stay in registers, or the four
  // warps share one copy in shared memory.
  PAGODA_DEVICE void load_q(const WorkReader& reader) {
    uint32_t q[steps][4];
    make_q(reader, q);
    if constexpr (tile.keeps_q_in_registers()) {
      memcpy(q_, q, sizeof q);
    } else {
      sync_warpgroup(0);  // every warp has loaded the previous Q for the last time
      PAGODA_UNROLL
      for (int step = 0; step < steps; ++step) {  // all warps have the same fragments
        if (step % 4 != arch::warp_idx() % 4) continue;
        arch::Words<4> words;
        memcpy(&words, q[step], sizeof words);
        arch::store(q_operand(step), words);
      }
      sync_warpgroup(0);  // every warp has stored its steps
    }
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<arch::Words<4>> q_operand(int step) const {
    return storage_.q_operands.at(step * 32 + arch::lane_idx());
  }
  PAGODA_DEVICE void get_q(int step, uint32_t (&a)[4]) const {
    if constexpr (tile.keeps_q_in_registers()) {
      memcpy(a, q_[step], sizeof a);
    } else {
      const arch::Words<4> words = arch::load(q_operand(step));
      memcpy(a, &words, sizeof a);
    }
  }

  PAGODA_DEVICE void make_q(const WorkReader& reader, uint32_t (&q)[steps][4]) {
    const Work work = reader.work();
    const float k_scale = kernels::k_scale(params_, work);
    Columns row[2];  // in T
    if (has_aligned_rows<T>(params_)) {
      load_rows<true>(work, row);
    } else {
      load_rows<false>(work, row);
    }
    order_.arrive_q_issued();
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      RowPower power;
      if constexpr (std::same_as<T, arch::BFloat16>) power = kernels::convert_to_f16(row[r]);
      factors_[r] = k_scale * power.inverse;
      PAGODA_UNROLL
      for (int i = 0; i < Keys::key_words; ++i) {
        PAGODA_UNROLL
        for (int w = 0; w < 8; ++w) q[4 * i + w / 2][w % 2 * 2 + r] = row[r][i][w / 4].word[w % 4];
      }
    }
  }
  using Columns = arch::Words<4>[Keys::key_words][2];  // this thread's of a row, 16 elements a word
  template <bool is_aligned>
  PAGODA_DEVICE void load_rows(const Work& work, Columns (&row)[2]) const {
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int32_t index = arch::lane_idx() / 4 + 8 * r;
      const bool is_valid = index < work.valid_tokens * work.num_heads;
      const int64_t token = work.memory_row + work.first_token + index / work.num_heads;
      const int32_t head = work.first_head + index % work.num_heads;
      const arch::GlobalPtr<const T> from =
          params_.q_data.template as<const T>() + params_.q_rows.offset(work.sequence, token, head);
      PAGODA_UNROLL
      for (int i = 0; i < 2 * Keys::key_words; ++i) {
        const int column = Keys::key_column(i / 2) + i % 2 * 8;
        arch::Words<4>& value = row[r][i / 2][i % 2];
        value = arch::Words<4>{{0, 0, 0, 0}};
        if (is_valid && column < params_.dim_qk) {
          value = load_words<is_aligned>(from + column, params_.dim_qk - column);
        }
      }
    }
  }

  // --- a KV tile ---------------------------------------------------------------------------------

  PAGODA_DEVICE void step(const WorkReader& reader, int32_t column, bool is_masked, Row (&rows)[2],
                          float (&o)[tile.depth_vo / 2]) {
    float s[BN / 2];
    k_.consumer_wait();  // load K: the bytes of the tile have landed
    multiply_qk(s);
    release(k_);
    float factors[2];
    if (compute_p(reader, column, is_masked, s, rows, factors)) rescale_output(o, factors);
    uint32_t p[BN / 16][4];
    convert_p<arch::Half, BN>(s, p);
    v_.consumer_wait();  // load V: the bytes of the tile have landed
    multiply_pv(p, is_masked ? reader.work().rows.seqlen_kv - column : BN, o);
    release(v_);
  }

  // S = Q K' in fp32, times the row's factor.
  PAGODA_DEVICE void multiply_qk(float (&s)[BN / 2]) const {
    const auto keys = storage_.k.at(
        static_cast<int32_t>(arch::mutable_stage("K stages share memory", k_.state.index)) *
        Ops::k_elements);
    float sums[BN / 8][4] = {};
    PAGODA_UNROLL
    for (int i = 0; i < Keys::key_words; ++i) {
      arch::Words<4> wide[BN / 8][2];
      PAGODA_UNROLL
      for (int n = 0; n < BN / 8; ++n) {
        arch::widen_e4m3_f16(Keys::load_key(keys, key_offset_, n, i), wide[n]);
      }
      PAGODA_UNROLL
      for (int step = 0; step < 4; ++step) {
        uint32_t a[4];
        get_q(4 * i + step, a);
        PAGODA_UNROLL
        for (int n = 0; n < BN / 8; ++n) {
          const arch::Words<4>& words = wide[n][step / 2];
          const uint32_t b[2] = {words.word[step % 2 * 2], words.word[step % 2 * 2 + 1]};
          arch::mma_m16n8k16<arch::Half>(sums[n], a, b);
        }
      }
    }
    PAGODA_UNROLL
    for (int i = 0; i < BN / 2; ++i) s[i] = sums[i / 4][i % 4] * factors_[i / 2 % 2];
  }

  // O += P V. `keys`: those of the warp that exist. The other rows of V in the stage may be NaN,
  // and 0 * NaN is NaN: they are zeroed in registers.
  PAGODA_DEVICE void multiply_pv(const uint32_t (&p)[BN / 16][4], int32_t keys,
                                 float (&o)[tile.depth_vo / 2]) const {
    const auto values = storage_.v.at(
        static_cast<int32_t>(arch::mutable_stage("V stages share memory", v_.state.index)) *
        Ops::v_elements);
    PAGODA_UNROLL
    for (int k = 0; k < BN / 16; ++k) {
      PAGODA_UNROLL
      for (int panel = 0; panel < Values::panels; ++panel) {
        auto raw = Values::load_values(values, value_offsets_, k, panel);
        if (keys < 16 * (k + 1)) Values::clear_from(raw, keys - 16 * k);
        PAGODA_UNROLL
        for (int eight = 0; eight < Values::run / 8; ++eight) {
          uint32_t b[8][2];
          Values::widen(raw, eight, b);
          PAGODA_UNROLL
          for (int i = 0; i < 8; ++i) {
            auto& sums =
                reinterpret_cast<float(&)[4]>(o[4 * (panel * Values::run + 8 * eight + i)]);
            arch::mma_m16n8k16<arch::Half>(sums, p[k], b[i]);
          }
        }
      }
    }
  }

  // S becomes P. Returns whether O must be multiplied with `factors`.
  PAGODA_DEVICE bool compute_p(const WorkReader& reader, int32_t column, bool is_masked,
                               float (&s)[BN / 2], Row (&rows)[2], float (&factors)[2]) {
    constexpr bool is_general = tile.scores == ScoreClass::kGeneral;
    if constexpr (is_general) apply_score_mods<WarpSlice<Config>>(params_, reader, rows, column, s);
    const float scale = params_.score_map.scale_log2;
    if constexpr (kernels::kHasFunctorScore<Config>) {
      apply_functor_score<WarpSlice<Config>>(params_, reader, rows, column, {scale, scale}, s);
    }
    if (is_masked) apply_mask<WarpSlice<Config>>(params_, reader, rows, column, s);
    const float of_scores = is_general ? 1.0F : kernels::score_factor<Config>(scale);
    return exp2_scores<BN>(s, rows, {of_scores, of_scores}, factors);
  }

  // One arrival a warp, when all its lanes have loaded from the stage.
  template <class Ring>
  PAGODA_DEVICE void release(Ring& ring) {
    arch::syncwarp();
    ring.consumer_release(arch::elect_one());
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  typename Ops::KRing k_;
  typename Ops::VRing v_;
  QBeforeKV<Config> order_;
  int32_t key_offset_;  // of this thread in a stage
  typename Values::ValueOffsets value_offsets_;
  uint32_t q_[tile.keeps_q_in_registers() ? steps : 1][4];
  float factors_[2];  // of each row's scores: inverse of Q's power of two, times K's scale
};

}  // namespace pagoda::mha_sm90
