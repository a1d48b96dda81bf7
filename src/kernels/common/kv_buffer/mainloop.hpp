// Mainloop: O and the online softmax of a work tile over its KV tiles. All warps run it together:
// there are no roles, because every thread loads.
//
// A KV tile is k_steps() steps of S += Q K' and v_steps() of O += P V. A step is one block tile of
// a KVBuffer: its bytes are complete in shared memory, a barrier of the CTA, the load of the step
// `num_stages` further on is issued, the products. The barrier has two purposes: this step's bytes
// are visible to all warps, and all warps have multiplied the steps before it, whose memory the new
// load may take.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <utility>

#include "arch/fault.hpp"
#include "arch/named_barrier.hpp"
#include "kernels/common/kv_buffer/load_q.hpp"
#include "kernels/common/kv_buffer/register_buffers.hpp"
#include "kernels/common/kv_buffer/softmax.hpp"
#include "kernels/common/kv_buffer/storage.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Config>
class Mainloop {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using I = typename Ops::Instruction;
  static constexpr TileConfig tile = Config::tile;
  using Scores = typename Softmax<Config>::Scores;
  using Output = float[Ops::m_tiles][Ops::o_tiles][Ops::elements];

  // Issues the first loads of the work tile, which has KV tiles.
  PAGODA_DEVICE Mainloop(const AttentionParams& params, Storage<Config>& storage, int warp_m,
                         int warp_n)
      : params_(params),
        storage_(storage),
        warp_m_(warp_m),
        warp_n_(warp_n),
        softmax_(params, storage, warp_m),
        k_(storage.k(), warp_n),
        v_(storage.v(), warp_n) {
    first_loads(std::make_integer_sequence<int, tile.num_stages>());
  }

  // Q is stored in shared memory by all threads, unless it is read directly; nothing orders it yet.
  PAGODA_DEVICE void run(Online (&online)[Ops::rows], Output& o) {
    if constexpr (tile.reads_q_directly) {
      read_q();
    } else if constexpr (tile.keeps_q_in_registers) {
      arch::syncthreads();  // Q is in shared memory
      load_all_q_fragments(std::make_integer_sequence<int, kQGroups>());
    }
    PAGODA_NO_UNROLL
    for (int32_t i = storage_.work.load().walk.num_tiles; i-- > 0;) kv_tile(i, online, o);
  }

 private:
  using K = typename Ops::K;
  using V = typename Ops::V;
  static constexpr int kSteps = tile.k_steps() + tile.v_steps();
  // A load may not take memory that a warp still reads: the tile that it takes was multiplied
  // `distance` steps before the step it is for. An operand with one step a tile has a step of
  // kSteps; otherwise its steps follow each other.
  static constexpr bool is_free(int steps, int tiles) {
    const int ahead = Ops::is_async ? tile.num_stages : 1;
    const int distance = steps == 1 ? kSteps * tiles : tiles;
    return ahead < distance;
  }
  static_assert(is_free(tile.k_steps(), tile.k_tiles) && is_free(tile.v_steps(), tile.v_tiles));
  static_assert(Ops::is_async || (tile.k_steps() % tile.num_stages == 0 &&
                                  tile.v_steps() % tile.num_stages == 0),
                "the register stage of a step is a constant");

  // --- loads -------------------------------------------------------------------------------------

