// Epilogue: row sums over all lanes and warps, then O, LSE and row maximum; or, where the keys of
// the rows are split over CTAs, a partial result, and the merge by the last CTA (split_rows.hpp) or
// by the CTAs of a cluster (cluster_merge.hpp).
#pragma once

#include <cstdint>

#include "arch/named_barrier.hpp"
#include "kernels/common/kv_buffer/mainloop.hpp"
#include "kernels/common/row_store.hpp"
#include "kernels/common/split_rows.hpp"

namespace pagoda::kernels::kv_buffer {

// cluster_merge.hpp, which a family includes that has kernels with clusters.
template <class Config>
class ClusterMerge;

template <class Config>
class Epilogue {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using I = typename Ops::Instruction;
  static constexpr TileConfig tile = Config::tile;
  using Output = typename Ops::Output;
  // Lanes that merge a row, four or eight columns each. In decoding a warp merges two rows side by
  // side, which wait for memory together.
  static constexpr int row_lanes =
      tile.is_decode && tile.depth_vo <= 4 * tile.warp_size ? 16 : tile.warp_size;
  using Split = SplitRows<T, tile.BM, 1, tile.depth_vo, true, tile.warp_size, tile.ctas_per_sm <= 2,
                          row_lanes>;

  PAGODA_DEVICE Epilogue(const AttentionParams& params, Storage<Config>& storage, int warp_m,
                         int warp_n)
      : params_(params),
        storage_(storage),
        warp_n_(warp_n),
        softmax_(params, warp_m),
        split_(params, 0) {}

  // All threads of the CTA. `online`, `o`: of this lane's rows.
  PAGODA_DEVICE void run(const Work& work, const Online (&online)[Ops::rows], const Output& o) {
    softmax::Sums sums[Ops::rows];
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      sums[i] = online[i].sums();
      if constexpr (!tile.is_decode) {  // else they are sums of all lanes and warps
        PAGODA_UNROLL
        for (int step = 1; step < I::kRowLanes; step *= 2) {
          sums[i].sum += arch::shuffle_xor(sums[i].sum, step * I::kRowStride);
        }
      }
    }
    if constexpr (Ops::token_gen && !tile.is_decode) add_warps(sums);
    if constexpr (tile.cluster > 1) {
      merge_in_cluster(work, online, sums, o);
    } else if (work.is_split()) {
      const int32_t slot = work.slot(work.split);
      store_partial(
          work, o,
          [&](int row, int column, float a, float b) {
            Split::store_pair(split_.out_row(slot, row) + column, a, b);
          },
          [&](int row, int i) {
            if (is_row_lane() && warp_n_ == 0) {
              split_.store_partial_stats(slot, row, sums[i], online[i].max());
            }
          });
      merge_if_last(work);
    } else {
      store_result(work, online, sums, o);
    }
  }

 private:
  // One lane of each row in each warp, and one of all lanes and warps of a row.
  [[nodiscard]] static PAGODA_DEVICE bool is_row_lane() {
    return arch::lane_idx() / I::kRowStride % I::kRowLanes == 0;
  }

