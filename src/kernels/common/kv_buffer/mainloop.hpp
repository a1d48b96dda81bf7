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
#include <type_traits>
#include <utility>

#include "arch/fault.hpp"
#include "arch/named_barrier.hpp"
#include "kernels/common/kv_buffer/load_q.hpp"
#include "kernels/common/kv_buffer/register_buffers.hpp"
#include "kernels/common/kv_buffer/softmax.hpp"
#include "kernels/common/kv_buffer/storage.hpp"

namespace pagoda::kernels::kv_buffer {

// Those of `work`. None where rows are shorter than the padded head dims, or tiles cross pages.
template <class Config>
PAGODA_DEVICE WholeTiles find_whole_tiles(const AttentionParams& params, const Work& work) {
  constexpr TileConfig tile = Config::tile;
  WholeTiles result;
  const operand::KeyRows& keys = params.sequences.keys;
  const int64_t k_row_bytes = 2 * params.k_rows.row_stride;
  const int64_t v_row_bytes = 2 * params.v_rows.row_stride;
  result.k_row_bytes = static_cast<int32_t>(k_row_bytes);
  result.v_row_bytes = static_cast<int32_t>(v_row_bytes);
  if (params.dim_qk != tile.depth_qk || params.dim_vo != tile.depth_vo ||
      result.k_row_bytes != k_row_bytes || result.v_row_bytes != v_row_bytes) {
    return result;
  }
  if constexpr (kHasFunctorMask<Config>) {
    if (work.walk.gap_keys != 0) return result;  // the tiles do not follow each other
  }
  const int32_t column = work.walk.start_column;
  // Its row in the sequence's pages.
  const int32_t start = column + static_cast<int32_t>(keys.first_row(work.sequence));
  int32_t outer = 0;
  int64_t row = 0;
  const int32_t page_size = keys.paged_size();
  if (page_size > 0 && page_size < tile.BN) {
    if (!tile.is_token_generation() || tile.BN % page_size != 0 ||
        page_size % Operands<Config>::K::thread_layout.rows != 0 || start % page_size != 0) {
      return result;
    }
    result.has_several_pages = true;
    result.page_shift = 0;
    while (1 << result.page_shift < page_size) ++result.page_shift;
    result.pages = keys.paged.pages_offset(work.sequence) + (start >> result.page_shift);
  } else if (page_size > 0) {
    const int32_t page_tiles = page_size / tile.BN;
    if (page_tiles * tile.BN != page_size || (page_tiles & (page_tiles - 1)) != 0 ||
        start % tile.BN != 0) {
      return result;
    }
    result.page_shift = 0;
    while (1 << result.page_shift < page_tiles) ++result.page_shift;
    const int32_t first = start / tile.BN;
    const int32_t page = first >> result.page_shift;
    result.first_slot = first - (page << result.page_shift);
    result.pages = keys.paged.pages_offset(work.sequence) + page;
  } else {
    const operand::KeyCoordinates first = keys.sequence(work.sequence).first;
    outer = first.outer;
    row = int64_t{first.row} + column;
  }
  result.k_offset = 2 * params.k_rows.offset(outer, row, work.kv_head);
  result.v_offset = 2 * params.v_rows.offset(outer, row, work.kv_head);
  const int32_t keys_left = work.rows.seqlen_kv - column, whole = keys_left / tile.BN;
  (result.has_several_pages ? result.paged_count : result.count) =
      whole < work.walk.num_tiles ? whole : work.walk.num_tiles;
  if (tile.is_token_generation() && whole < work.walk.num_tiles) {
    result.last_rows = keys_left - whole * tile.BN;
  }
  return result;
}

template <class Config>
class Mainloop {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using I = typename Ops::Instruction;
  static constexpr TileConfig tile = Config::tile;
  using Scores = typename Softmax<Config>::Scores;
  using Output = typename Ops::Output;

  // Issues the first loads of the work tile in `storage`, which has KV tiles.
  PAGODA_DEVICE Mainloop(const AttentionParams& params, Storage<Config>& storage,
                         const Work& /*work*/, int warp_m, int warp_n)
      : params_(params),
        storage_(storage),
        warp_m_(warp_m),
        warp_n_(warp_n),
        softmax_(params, warp_m),
        k_(storage.k(), warp_n),
        v_(storage.v(), warp_n) {
    first_loads(std::make_integer_sequence<int, tile.num_stages>());
  }