  // K or V of the work tile's sequence and head.
  [[nodiscard]] PAGODA_DEVICE operand::KVSource source(arch::GlobalPtr<const void> data,
                                                       const RowsView& rows, int32_t dim,
                                                       int32_t kv_head) const {
    const int32_t bytes = tile.staging == Staging::kRegisters ? params_.kv_element_bytes : 2;
    operand::KVSource source;
    source.data = data.as<const char>() + kv_head * rows.head_stride * bytes;
    source.outer_bytes = rows.sequence_stride * bytes;
    source.row_bytes = rows.row_stride * bytes;
    source.dim = dim;
    source.element_bytes = bytes;
    source.is_aligned = ((source.data.address() | static_cast<uint64_t>(source.outer_bytes) |
                          static_cast<uint64_t>(source.row_bytes)) &
                         static_cast<uint64_t>(8 * bytes - 1)) == 0;
    return source;
  }
  // The look-ups of a KV tile's rows are kept from step to step where registers allow.
  static constexpr bool kBeginsEveryStep = !Ops::token_gen && tile.warp_size == 32;
  // The next load of `buffer` is of step `step` of KV tile `index`.
  template <class Buffer>
  PAGODA_DEVICE void begin_tile(int32_t index, int step, Buffer& buffer) const {
    constexpr bool is_k = std::same_as<Buffer, K>;
    const Work work = storage_.work.load();
    const int32_t column = work.walk.column(index);
    const int32_t left = work.rows.seqlen_kv - column;
    const operand::KVSource from =
        is_k ? source(params_.k_data, params_.k_rows, params_.dim_qk, work.kv_head)
             : source(params_.v_data, params_.v_rows, params_.dim_vo, work.kv_head);
    buffer.begin({from, params_.sequences.keys, work.sequence, column},
                 left < tile.BN ? left : tile.BN, step);
  }
  template <int... step>
  PAGODA_DEVICE void first_loads(std::integer_sequence<int, step...> /*steps*/) {
    const int32_t last = storage_.work.load().walk.num_tiles - 1;
    (load<step % kSteps>(last - step / kSteps), ...);
  }
  // Issues the load of step `step` of KV tile `index`, if there is one.
  template <int step>
  PAGODA_DEVICE void load(int32_t index) {
    constexpr bool is_k = step < tile.k_steps();
    constexpr int of_operand = is_k ? step : step - tile.k_steps();
    if (index >= 0) {
      if constexpr (is_k) {
        if (kBeginsEveryStep || of_operand == 0) begin_tile(index, of_operand, k_);
        k_.load_from_dram();
      } else {
        if (kBeginsEveryStep || of_operand == 0) begin_tile(index, of_operand, v_);
        v_.load_from_dram();
      }
    }
    if constexpr (Ops::is_async) K::commit();
  }

  // Begins step `step` of KV tile `index`: afterwards its block tile is in shared memory for all
  // warps.
  template <int step, class Buffer>
  PAGODA_DEVICE void begin(int32_t index, Buffer& buffer) {
    if constexpr (Ops::is_async) {
      Buffer::template wait<tile.num_stages - 1>();
    } else {
      constexpr int of_operand = step < tile.k_steps() ? step : step - tile.k_steps();
      buffer.template copy_to_shared<of_operand % tile.num_stages>();
    }
    arch::syncthreads();
    load<(step + tile.num_stages) % kSteps>(index - (step + tile.num_stages) / kSteps);
  }

  // --- one KV tile -------------------------------------------------------------------------------

  PAGODA_DEVICE void kv_tile(int32_t index, Online (&online)[Ops::rows], Output& o) {
    Scores s;
    PAGODA_UNROLL
    for (int m = 0; m < Ops::m_tiles; ++m) {
      PAGODA_UNROLL
      for (int n = 0; n < Ops::n_tiles; ++n) {
        PAGODA_UNROLL
        for (int e = 0; e < Ops::elements; ++e) s[m][n][e] = 0;
      }
    }
    qk_steps(index, s, std::make_integer_sequence<int, tile.k_steps()>());
    softmax_.apply_mods_and_mask(index, warp_n_ * tile.WN(), s);
    float largest[Ops::rows];
    softmax_.row_max(s, largest);
    if constexpr (Ops::token_gen) store_row_max(largest);
    begin<tile.k_steps()>(index, v_);  // the row maxima of all warps are stored, too
    if constexpr (Ops::token_gen) load_row_max(largest);
    const float scale = arch::mutable_factor(
        "softmax scale x 1.02",
        tile.scores == ScoreClass::kGeneral ? 1.0F : params_.score_map.scale_log2);
    softmax_.move_pivots(scale, largest, online, o);
    softmax_.exp2_scores(scale, s, online);
    if constexpr (Ops::token_gen) {
      store_p(s);
      arch::syncthreads();  // P of all warps is stored
      pv_step<0>(nullptr, o);
      pv_steps(index, nullptr, o, std::make_integer_sequence<int, tile.v_steps() - 1>());
    } else {
      uint32_t p[Ops::m_tiles][kPSteps][I::kAWords];
      PAGODA_UNROLL
      for (int m = 0; m < Ops::m_tiles; ++m) {
        PAGODA_UNROLL
        for (int k = 0; k < kPSteps; ++k) {
          const int from = arch::mutable_value("P of the tile's first keys", k, 0);
          I::to_a(p[m][k], s[m], from, Softmax<Config>::pack_p);
        }
      }
      pv_step<0>(p, o);
      pv_steps(index, p, o, std::make_integer_sequence<int, tile.v_steps() - 1>());
    }
  }

