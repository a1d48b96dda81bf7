// DecodeMainloop: O and the online softmax of a work tile of decoding (make_decode_work).
//
// A row tile has 16 rows, so one matrix instruction holds them, and the warps divide the keys of
// each KV tile. A warp loads its own keys, has pivots and row sums of its own and accumulates all
// columns of O: it waits for its own copies only, and P stays in its registers. When all keys are
// done the warps add up O once, through the memory of K and V.
//
//   a warp, KV tile i          copies in flight
//     wait for K(i)            V(i) K(i-1) V(i-1)
//     S = Q K(i)'
//     request K(i-2)           V(i) K(i-1) V(i-1) K(i-2)
//     softmax, wait for V(i)   K(i-1) V(i-1) K(i-2)
//     O += P V(i)
//     request V(i-2)           K(i-1) V(i-1) K(i-2) V(i-2)
//
// An fp8 cache has KV tiles of twice the keys; K and V become f16 in registers (decode_fp8.hpp).
//
// Head dim 256 has one KV tile in the same memory, in two parts of 128 columns, which take the
// places of two tiles: K0(i) K1(i) V0(i) V1(i), then those of tile i-1.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "arch/cp_async.hpp"
#include "arch/fault.hpp"
#include "arch/named_barrier.hpp"
#include "arch/warp.hpp"
#include "kernels/common/kv_buffer/decode_fp8.hpp"
#include "kernels/common/kv_buffer/decode_loads.hpp"
#include "kernels/common/kv_buffer/softmax.hpp"
#include "kernels/common/kv_buffer/storage.hpp"
#include "kernels/common/row_power.hpp"
#include "kernels/common/split_rows.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Config>
class DecodeMainloop {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using I = typename Ops::Instruction;
  using Loads = DecodeLoads<Config>;
  using Scores = typename Softmax<Config>::Scores;
  using Output = typename Ops::Output;
  static constexpr TileConfig tile = Config::tile;
  static_assert(tile.warps_m == 1 && Ops::m_tiles == 1 && Ops::n_tiles % 2 == 0);

  // Issues the first loads of `work`, which has KV tiles, in the thread's group of those of Q.
  PAGODA_DEVICE DecodeMainloop(const AttentionParams& params, Storage<Config>& storage,
                               const Work& work, int /*warp_m*/, int warp)
      : params_(params),
        storage_(storage),
        work_(work),
        warp_(warp),
        softmax_(params, 0),
        loads_(params, work, warp) {
    const int32_t last = work.walk.num_tiles - 1;
    pages_ = loads_.find_pages(last);
    next_pages_ = loads_.find_pages(last > 0 ? last - 1 : 0);
    PAGODA_NO_UNROLL
    for (int i = 0; i < kTiles; ++i) {
      PAGODA_NO_UNROLL
      for (int part = 0; part < kParts; ++part) load_k<true>(last - i, part, i + part);
      PAGODA_NO_UNROLL
      for (int part = 0; part < kParts; ++part) load_v<true>(last - i, part, i + part);
    }
    if constexpr (tile.has_fp8_cache()) load_scales();
  }

  // Q is on its way in the group of the first loads.
  PAGODA_DEVICE void run(Online (&online)[Ops::rows], Output& o) {
    arch::cp_async_wait<kInFlight>();
    arch::syncthreads();  // all threads' parts of Q are in shared memory
    if constexpr (tile.has_fp8_cache() && !kKeepsQ) {
      store_fp8_q();
    } else if constexpr (tile.has_fp8_cache()) {
      load_fp8_q();
    } else if constexpr (kKeepsQ) {
      load_q_fragments(std::make_integer_sequence<int, kQSteps>());
    }
    AllColumns all;
    PAGODA_UNROLL
    for (int n = 0; n < kColumnTiles; ++n) {
      PAGODA_UNROLL
      for (int e = 0; e < Ops::elements; ++e) all[0][n][e] = 0;
    }
    PAGODA_NO_UNROLL
    for (int32_t i = work_.walk.num_tiles; i-- > 0;) kv_tile(i, online, all);
    add_warps(online, all, o);
  }