  // Q is stored in shared memory by all threads, or on its way in the group of the first step, and
  // nothing orders it yet; or it is read directly.
  PAGODA_DEVICE void run(Online (&online)[Ops::rows], Output& o) {
    if constexpr (tile.reads_q_directly) {
      read_q();
    } else if constexpr (tile.keeps_q_in_registers) {
      if constexpr (Ops::is_async) K::template wait<tile.num_stages - 1>();
      arch::syncthreads();  // Q is in shared memory
      load_all_q_fragments(std::make_integer_sequence<int, kQGroups>());
    }
    PAGODA_NO_UNROLL
    for (int32_t i = work().walk.num_tiles; i-- > 0;) kv_tile(i, online, o);
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

  [[nodiscard]] PAGODA_DEVICE Work work() const { return storage_.work.load(); }

  // --- loads -------------------------------------------------------------------------------------

  // K or V of the work tile's sequence and head.
  [[nodiscard]] static PAGODA_DEVICE operand::KVSource source(const AttentionParams& params,
                                                              arch::GlobalPtr<const void> data,
                                                              const RowsView& rows, int32_t dim,
                                                              int32_t kv_head) {
    const int32_t bytes = tile.staging == Staging::kRegisters ? params.kv_element_bytes : 2;
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
  static PAGODA_DEVICE void begin_tile(const AttentionParams& params, Storage<Config>& storage,
                                       int32_t index, int step, Buffer& buffer) {
    constexpr bool is_k = std::same_as<Buffer, K>;
    const Work work = storage.work.load();
    const int32_t column = first_key_of<Config>(work.walk, index);
    const int32_t left = work.rows.seqlen_kv - column;
    const operand::KVSource from =
        is_k ? source(params, params.k_data, params.k_rows, params.dim_qk, work.kv_head)
             : source(params, params.v_data, params.v_rows, params.dim_vo, work.kv_head);
    buffer.begin({from, params.sequences.keys, work.sequence, column},
                 left < tile.BN ? left : tile.BN, step);
  }
  template <int... step>
  PAGODA_DEVICE void first_loads(std::integer_sequence<int, step...> /*steps*/) {
    const int32_t last = work().walk.num_tiles - 1;
    (load<step % kSteps>(last - step / kSteps,
                         find_whole_load<step % kSteps>(last - step / kSteps)),
     ...);
  }
  // K or V of the work tile's head, as WholeTiles has it.
  struct WholeSource {
    arch::GlobalPtr<const char> data;
    int64_t page_bytes;  // from one page to the next
    int32_t row_bytes;
  };
  template <class Buffer>
  [[nodiscard]] static PAGODA_DEVICE WholeSource whole_source(const AttentionParams& params,
                                                              const WholeTiles& tiles) {
    if constexpr (std::same_as<Buffer, K>) {
      return {params.k_data.template as<const char>() + tiles.k_offset,
              2 * params.k_rows.sequence_stride, tiles.k_row_bytes};
    } else {
      return {params.v_data.template as<const char>() + tiles.v_offset,
              2 * params.v_rows.sequence_stride, tiles.v_row_bytes};
    }
  }
  [[nodiscard]] static PAGODA_DEVICE int32_t page_id(const AttentionParams& params,
                                                     const WholeTiles& tiles, int32_t page) {
    return arch::load_read_only(params.sequences.keys.paged.pages + (tiles.pages + page));
  }
  // The first row of a KV tile that load_whole copies. `exists`: whether the tile is among the
  // storage's whole tiles of one page.
  struct WholeLoad {
    arch::GlobalPtr<const char> first;
    int32_t row_bytes = 0;
    bool exists = false;
  };
  template <int step>
  [[nodiscard]] PAGODA_DEVICE WholeLoad find_whole_load(int32_t index) const {
    if constexpr (Ops::is_async) {
      const WholeTiles tiles = storage_.whole_tiles.load();
      if (index >= 0 && index < tiles.count) {
        using Buffer = std::conditional_t<(step < tile.k_steps()), K, V>;
        const WholeSource from = whole_tile<Buffer>(params_, tiles, index);
        return {from.data, from.row_bytes, true};
      }
    }
    return {};
  }
  // KV tile `index`, whose rows follow each other in memory from `data` on.
  template <class Buffer>
  [[nodiscard]] static PAGODA_DEVICE WholeSource whole_tile(const AttentionParams& params,
                                                            const WholeTiles& tiles,
                                                            int32_t index) {
    WholeSource from = whole_source<Buffer>(params, tiles);
    if (tiles.page_shift >= 0) {
      const int32_t slot = tiles.first_slot + index;
      const int32_t page = slot >> tiles.page_shift;
      index = slot - (page << tiles.page_shift);
      from.data = from.data + from.page_bytes * page_id(params, tiles, page);
    }
    from.data = from.data + int64_t{index * tile.BN} * from.row_bytes;
    return from;
  }
  // Tile `index` of several pages: the first tiles.last_rows of its rows unless has_all_rows.
  template <bool has_all_rows, class Buffer>
  static PAGODA_DEVICE void load_pages(const AttentionParams& params, const WholeTiles& tiles,
                                       int32_t index, int step, Buffer& buffer) {
    const WholeSource from = whole_source<Buffer>(params, tiles);
    buffer.template load_pages<has_all_rows>(
        [&](int row) {
          const int32_t key = index * tile.BN + row, page = key >> tiles.page_shift;
          const int32_t of_page = key - (page << tiles.page_shift);
          return from.data + (from.page_bytes * page_id(params, tiles, page) +
                              int64_t{of_page} * from.row_bytes);
        },
        from.row_bytes, step, tiles.last_rows);
  }
  // Any KV tile. A function of its own in token generation: it is many times the code of
  // load_whole, and a decode kernel of a few microseconds waits for the instruction cache more than
  // for anything else. The tile in which a sequence ends, one in every row tile, does not take the
  // long way here either.
  template <class Buffer>
  static PAGODA_DEVICE_CALL void call_load(const AttentionParams& params, Storage<Config>& storage,
                                           int32_t index, int step, int32_t shared_tile) {
    const auto memory = [&storage] {
      if constexpr (std::same_as<Buffer, K>) return storage.k();
      if constexpr (std::same_as<Buffer, V>) return storage.v();
    };
    Buffer buffer(memory(), 0);
    buffer.load_iter().set_index(shared_tile);
    const WholeTiles tiles = storage.whole_tiles.load();
    const int32_t whole = tiles.count + tiles.paged_count;
    const bool is_last = index == whole && tiles.last_rows > 0;
    if (is_last && !tiles.has_several_pages) {
      const WholeSource from = whole_tile<Buffer>(params, tiles, index);
      buffer.template load_whole<false>(from.data, from.row_bytes, step, tiles.last_rows);
    } else if (is_last) {
      load_pages<false>(params, tiles, index, step, buffer);
    } else if (index < whole) {
      load_pages<true>(params, tiles, index, step, buffer);
    } else {
      begin_tile(params, storage, index, step, buffer);
      buffer.load_from_dram();
    }
  }
  // Step `step` of the operand of `buffer` in KV tile `index`.
  template <int step, class Buffer>
  PAGODA_DEVICE void load_part(int32_t index, const WholeLoad& whole, Buffer& buffer) {
    if constexpr (Ops::is_async) {
      if (whole.exists) {
        buffer.load_whole(whole.first, whole.row_bytes, step);
        return;
      }
    }
    if constexpr (Ops::is_async && Ops::token_gen) {
      call_load<Buffer>(params_, storage_, index, step, buffer.load_iter().index());
      buffer.load_iter().advance();
    } else {
      if (kBeginsEveryStep || step == 0) begin_tile(params_, storage_, index, step, buffer);
      buffer.load_from_dram();
    }
  }
  // Issues the load of step `step` of KV tile `index`, if there is one. `whole`: find_whole_load.
  template <int step>
  PAGODA_DEVICE void load(int32_t index, const WholeLoad& whole) {
    if (index >= 0) {
      if constexpr (step < tile.k_steps()) {
        load_part<step>(index, whole, k_);
      } else {
        load_part<step - tile.k_steps()>(index, whole, v_);
      }
    }
    if constexpr (Ops::is_async) K::commit();
  }

  // Begins step `step` of KV tile `index`: afterwards its block tile is in shared memory for all
  // warps.
  template <int step, class Buffer>
  PAGODA_DEVICE void begin(int32_t index, Buffer& buffer) {
    // What the next load needs is loaded before the barrier, whose wait hides it.
    constexpr int next = (step + tile.num_stages) % kSteps;
    const int32_t next_index = index - (step + tile.num_stages) / kSteps;
    const WholeLoad whole = find_whole_load<next>(next_index);
    if constexpr (Ops::is_async) {
      Buffer::template wait<tile.num_stages - 1>();
    } else {
      constexpr int of_operand = step < tile.k_steps() ? step : step - tile.k_steps();
      buffer.template copy_to_shared<of_operand % tile.num_stages>();
    }
    arch::syncthreads();
    load<next>(next_index, whole);
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
    softmax_.apply_mods_and_mask(work(), index, warp_n_ * tile.WN(), s);
    float largest[Ops::rows];
    softmax_.row_max(s, largest);
    if constexpr (Ops::token_gen) store_row_max(largest);
    begin<tile.k_steps()>(index, v_);  // the row maxima of all warps are stored, too
    if constexpr (Ops::token_gen) load_row_max(largest);
    const float scale = arch::mutable_factor(
        "softmax scale x 1.02", tile.scores == ScoreClass::kGeneral
                                    ? 1.0F
                                    : score_factor<Config>(params_.score_map.scale_log2));
    softmax_.move_pivots(scale, largest, online, o);
    float offsets[Ops::rows];
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) offsets[i] = online[i].offset();
    const P p{s, online, offsets, scale};
    if constexpr (Ops::token_gen) {
      softmax_.template exp2_scores<0, Softmax<Config>::kColumns>(scale, offsets, s, online);
      store_p(s);
      arch::syncthreads();  // P of all warps is stored
    }
    pv_step<0>(p, o);
    pv_steps(index, p, o, std::make_integer_sequence<int, tile.v_steps() - 1>());
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
    QGroup a;
    if constexpr (tile.keeps_q_in_registers) {
      PAGODA_UNROLL
      for (int m = 0; m < Ops::m_tiles; ++m) {  // nvcc 13.0 loses fragments of a memcpy
        PAGODA_UNROLL
        for (int g = 0; g < K::TensorCore::group_size; ++g) {
          PAGODA_UNROLL
          for (int i = 0; i < I::kAWords; ++i) a[m][g][i] = q_[group][m][g][i];
        }
      }
    } else {
      load_q_fragments<group>(a);
    }
    parts<k_mma, 0, K>(k_, a, s);
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

  // This warp's scores, which become P step by step: additions to the row sums that wait until the
  // products have P would keep all of P in registers.
  struct P {
    Scores& s;
    Online (&online)[Ops::rows];
    const float (&offsets)[Ops::rows];
    float scale;
  };

  // The steps after the first.
  template <int... step>
  PAGODA_DEVICE void pv_steps([[maybe_unused]] int32_t index, [[maybe_unused]] const P& p,
                              Output& o, std::integer_sequence<int, step...> /*steps*/) {
    (next_pv_step<step + 1>(index, p, o), ...);
  }
  template <int step>
  PAGODA_DEVICE void next_pv_step(int32_t index, const P& p, Output& o) {
    begin<tile.k_steps() + step>(index, v_);
    pv_step<step>(p, o);
  }
  template <int step>
  PAGODA_DEVICE void pv_step(const P& p, Output& o) {
    v_groups<step>(p, o, std::make_integer_sequence<int, V::num_k_tiles>());
    v_.smem_iter.advance();
  }
  template <int step, int... group>
  PAGODA_DEVICE void v_groups(const P& p, Output& o, std::integer_sequence<int, group...> /*g*/) {
    (v_group<step, group>(p, o), ...);
  }
  // A is this warp's P; token generation: P of all warps, in shared memory.
  template <int step, int k_mma>
  PAGODA_DEVICE void v_group(const P& p, Output& o) {
    constexpr int first = (step * tile.v_BK + k_mma * V::TensorCore::k_group) / tile.mma.K;
    uint32_t a[Ops::m_tiles][V::TensorCore::group_size][I::kAWords];
    if constexpr (Ops::token_gen) {
      PAGODA_UNROLL
      for (int m = 0; m < Ops::m_tiles; ++m) {
        I::template load_a<Ops::p_layout, first * tile.mma.K / 8>(
            a[m], storage_.p.data(), warp_m_ * tile.WM() + m * tile.mma.M);
      }
    } else {
      make_p<first, 0>(p, a);
    }
    parts<k_mma, 0, V>(v_, a, o);
  }
  // P of the k-steps from first + g on. The scores of a k-step, or of those whose elements MMA
  // instruction packs together, are made P right before.
  template <int first, int g, int group>
  PAGODA_DEVICE void make_p(const P& p, uint32_t (&a)[Ops::m_tiles][group][I::kAWords]) const {
    constexpr int columns = tile.mma.K * I::kColumns / tile.mma.N;  // of a k-step
    constexpr int steps = I::kStepsOfP;
    static_assert(first % steps == 0 && group % steps == 0);
    softmax_.template exp2_scores<(first + g) * columns, steps * columns>(p.scale, p.offsets, p.s,
                                                                          p.online);
    PAGODA_UNROLL
    for (int m = 0; m < Ops::m_tiles; ++m) {
      PAGODA_UNROLL
      for (int i = g; i < g + steps; ++i) {
        I::to_a(a[m][i], p.s[m],
                arch::mutable_value("P of the tile's first keys", first + i, i % steps),
                Softmax<Config>::pack_p);
      }
    }
    if constexpr (g + steps < group) make_p<first, g + steps>(p, a);
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