  template <int... step>
  PAGODA_DEVICE void qk_steps(int32_t index, Scores& s,
                              std::integer_sequence<int, step...> /*steps*/) {
    (qk_step<step>(index, s), ...);
  }
  template <int step>
  PAGODA_DEVICE void qk_step(int32_t index, Scores& s) {
    begin<step>(index, k_);
    k_groups<step>(s, std::make_integer_sequence<int, K::num_k_tiles>());
    k_.smem_iter.advance();
  }
  template <int step, int... group>
  PAGODA_DEVICE void k_groups(Scores& s, std::integer_sequence<int, group...> /*groups*/) {
    (k_group<step, group>(s), ...);
  }
  template <int step, int k_mma>
  PAGODA_DEVICE void k_group(Scores& s) {
    constexpr int group = step * K::num_k_tiles + k_mma;
    if constexpr (tile.keeps_q_in_registers) {
      parts<k_mma, 0, K>(k_, q_[group], s);
    } else {
      QGroup a;
      load_q_fragments<group>(a);
      parts<k_mma, 0, K>(k_, a, s);
    }
  }
  // The products of kPart fragments of B at a time: those of the whole warp tile would take too
  // many registers.
  static constexpr int kPart = 4;
  template <int k_mma, int first, class Buffer, int group, int columns>
  PAGODA_DEVICE void parts(Buffer& buffer, const uint32_t (&a)[Ops::m_tiles][group][I::kAWords],
                           float (&d)[Ops::m_tiles][columns][Ops::elements]) {
    constexpr int count = columns - first < kPart ? columns - first : kPart;
    buffer.template load_from_shared<k_mma, first, count>();
    PAGODA_UNROLL
    for (int g = 0; g < group; ++g) {
      PAGODA_UNROLL
      for (int m = 0; m < Ops::m_tiles; ++m) {
        PAGODA_UNROLL
        for (int n = first; n < first + count; ++n) {
          Buffer::TensorCore::multiply(d[m][n], a[m][g], buffer.get_mma_tile()[n], g);
        }
      }
    }
    if constexpr (first + count < columns) parts<k_mma, first + count, Buffer>(buffer, a, d);
  }

  // Fragments of Q of a k-group.
  static constexpr int kQGroups = tile.depth_qk / K::TensorCore::k_group;
  using QGroup = uint32_t[Ops::m_tiles][K::TensorCore::group_size][I::kAWords];
  template <int group>
  PAGODA_DEVICE void load_q_fragments(QGroup& a) const {
    PAGODA_UNROLL
    for (int m = 0; m < Ops::m_tiles; ++m) {
      I::template load_a<Ops::q_layout, group * K::TensorCore::k_group / 8>(
          a[m], storage_.q.data(), warp_m_ * tile.WM() + m * tile.mma.M);
    }
  }
  template <int... group>
  PAGODA_DEVICE void load_all_q_fragments(std::integer_sequence<int, group...> /*groups*/) {
    (load_q_fragments<group>(q_[group]), ...);
  }
  // The same from global memory, where a lane's part of a k-group is 16 bytes of a row.
  PAGODA_DEVICE void read_q() {
    static_assert(sizeof(QGroup) == Ops::m_tiles * sizeof(arch::Words<4>));
    const Work work = storage_.work.load();
    const QRows<Config> rows(params_, work);
    const int lane = arch::lane_idx();
    PAGODA_UNROLL
    for (int group = 0; group < kQGroups; ++group) {
      PAGODA_UNROLL
      for (int m = 0; m < Ops::m_tiles; ++m) {
        const int row = warp_m_ * tile.WM() + m * tile.mma.M + I::row(lane, 0);
        const arch::Words<4> words =
            rows.load(row, group * K::TensorCore::k_group + lane / I::kRowStride * 8);
        memcpy(q_[group][m], &words, sizeof words);
      }
    }
  }