 private:
  static constexpr int kSlots = 2;  // of K, and of V, each for a part of a KV tile
  static constexpr int kParts = Loads::kParts, kTiles = kSlots / kParts;
  static_assert(tile.k_tiles == kSlots && tile.v_tiles == kSlots && kTiles * kParts == kSlots);
  static constexpr int kInFlight = 2 * kSlots - 1;  // groups, while one is waited for
  static constexpr int kQSteps = tile.depth_qk / tile.mma.K;
  static constexpr bool kKeepsQ = tile.depth_qk <= 128;  // in registers, else those are of O
  static constexpr int kColumnTiles = tile.depth_vo / tile.mma.N;
  static constexpr int kPartSteps = kQSteps / kParts, kPartPairs = kColumnTiles / 2 / kParts;
  using AllColumns = float[Ops::m_tiles][kColumnTiles][Ops::elements];
  using Fp8 = DecodeFp8<tile.depth_qk>;  // of an fp8 cache
  using Fragment = uint32_t[I::kBWords];
  using QFragment = uint32_t[I::kAWords];

  // --- loads -------------------------------------------------------------------------------------

  // The warp's keys in slot `slot` of K or V.
  static constexpr int kOfWarp = Loads::kVectorsOfWarp * 8;
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> k(int slot) const {
    return storage_.k() + (slot * tile.warps() + warp_) * kOfWarp;
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> v(int slot) const {
    return storage_.v() + (slot * tile.warps() + warp_) * kOfWarp;
  }
  // Of a part of the KV tile in multiplication.
  [[nodiscard]] PAGODA_DEVICE int slot_of(int part) const { return kParts == 1 ? slot_ : part; }

  // Tiles are loaded in the order in which they are multiplied, K and V of each, if there are more.
  template <bool is_first>
  PAGODA_DEVICE void load_k(int32_t index, int part, int slot) {
    if (index >= 0) loads_.template load_k<is_first>(index, part, pages_, k(slot));
    arch::cp_async_commit();
  }
  template <bool is_first>
  PAGODA_DEVICE void load_v(int32_t index, int part, int slot) {
    if (index >= 0) {
      loads_.template load_v<is_first>(index, part, pages_, v(slot));
      if (part == kParts - 1) {
        // Ids of pages are requested a KV tile before they are needed.
        pages_ = next_pages_;
        next_pages_ = loads_.find_pages(index > 1 ? index - 2 : 0);
      }
    }
    arch::cp_async_commit();
  }
  // The oldest group of all lanes is in shared memory.
  static PAGODA_DEVICE void wait_for_oldest() {
    arch::cp_async_wait<kInFlight>();
    arch::syncwarp();
  }

  template <int... step>
  PAGODA_DEVICE void load_q_fragments(std::integer_sequence<int, step...> /*steps*/) {
    (load_q_fragment<step>(), ...);
  }
  template <int step>
  PAGODA_DEVICE void load_q_fragment() {
    read_q<step>(q_[step]);
  }
  template <int step>
  PAGODA_DEVICE void read_q(QFragment& q) const {
    uint32_t a[1][I::kAWords];
    I::template load_a<Ops::q_layout, step * tile.mma.K / 8>(a, storage_.q.data(), 0);
    PAGODA_UNROLL
    for (int i = 0; i < I::kAWords; ++i) q[i] = a[0][i];
  }

  // An fp8 cache: the scales of K and of e4m3 Q to factors_, while the first KV tile is on its way.
  PAGODA_DEVICE void load_scales() {
    const float k_scale = arch::mutable_factor("K scale x 1.02", kernels::k_scale(params_, work_));
    PAGODA_UNROLL
    for (int r = 0; r < Ops::rows; ++r) {
      factors_[r] = k_scale;
      if constexpr (tile.q_bytes == 1) factors_[r] *= q_scale(r);
    }
  }
  // Q as f16 with its columns in the order of those of K.
  PAGODA_DEVICE void load_fp8_q() {
    PAGODA_UNROLL
    for (int r = 0; r < Ops::rows; ++r) {
      arch::Words<4> words[Fp8::kGroups][2];
      PAGODA_UNROLL
      for (int group = 0; group < Fp8::kGroups; ++group) {
        read_fp8_q(softmax_.row_index(r), group, words[group]);
      }
      if constexpr (kConvertsQ) factors_[r] *= kernels::convert_to_f16(words).inverse;
      PAGODA_UNROLL
      for (int step = 0; step < kQSteps; ++step) set_q_row(words[step / 4], step % 4, r, q_[step]);
    }
  }
  // The same into the memory of Q, as fragments: [step][lane]. A warp converts the columns of one
  // group.
  PAGODA_DEVICE void store_fp8_q() {
    static_assert(Fp8::kGroups == tile.warps() && I::kAWords == 4);
    arch::Words<4> fragments[4];
    PAGODA_UNROLL
    for (int r = 0; r < Ops::rows; ++r) {
      const int row = softmax_.row_index(r);
      arch::Words<4> words[1][2];
      RowPower power;
      if constexpr (kConvertsQ) {
        LargestOfPairs largest;
        PAGODA_NO_UNROLL
        for (int group = 0; group < Fp8::kGroups; ++group) {
          read_fp8_q(row, group, words[0]);
          kernels::add_pairs(words, largest);
        }
        power = kernels::power_of_row(largest);
        factors_[r] *= power.inverse;
      }
      read_fp8_q(row, warp_, words[0]);
      if constexpr (kConvertsQ) kernels::scale_to_f16(power, words);
      PAGODA_UNROLL
      for (int step = 0; step < 4; ++step) set_q_row(words[0], step, r, fragments[step].word);
    }
    arch::syncthreads();  // all warps have read Q
    PAGODA_UNROLL
    for (int step = 0; step < 4; ++step) arch::store(fp8_q(4 * warp_ + step), fragments[step]);
    arch::syncthreads();  // Q of all columns is stored
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<arch::Words<4>> fp8_q(int step) const {
    const int vector = step * tile.warp_size + arch::lane_idx();
    return storage_.q.at(vector * 8).template as<arch::Words<4>>();
  }
  // Row `r` of the lane in the fragment of step `step` of a group.
  static PAGODA_DEVICE void set_q_row(const arch::Words<4> (&of_group)[2], int step, int r,
                                      uint32_t (&fragment)[I::kAWords]) {
    PAGODA_UNROLL
    for (int i = 0; i < 2; ++i) fragment[2 * i + r] = of_group[step / 2].word[step % 2 * 2 + i];
  }
  static constexpr bool kConvertsQ = tile.q_bytes == 2 && std::same_as<T, arch::BFloat16>;
  // The lane's columns of a row in group `group`, as 16-bit elements.
  PAGODA_DEVICE void read_fp8_q(int row, int group, arch::Words<4> (&words)[2]) const {
    const auto vector_at = [&](int index) {
      return arch::load(storage_.q.at(index * 8).template as<arch::Words<4>>());
    };
    const int first = Fp8::first_column(group);
    if constexpr (tile.q_bytes == 1) {
      arch::widen_e4m3_f16(vector_at(Fp8::index(row, first / 16)), words);
    } else {
      PAGODA_UNROLL
      for (int i = 0; i < 2; ++i) {
        words[i] = vector_at(operand::vector_index<Ops::q_layout>(row, first / 8 + i));
      }
    }
  }
  // The scale of an e4m3 query where heads have scales of their own; else score_map has it.
  [[nodiscard]] PAGODA_DEVICE float q_scale(int r) const {
    if (params_.q_scales.values == nullptr) return 1;
    const auto row = softmax_.make_row(work_, r);
    if (!row.is_valid) return 1;
    return params_.q_scales.of(work_.sequence, row.q_head / params_.q_scale_group);
  }

  // --- one KV tile -------------------------------------------------------------------------------

  PAGODA_DEVICE void kv_tile(int32_t index, Online (&online)[Ops::rows], AllColumns& o) {
    Scores s;
    if constexpr (tile.has_fp8_cache()) {
      multiply_fp8_k(index, s);
    } else {
      multiply_k(index, s);
    }
    if constexpr (tile.decodes_general) softmax_.apply_soft_cap(s);
    softmax_.apply_mods_and_mask(work_, index, warp_ * tile.WN(), s);
    float largest[Ops::rows];
    softmax_.row_max(s, largest);
    const float scale = arch::mutable_factor("softmax scale x 1.02", params_.score_map.scale_log2);
    softmax_.move_pivots(scale, largest, online, o);
    float offsets[Ops::rows];
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) offsets[i] = online[i].offset();
    softmax_.template exp2_scores<0, Softmax<Config>::kColumns>(scale, offsets, s, online);
    if constexpr (tile.has_fp8_cache()) {
      multiply_fp8_v(index, s, o);
    } else {
      multiply_v(index, s, o);
    }
    slot_ = 1 - slot_;
  }

  // S = Q K', in sums of every other k-step where registers allow: the products of two sums do not
  // wait for each other. Requests K of a KV tile that follows.
  static constexpr int kSums = tile.has_tokens && tile.depth_qk > 64 ? 1 : 2;
  PAGODA_DEVICE void multiply_k(int32_t index, Scores& s) {
    Scores sums[kSums];
    PAGODA_UNROLL
    for (Scores& sum : sums) for_scores([&](int n, int e) { sum[0][n][e] = 0; });
    multiply_k_part<0>(index, sums);
    if constexpr (kParts > 1) multiply_k_part<1>(index, sums);
    for_scores([&](int n, int e) {
      s[0][n][e] = sums[0][0][n][e];
      if constexpr (kSums > 1) s[0][n][e] += sums[1][0][n][e];
    });
  }
  template <class Body>
  static PAGODA_DEVICE void for_scores(const Body& body) {
    PAGODA_UNROLL
    for (int n = 0; n < Ops::n_tiles; ++n) {
      PAGODA_UNROLL
      for (int e = 0; e < Ops::elements; ++e) body(n, e);
    }
  }
  template <int part>
  PAGODA_DEVICE void multiply_k_part(int32_t index, Scores (&sums)[kSums]) {
    const int slot = slot_of(part);
    const auto multiply = [&]<int first, int... further>(std::integer_sequence<int, further...>) {
      (multiply_k_step<part, first + further>(slot, sums[(first + further) % kSums]), ...);
    };
    constexpr int kLast = Loads::kLastColumns / tile.mma.K, kOthers = kPartSteps - kLast;
    wait_for_oldest();
    multiply.template operator()<0>(std::make_integer_sequence<int, kOthers>());
    if (Loads::has_last_columns(Loads::columns_of(params_.dim_qk, part))) {
      multiply.template operator()<kOthers>(std::make_integer_sequence<int, kLast>());
    }
    arch::syncwarp();  // all lanes have read K
    load_k<false>(index - kTiles, part, slot);
  }
  template <int part, int step>
  PAGODA_DEVICE void multiply_k_step(int slot, Scores& s) const {
    arch::Words<4> words[Ops::n_tiles];
    I::template load_b<Loads::layout, 1, true, step, 0, Ops::n_tiles>(words, k(slot), 0, 0);
    constexpr int kOfQ = part * kPartSteps + step;
    const auto multiply_by = [&](const QFragment& q) {
      PAGODA_UNROLL
      for (int n = 0; n < Ops::n_tiles; ++n) multiply(s[0][n], q, words[n]);
    };
    if constexpr (kKeepsQ) {
      multiply_by(q_[kOfQ]);
    } else {
      QFragment q;
      read_q<kOfQ>(q);
      multiply_by(q);
    }
  }

  // O += P V. Requests V of a KV tile that follows.
  PAGODA_DEVICE void multiply_v(int32_t index, const Scores& s, AllColumns& o) {
    multiply_v_part<0>(index, s, o);
    if constexpr (kParts > 1) multiply_v_part<1>(index, s, o);
  }
  template <int part>
  PAGODA_DEVICE void multiply_v_part(int32_t index, const Scores& s, AllColumns& o) {
    const int slot = slot_of(part);
    wait_for_oldest();
    multiply_v_steps<part>(slot, s, o, std::make_integer_sequence<int, tile.WN() / tile.mma.K>());
    arch::syncwarp();  // all lanes have read V
    load_v<false>(index - kTiles, part, slot);
  }
  template <int part, int... step>
  PAGODA_DEVICE void multiply_v_steps(int slot, const Scores& s, AllColumns& o,
                                      std::integer_sequence<int, step...> /*steps*/) const {
    (multiply_v_step<part, step>(slot, s, o), ...);
  }
  // 16 keys.
  template <int part, int step>
  PAGODA_DEVICE void multiply_v_step(int slot, const Scores& s, AllColumns& o) const {
    uint32_t a[I::kAWords];
    I::to_a(a, s[0], step, Softmax<Config>::pack_p);
    constexpr int kLast = Loads::kLastColumns / tile.mma.N / 2, kOthers = kPartPairs - kLast;
    multiply_pairs<part, step, 0>(slot, a, o, std::make_integer_sequence<int, kOthers>());
    if (Loads::has_last_columns(Loads::columns_of(params_.dim_vo, part))) {
      multiply_pairs<part, step, kOthers>(slot, a, o, std::make_integer_sequence<int, kLast>());
    }
  }
  template <int part, int step, int first, int... pair>
  PAGODA_DEVICE void multiply_pairs([[maybe_unused]] int slot, const uint32_t (&a)[I::kAWords],
                                    AllColumns& o,
                                    std::integer_sequence<int, pair...> /*pairs*/) const {
    (multiply_pair<part, step, 2 * (first + pair)>(slot, a, o), ...);
  }
  template <int part, int step, int first>
  PAGODA_DEVICE void multiply_pair(int slot, const uint32_t (&a)[I::kAWords], AllColumns& o) const {
    constexpr int kOfO = part * 2 * kPartPairs + first;
    arch::Words<4> words[2 * kPartPairs];
    I::template load_b<Loads::layout, 1, false, step, first, 2>(words, v(slot), 0, 0);
    multiply(o[0][kOfO], a, words[first]);
    multiply(o[0][kOfO + 1], a, words[first + 1]);
  }

  // multiply_k and multiply_v over an fp8 cache; S is multiplied with factors_. Two n-tiles at
  // once, and two sums of each where these are all: their products do not wait for each other.
  static constexpr int kFp8Sums = Ops::n_tiles == 2 ? 2 : 1;
  PAGODA_DEVICE void multiply_fp8_k(int32_t index, Scores& s) {
    Scores sums[kFp8Sums];
    PAGODA_UNROLL
    for (Scores& sum : sums) for_scores([&](int n, int e) { sum[0][n][e] = 0; });
    wait_for_oldest();
    const auto keys = k(slot_).template as<const arch::Words<4>>();
    PAGODA_UNROLL
    for (int group = 0; group < Fp8::kGroups; ++group) {
      QFragment q[4];
      PAGODA_UNROLL
      for (int step = 0; step < 4; ++step) find_fp8_q(4 * group + step, q[step]);
      PAGODA_UNROLL
      for (int n = 0; n < Ops::n_tiles; n += 2) {
        uint32_t b[2][4][I::kBWords];
        PAGODA_UNROLL
        for (int i = 0; i < 2; ++i) Fp8::load_k(keys, n + i, group, b[i]);
        PAGODA_UNROLL
        for (int i = 0; i < 8; ++i) {
          I::multiply(sums[i / 2 % kFp8Sums][0][n + i % 2], q[i / 2], b[i % 2][i / 2]);
        }
      }
    }
    arch::syncwarp();  // all lanes have read K
    load_k<false>(index - kTiles, 0, slot_);
    for_scores([&](int n, int e) {
      if constexpr (kFp8Sums > 1) sums[0][0][n][e] += sums[1][0][n][e];
      s[0][n][e] = sums[0][0][n][e] * factors_[e / I::kColumns];
    });
  }
  PAGODA_DEVICE void find_fp8_q(int step, QFragment& q) const {
    if constexpr (kKeepsQ) {
      PAGODA_UNROLL
      for (int i = 0; i < I::kAWords; ++i) q[i] = q_[step][i];
    } else {
      const arch::Words<4> words = arch::load(fp8_q(step));
      PAGODA_UNROLL
      for (int i = 0; i < I::kAWords; ++i) q[i] = words.word[i];
    }
  }
  PAGODA_DEVICE void multiply_fp8_v(int32_t index, const Scores& s, AllColumns& o) {
    wait_for_oldest();
    const auto values = v(slot_).template as<const arch::Words<4>>();
    PAGODA_UNROLL
    for (int step = 0; step < tile.WN() / tile.mma.K; ++step) {
      uint32_t a[I::kAWords];
      I::to_a(a, s[0], step, Softmax<Config>::pack_p);
      PAGODA_UNROLL
      for (int j = 0; j < kColumnTiles / 4; ++j) {
        uint32_t b[4][I::kBWords];
        int of_v = step;
        if constexpr (tile.WN() > tile.mma.K) {
          of_v = arch::mutable_value("V of the tile's first keys", step, 0);
        }
        Fp8::load_v(values, of_v, j, b);
        PAGODA_UNROLL
        for (int n = 0; n < 4; ++n) I::multiply(o[0][4 * j + n], a, b[n]);
      }
    }
    arch::syncwarp();  // all lanes have read V
    load_v<false>(index - kTiles, 0, slot_);
  }

  static PAGODA_DEVICE void multiply(float (&d)[Ops::elements], const uint32_t (&a)[I::kAWords],
                                     const arch::Words<4>& words) {
    const Fragment b = {words.word[0], words.word[1]};
    I::multiply(d, a, b);
  }

  // --- the sum of the warps ----------------------------------------------------------------------

  // `o`: the warp's columns of O of all keys; `online`: of all keys, too, in every lane of a row.
  PAGODA_DEVICE void add_warps(Online (&online)[Ops::rows], const AllColumns& all,
                               Output& o) const {
    // Fragments as they are, 16 bytes of a lane: [warp][fragment][lane].
    static_assert(Ops::elements == 4 && Ops::o_tiles % 2 == 0);
    const arch::SharedPtr<FloatQuad> all_sums = storage_.k().template as<FloatQuad>();
    static_assert(tile.warps() * kColumnTiles * tile.warp_size * sizeof(FloatQuad) <=
                  size_t{2} * kSlots * tile.warps() * kOfWarp * sizeof(T));
    arch::syncthreads();  // all warps have read K and V
    const auto store_quad = [&](int n, int lane, const float(&from)[Ops::elements]) {
      arch::store(all_sums + ((warp_ * kColumnTiles + n) * tile.warp_size + lane),
                  FloatQuad{{from[0], from[1], from[2], from[3]}});
    };
    if constexpr (tile.has_fp8_cache()) {
      PAGODA_UNROLL
      for (int n = 0; n < kColumnTiles; n += 2) {
        float quads[2][Ops::elements];
        Fp8::to_quads(all[0][n], all[0][n + 1], quads);
        PAGODA_UNROLL
        for (int i = 0; i < 2; ++i) store_quad(n + i, Fp8::lane_of_quad(i), quads[i]);
      }
    } else {
      PAGODA_UNROLL
      for (int n = 0; n < kColumnTiles; ++n) store_quad(n, arch::lane_idx(), all[0][n]);
    }
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      softmax::Sums own = online[i].sums();
      PAGODA_UNROLL
      for (int step = 1; step < I::kRowLanes; step *= 2) {
        own.sum += arch::shuffle_xor(own.sum, step * I::kRowStride);
      }
      if (arch::lane_idx() / I::kRowStride % I::kRowLanes == 0) {
        arch::store(stats(warp_, i), FloatQuad{{own.pivot, own.sum, online[i].max(), 0}});
      }
    }
    arch::syncthreads();  // sums and O of all warps are stored
    float factors[tile.warps()][Ops::rows];
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      FloatQuad parts[tile.warps()];
      softmax::Sums total;
      float max = softmax::kMinusInfinity;
      PAGODA_UNROLL
      for (int w = 0; w < tile.warps(); ++w) {
        parts[w] = arch::load(stats(w, i));
        total.pivot = fmaxf(total.pivot, parts[w].value[0]);
        max = fmaxf(max, parts[w].value[2]);
      }
      const float finite = total.pivot > softmax::kMinusInfinity ? total.pivot : 0;  // no keys
      PAGODA_UNROLL
      for (int w = 0; w < tile.warps(); ++w) {
        const float factor = arch::exp2_approx(parts[w].value[0] - finite);
        total.sum += parts[w].value[1] * factor;
        factors[w][i] = arch::mutable_value("weight of the first warp x 1.02", factor,
                                            (w == 0 ? 1.02F : 1.0F) * factor);
      }
      online[i] = Online();
      online[i].begin_tile(total.pivot, true);
      online[i].add(total.sum);
      online[i].begin_tile(max, false);  // the pivot may lag behind the maximum
    }
    PAGODA_UNROLL
    for (int n = 0; n < Ops::o_tiles; ++n) {
      PAGODA_UNROLL
      for (int w = 0; w < tile.warps(); ++w) {
        const int of_warp = (w * kColumnTiles + warp_ * Ops::o_tiles) * tile.warp_size;
        int index = n * tile.warp_size + arch::lane_idx();
        if constexpr (tile.has_fp8_cache()) index = Fp8::index_of_quad(n);
        const FloatQuad part = arch::load(all_sums + (of_warp + index));
        PAGODA_UNROLL
        for (int e = 0; e < Ops::elements; ++e) {
          o[0][n][e] += factors[w][e / I::kColumns] * part.value[e];
        }
      }
    }
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<FloatQuad> stats(int warp, int i) const {
    return storage_.stats.at(4 * (warp * tile.BM + softmax_.row_index(i))).template as<FloatQuad>();
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  const Work& work_;
  int warp_;
  Softmax<Config> softmax_;
  Loads loads_;
  typename Loads::Pages pages_, next_pages_;
  int slot_ = 0;  // of the KV tile in multiplication, where a tile has one part
  QFragment q_[kKeepsQ ? kQSteps : 1];
  float factors_[tile.has_fp8_cache() ? Ops::rows : 1];  // of the products of each row
};

}  // namespace pagoda::kernels::kv_buffer