  // The warps that share rows have the sums of their own keys, relative to the same pivots. The
  // sums overwrite the row maxima, which all warps have read before the mainloop's barrier for P.
  PAGODA_DEVICE void add_warps(softmax::Sums (&sums)[Ops::rows]) const {
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      if (is_row_lane()) {
        arch::store(storage_.stats.at(warp_n_ * tile.BM + softmax_.row_index(i)), sums[i].sum);
      }
    }
    arch::syncthreads();  // the sums of all warps are stored
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      sums[i].sum = 0;
      PAGODA_UNROLL
      for (int w = 0; w < tile.warps_n; ++w) {
        sums[i].sum += arch::load(storage_.stats.at(w * tile.BM + softmax_.row_index(i)));
      }
    }
  }

  // Column of pair `pair` of fragment n, of the lane's elements of a row.
  [[nodiscard]] PAGODA_DEVICE int column(int n, int pair) const {
    return warp_n_ * tile.depth_of_warp() + n * tile.mma.N + I::column(arch::lane_idx(), 2 * pair);
  }

  // O of T passes through shared memory, so that a thread stores 16 bytes of a row: through that of
  // Q, which all warps have read before a barrier of the mainloop. They may still be reading V.
  PAGODA_DEVICE void store_result(const Work& work, const Online (&online)[Ops::rows],
                                  const softmax::Sums (&sums)[Ops::rows], const Output& o) const {
    float factors[Ops::rows];
    const bool has_only_o = wants_only_o(params_);
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      const Row row = softmax_.make_row(work, i);
      if (has_only_o) {
        factors[i] = o_factor(params_, work, row.is_valid, sums[i]);
        continue;
      }
      const RowResult result =
          finalize_row(params_, work, row.q_head, row.is_valid, sums[i], online[i].max());
      if (row.is_written && is_row_lane() && warp_n_ == 0) {
        store_lse_and_max(params_, work, row.token, row.q_head, result);
      }
      factors[i] = result.end.o_factor;
    }
    if (!is_out_of<T>(params_)) {
      store_from_registers(work, factors, o);
      return;
    }
    PAGODA_UNROLL
    for (int part = 0; part < tile.o_parts; ++part) {
      // All warps have read V, or stored the part before.
      if (tile.reads_q_directly || part > 0) arch::syncthreads();
      stage(part, factors, o);
      arch::syncthreads();  // all warps have stored their part of O
      store_rows(work, part);
    }
  }

  // O of another dtype than T: each lane stores its own columns, by way of the memory of O.
  PAGODA_DEVICE void store_from_registers(const Work& work, const float (&factors)[Ops::rows],
                                          const Output& o) const {
    constexpr int elements = Ops::o_tiles * I::kColumns;  // of a lane in a row
    constexpr int room = Ops::o_layout.size() * 8 / 2 / Ops::threads;
    constexpr int batch = room < elements ? room : elements;
    static_assert(batch > 0 && elements % batch == 0);
    arch::syncthreads();  // all warps have read V, and the work tile
    const arch::SharedPtr<float> scratch = storage_.o().template as<float>() + arch::thread_idx();
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      const Row row = softmax_.make_row(work, i);
      if (!row.is_written) continue;
      const int64_t to = out_offset(params_, work, row);
      PAGODA_UNROLL
      for (int first = 0; first < elements; first += batch) {
        store_converted<batch, Ops::threads>(
            params_, to, factors[i], scratch,
            [&](int e) {
              const int at = first + e;
              return o[i / I::kRows][at / I::kColumns]
                      [i % I::kRows * I::kColumns + at % I::kColumns];
            },
            [&](int e) {
              const int at = first + e;
              return column(at / I::kColumns, at % I::kColumns / 2) + at % 2;
            });
      }
    }
  }

  // Columns of O that pass through shared memory together.
  static constexpr int kPartColumns = tile.depth_vo / tile.o_parts;
  static_assert(tile.o_parts == 1 || (!Ops::token_gen && Ops::o_tiles % tile.o_parts == 0));

  PAGODA_DEVICE void stage(int part, const float (&factors)[Ops::rows], const Output& o) const {
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      PAGODA_UNROLL
      for (int of_part = 0; of_part < Ops::o_tiles / tile.o_parts; ++of_part) {
        const int n = part * (Ops::o_tiles / tile.o_parts) + of_part;
        PAGODA_UNROLL
        for (int pair = 0; pair < I::kColumns / 2; ++pair) {
          const int at = column(of_part, pair);
          const float(&from)[Ops::elements] = o[i / I::kRows][n];
          const int e = i % I::kRows * I::kColumns + 2 * pair;
          const int vector = operand::vector_index<Ops::o_layout>(softmax_.row_index(i), at / 8);
          arch::store((storage_.o() + (vector * 8 + at % 8)).template as<uint32_t>(),
                      scaled_pair<T>(from[e], from[e + 1], factors[i]));
        }
      }
    }
  }

  PAGODA_DEVICE void store_rows(const Work& work, int part) const {
    constexpr int chunks = kPartColumns / 8;
    constexpr int rows_at_once = Ops::threads / chunks;
    static_assert(Ops::threads % chunks == 0, "a thread stores the same columns of its rows");
    const int32_t rows = work.num_tokens * (Ops::token_gen ? work.num_heads : 1);
    const int first_row = arch::thread_idx() / chunks, chunk = arch::thread_idx() % chunks;
    const int column = part * kPartColumns + chunk * 8;
    if (column >= params_.dim_vo) return;
    const auto staged = [&](int row) {
      const int vector = operand::vector_index<Ops::o_layout>(row, chunk);
      return arch::load((storage_.o() + vector * 8).template as<arch::Words<4>>());
    };
    const arch::GlobalPtr<T> data = params_.out_data.as<T>();
    if (!Ops::token_gen && column + 8 <= params_.dim_vo &&
        has_aligned_rows(params_.out_data.address(), params_.out_rows)) {
      const arch::GlobalPtr<T> to =
          data +
          (params_.out_rows.offset(work.sequence, work.memory_row + work.first_token + first_row,
                                   work.first_head) +
           column);
      PAGODA_UNROLL
      for (int i = 0; i < tile.BM; i += rows_at_once) {
        if (first_row + i >= rows) return;
        arch::store((to + i * params_.out_rows.row_stride).template as<arch::Words<4>>(),
                    staged(first_row + i));
      }
      return;
    }
    PAGODA_NO_UNROLL
    for (int row = first_row; row < rows; row += rows_at_once) {
      const auto [token, head] = token_and_head<tile.row_map()>(work, row);
      store_chunk(data + params_.out_rows.offset(work.sequence, work.memory_row + token, head),
                  column, staged(row));
    }
  }
  // Eight elements of the row at `to`, without those past the head dim.
  PAGODA_DEVICE void store_chunk(arch::GlobalPtr<T> to, int column,
                                 const arch::Words<4>& words) const {
    if (to.address() % 16 == 0 && column + 8 <= params_.dim_vo) {
      arch::store((to + column).template as<arch::Words<4>>(), words);
      return;
    }
    PAGODA_UNROLL
    for (int e = 0; e < 8; e += 2) {
      if (column + e + 1 < params_.dim_vo) {
        store_pair(to, column + e, words.word[e / 2], to.address() % 4 == 0);
      } else if (column + e < params_.dim_vo) {
        arch::store((to + (column + e)).template as<uint16_t>(),
                    static_cast<uint16_t>(words.word[e / 2]));
      }
    }
  }

  PAGODA_DEVICE void merge_in_cluster(const Work& work, const Online (&online)[Ops::rows],
                                      const softmax::Sums (&sums)[Ops::rows], const Output& o) {
    ClusterMerge<Config> merge(params_, storage_);
    // Every warp has the sums of all: each sends those of a row to as many CTAs as its row lanes.
    static_assert(tile.cluster <= tile.warps_n * I::kRowLanes);
    const int to = arch::lane_idx() / I::kRowStride % I::kRowLanes * tile.warps_n + warp_n_;
    const auto store_pair = [&](int row, int column, float a, float b) {
      if constexpr (tile.is_latent()) {
        merge.store_in_block(warp_n_, row, column, a, b);
      } else {
        merge.send_pair(row, column, a, b);
      }
    };
    merge.wait_until_all_began();
    store_partial(work, o, store_pair, [&](int row, int i) {
      if (to < tile.cluster) merge.send_sums(to, row, sums[i], online[i].max());
    });
    if constexpr (tile.is_latent()) merge.send_block(work, warp_n_);
    merge.run(work);
  }

  // The rows that hold queries: store_pair(row, column, a, b), store_stats(row, index of the lane).
  template <class StorePair, class StoreStats>
  PAGODA_DEVICE void store_partial(const Work& work, const Output& o, const StorePair& store_pair,
                                   const StoreStats& store_stats) const {
    const int32_t valid_rows = work.valid_tokens * (Ops::token_gen ? work.num_heads : 1);
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      const int index = softmax_.row_index(i);
      if (index >= valid_rows) continue;
      PAGODA_UNROLL
      for (int n = 0; n < Ops::o_tiles; ++n) {
        PAGODA_UNROLL
        for (int pair = 0; pair < I::kColumns / 2; ++pair) {
          const float(&from)[Ops::elements] = o[i / I::kRows][n];
          const int e = i % I::kRows * I::kColumns + 2 * pair;
          store_pair(index, column(n, pair), from[e], from[e + 1]);
        }
      }
      store_stats(index, i);
    }
  }

  PAGODA_DEVICE void merge_if_last(const Work& work) {
    if (!split_.arrive_and_check_last(work, storage_.is_last.at(0), arch::thread_idx() == 0,
                                      [](arch::Where where) { arch::syncthreads(where); })) {
      return;
    }
    const int32_t rows = work.num_tokens * (Ops::token_gen ? work.num_heads : 1);
    constexpr int rows_of_warp = tile.warp_size / row_lanes;
    const int step = tile.warps() * rows_of_warp;
    for (int first = arch::warp_idx() * rows_of_warp; first < tile.BM && first < rows;
         first += step) {
      const int own = first + arch::lane_idx() / row_lanes;
      const int r = rows_of_warp == 1 || own < rows ? own : first;
      Row row = tile_row<softmax::RescaleLazily, tile.row_map()>(params_, work, r);
      row.is_written = row.is_written && r == own;
      if (rows_of_warp > 1 || row.is_written) split_.merge_row(work, r, row);
    }
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  int warp_n_;
  Softmax<Config> softmax_;
  Split split_;
};

}  // namespace pagoda::kernels::kv_buffer