  // --- P V ---------------------------------------------------------------------------------------

  static constexpr int kPSteps = tile.WN() / tile.mma.K;  // of this warp's own P
  using P = uint32_t[kPSteps][I::kAWords];

  // The steps after the first.
  template <int... step>
  PAGODA_DEVICE void pv_steps([[maybe_unused]] int32_t index, [[maybe_unused]] const P* p,
                              Output& o, std::integer_sequence<int, step...> /*steps*/) {
    (next_pv_step<step + 1>(index, p, o), ...);
  }
  template <int step>
  PAGODA_DEVICE void next_pv_step(int32_t index, const P* p, Output& o) {
    begin<tile.k_steps() + step>(index, v_);
    pv_step<step>(p, o);
  }
  template <int step>
  PAGODA_DEVICE void pv_step(const P* p, Output& o) {
    v_groups<step>(p, o, std::make_integer_sequence<int, V::num_k_tiles>());
    v_.smem_iter.advance();
  }
  template <int step, int... group>
  PAGODA_DEVICE void v_groups(const P* p, Output& o, std::integer_sequence<int, group...> /*g*/) {
    (v_group<step, group>(p, o), ...);
  }
  // `p`: this warp's P in registers; token generation: P of all warps in shared memory.
  template <int step, int k_mma>
  PAGODA_DEVICE void v_group(const P* p, Output& o) {
    constexpr int first = (step * tile.v_BK + k_mma * V::TensorCore::k_group) / tile.mma.K;
    uint32_t a[Ops::m_tiles][V::TensorCore::group_size][I::kAWords];
    PAGODA_UNROLL
    for (int m = 0; m < Ops::m_tiles; ++m) {
      if constexpr (Ops::token_gen) {
        I::template load_a<Ops::p_layout, first * tile.mma.K / 8>(
            a[m], storage_.p.data(), warp_m_ * tile.WM() + m * tile.mma.M);
      } else {
        memcpy(a[m], p[m][first], sizeof a[m]);
      }
    }
    parts<k_mma, 0, V>(v_, a, o);
  }

  // --- exchange between the warps that share rows ------------------------------------------------

  PAGODA_DEVICE void store_row_max(const float (&largest)[Ops::rows]) const {
    if (arch::lane_idx() / I::kRowStride % I::kRowLanes != 0) return;
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      arch::store(storage_.stats.at(warp_n_ * tile.BM + softmax_.row_index(i)), largest[i]);
    }
  }
  PAGODA_DEVICE void load_row_max(float (&largest)[Ops::rows]) const {
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      PAGODA_UNROLL
      for (int w = 0; w < tile.warps_n; ++w) {
        largest[i] =
            fmaxf(largest[i], arch::load(storage_.stats.at(w * tile.BM + softmax_.row_index(i))));
      }
    }
  }
  PAGODA_DEVICE void store_p(const Scores& s) const {
    using Softmax = kv_buffer::Softmax<Config>;
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      PAGODA_UNROLL
      for (int c = 0; c < Softmax::kColumns; c += 2) {
        const int from = arch::mutable_value("P of the warp's first keys", c, 0);
        const int key = warp_n_ * tile.WN() + Softmax::key(c);
        const int at =
            operand::vector_index<Ops::p_layout>(softmax_.row_index(i), key / 8) * 8 + key % 8;
        arch::store(storage_.p.at(at).template as<uint32_t>(),
                    Softmax::pack_p(Softmax::score(s, i, from), Softmax::score(s, i, from + 1)));
      }
    }
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  int warp_m_, warp_n_;
  Softmax<Config> softmax_;
  K k_;
  V v_;
  QGroup q_[tile.keeps_q_in_registers ? kQGroups : 1];
};

}  // namespace pagoda::kernels::kv_buffer
