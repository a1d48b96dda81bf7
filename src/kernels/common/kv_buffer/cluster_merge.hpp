// ClusterMerge: the result of rows whose keys the CTAs of a cluster share. Each CTA owns some
// columns of O. All send their partial results of these columns to it, by st.async from the
// registers of the mainloop to its shared memory (ClusterInbox), and it adds them up: no barrier,
// no fence and no look at global memory, each of which takes about as long as a KV tile.
//
// Latent rows have 512 columns, for which these stores would be thousands: a warp stages its
// columns of all rows in shared memory, and a bulk copy sends them. Copies read the memory of a CTA
// until they have arrived, so that no CTA of a cluster ends before all have.
//
// Where a row tile has several clusters, CTA `rank` of each stores its sum in a slot of the
// workspace, and the last of them merges these (split_rows.hpp): ranks do not wait for each other.
//
//   inbox.full   1 arrival, of thread 0, which expects the bytes of all CTAs
#pragma once

#include <cstdint>

#include "arch/bulk_copy.hpp"
#include "arch/cluster.hpp"
#include "arch/fault.hpp"
#include "arch/fence.hpp"
#include "arch/math.hpp"
#include "arch/mbarrier.hpp"
#include "kernels/common/kv_buffer/softmax.hpp"
#include "kernels/common/split_rows.hpp"

namespace pagoda::kernels::kv_buffer {

// What the CTAs of a cluster send each other: each its partial results of the columns of O that a
// CTA owns.
template <class Config>
struct ClusterInbox {
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kColumns = tile.depth_vo / tile.cluster;  // of a CTA
  // Latent rows: those that a warp sends at once, in blocks [row][column].
  static constexpr int kBlockColumns = tile.is_latent() ? tile.depth_of_warp() : kColumns;
  // [sender][block][row][column]
  arch::SharedArray<float, tile.cluster * tile.BM * kColumns, tile.is_latent() ? 128 : 16> o;
  arch::SharedArray<FloatPair, tile.cluster * tile.BM> sums;  // [sender][row]: pivot, sum
  arch::SharedArray<float, tile.cluster * tile.BM> max;       // [sender][row]
  arch::MBarrier full;
};

template <class Config>
class ClusterMerge {
 public:
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kCtas = tile.cluster;
  using Inbox = ClusterInbox<Config>;
  static constexpr int kColumns = Inbox::kColumns, kQuads = kColumns / 4;

  PAGODA_DEVICE ClusterMerge(const AttentionParams& params, Storage<Config>& storage)
      : params_(params),
        storage_(storage),
        inbox_(storage.inbox),
        split_(params, 0),
        rank_(arch::cluster_rank()) {}

  // All threads of the cluster, early: the others may send from the end of the wait in
  // wait_until_all_began() on.
  PAGODA_DEVICE void begin(const Work& work) const {
    if (arch::thread_idx() == 0) {
      inbox_.full.init(1);
      arch::name_barrier(inbox_.full, "inbox full", 0);
      arch::fence_mbarrier_init();
    }
    // For compute-sanitizer, to which the warp initialises a barrier where one thread does.
    if constexpr (tile.is_latent()) arch::syncwarp();
    if (arch::thread_idx() == 0) {
      const int32_t of_sums = static_cast<int32_t>(sizeof(FloatPair)) + (wants_max() ? 4 : 0);
      constexpr int32_t kSenders = tile.is_latent() ? kCtas - 1 : kCtas;  // of columns of O
      const int32_t bytes_of_row = kCtas * of_sums + kSenders * 4 * kColumns;
      inbox_.full.arrive_expect_tx(static_cast<uint32_t>(num_rows(work) * bytes_of_row));
    }
    arch::cluster_arrive_relaxed();  // fence_mbarrier_init has released the barrier
  }
  PAGODA_DEVICE void wait_until_all_began() const { arch::cluster_wait(); }

  // A pair of columns of this CTA, relative to the pivot, not normalised. `column` is even.
  PAGODA_DEVICE void send_pair(int row, int column, float a, float b) const {
    const int to = column / kColumns;
    arch::store_async(
        arch::map_shared(at(rank_, row, column % kColumns).template as<FloatPair>(), to),
        FloatPair{a, b}, inbox_.full, to);
  }
  // Latent rows: a pair of the columns of warp `warp` to the block that it sends, and the block.
  // That of the CTA itself stays where it is. All threads of the CTA have read K, and all of a warp
  // call send_block().
  PAGODA_DEVICE void store_in_block(int warp, int row, int column, float a, float b) const {
    const int at = index_in_block(row, column % kBlockColumns);
    arch::store((block_of(warp) + at).template as<FloatPair>(), FloatPair{a, b});
  }
  PAGODA_DEVICE void send_block(const Work& work, int warp) const {
    constexpr int kBlocks = kColumns / kBlockColumns;  // of a CTA
    const int to = warp / kBlocks;
    arch::fence_proxy_async_shared();
    arch::syncwarp();  // all lanes have stored their part of the block
    arch::bulk_copy_to_cta(
        arch::lane_idx() == 0 && to != rank_,
        arch::map_shared(at(rank_, 0, warp % kBlocks * kBlockColumns), to), block_of(warp),
        static_cast<uint32_t>(num_rows(work) * kBlockColumns * 4), inbox_.full, to);
  }
  PAGODA_DEVICE void send_sums(int to, int row, softmax::Sums sums, float max) const {
    const int at = rank_ * tile.BM + row;
    arch::store_async(arch::map_shared(inbox_.sums.at(at), to), FloatPair{sums.pivot, sums.sum},
                      inbox_.full, to);
    if (wants_max()) {
      arch::store_async(arch::map_shared(inbox_.max.at(at), to), max, inbox_.full, to);
    }
  }

  // All threads, after those.
  PAGODA_DEVICE void run(const Work& work) {
    inbox_.full.wait_cluster(0);  // the partial results of all CTAs have arrived
    if constexpr (tile.is_latent()) {
      arch::cluster_arrive_relaxed();
      arch::syncthreads();  // all warps have stored their blocks
    }
    add_partial_results(work);
    // Copies read the memory of a CTA until their blocks have arrived.
    if constexpr (tile.is_latent()) arch::cluster_wait();
  }

 private:
  PAGODA_DEVICE void add_partial_results(const Work& work) {
    for_own_quads(work, [&](int row, int of_columns) {
      const int column = rank_ * kColumns + of_columns;
      const Total total = add<kCtas>(kCtas, [&](int32_t k) {
        const FloatPair sums = arch::load(inbox_.sums.at(k * tile.BM + row));
        const arch::SharedPtr<float> from = received(k, row, of_columns);
        Total part{.sums = {sums.low, sums.high}, .o = arch::load(from.template as<FloatQuad>())};
        if (wants_max()) part.max = arch::load(inbox_.max.at(k * tile.BM + row));
        return part;
      });
      if (!work.is_split()) return finish(work, row, column, total);
      const int32_t slot = work.slot(work.split);
      split_.store_partial_quad(slot, row, column, total.o);
      if (of_columns == 0) split_.store_partial_stats(slot, row, total.sums, total.max);
    });
    if (!work.is_split() ||
        !split_.arrive_and_check_last(work, storage_.is_last.at(0), arch::thread_idx() == 0,
                                      [](arch::Where where) { arch::syncthreads(where); })) {
      return;
    }
    for_own_quads(work, [&](int row, int of_columns) {
      const int column = rank_ * kColumns + of_columns;
      finish(work, row, column, add<kInFlight>(work.num_splits, [&](int32_t k) {
               const int32_t slot = work.slot(k);
               const arch::GlobalPtr<float> from = split_.out_row(slot, row) + column;
               const FloatQuad stats =
                   arch::load(split_.stats_row(slot, row).template as<const FloatQuad>());
               return Total{.sums = {stats.value[0], stats.value[1]},
                            .max = stats.value[2],
                            .o = arch::load(from.template as<const FloatQuad>())};
             }));
    });
  }

  using Split = SplitRows<T, tile.BM, 1, tile.depth_vo, true>;

  [[nodiscard]] static PAGODA_DEVICE int32_t num_rows(const Work& work) {
    return tile.has_tokens ? work.num_tokens * work.num_heads : work.num_heads;
  }

  // Four columns of a partial result, or of a sum of them.
  struct Total {
    softmax::Sums sums{};
    float max = softmax::kMinusInfinity;
    FloatQuad o{};
  };

  // Calls body(row, column) for the parts of four of this CTA's columns that the thread adds up.
  template <class Body>
  static PAGODA_DEVICE void for_own_quads(const Work& work, const Body& body) {
    constexpr int rows_at_once = tile.threads() / kQuads;
    static_assert(tile.threads() % kQuads == 0);
    PAGODA_NO_UNROLL
    for (int row = arch::thread_idx() / kQuads; row < num_rows(work); row += rows_at_once) {
      body(row, arch::thread_idx() % kQuads * 4);
      if constexpr (rows_at_once >= tile.BM) return;
    }
  }

  [[nodiscard]] PAGODA_DEVICE bool wants_max() const { return params_.row_max != nullptr; }

  static constexpr int kBlockColumns = Inbox::kBlockColumns;
  [[nodiscard]] static PAGODA_DEVICE int index_in_block(int row, int column) {
    // Neither stores of pairs of eight rows nor loads of quads of one have a bank conflict.
    return row * kBlockColumns + (column ^ row % 8 * 8);
  }
  // In the memory of K.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> block_of(int warp) const {
    return storage_.kv.data().template as<float>() + warp * (tile.BM * kBlockColumns);
  }
  // A column of a row in the inbox, of what CTA `sender` has sent.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> at(int sender, int row, int column) const {
    if constexpr (!tile.is_latent()) {
      return inbox_.o.at((sender * tile.BM + row) * kColumns + column);
    }
    return inbox_.o.at(index_of(sender, row, column));
  }
  // Latent rows: of a column among the blocks of all senders, each of which has those of this CTA.
  [[nodiscard]] static PAGODA_DEVICE int index_of(int sender, int row, int column) {
    const int block = sender * (kColumns / kBlockColumns) + column / kBlockColumns;
    return block * tile.BM * kBlockColumns + index_in_block(row, column % kBlockColumns);
  }

  // The same of any sender, this CTA among them.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> received(int sender, int row,
                                                              int column) const {
    if constexpr (!tile.is_latent()) return at(sender, row, column);
    return sender == rank_ ? block_of(0) + index_of(sender, row, column) : at(sender, row, column);
  }

  static constexpr int kInFlight = 8;  // partial results of clusters that are loaded together

  // The sum of parts 0 .. count - 1, `step` of which are loaded together.
  template <int step, class Load>
  static PAGODA_DEVICE Total add(int32_t count, const Load& load) {
    Total total;
    PAGODA_NO_UNROLL
    for (int32_t first = 0; first < count; first += step) {
      Total part[step];
      PAGODA_UNROLL
      for (int k = 0; k < step; ++k) {
        // Where parts are fewer, one of them again without weight: no branch between the loads.
        part[k] = load(first + k < count ? first + k : first);
      }
      float pivot = total.sums.pivot;
      PAGODA_UNROLL
      for (int k = 0; k < step; ++k) {
        pivot = part[k].sums.pivot > pivot ? part[k].sums.pivot : pivot;
        total.max = part[k].max > total.max ? part[k].max : total.max;
      }
      const float finite = pivot > softmax::kMinusInfinity ? pivot : 0;  // without keys
      const float weight = arch::exp2_approx(total.sums.pivot - finite);
      total.sums = softmax::Sums{pivot, total.sums.sum * weight};
      PAGODA_UNROLL
      for (int e = 0; e < 4; ++e) total.o.value[e] *= weight;
      PAGODA_UNROLL
      for (int k = 0; k < step; ++k) {
        float factor = first + k < count ? arch::exp2_approx(part[k].sums.pivot - finite) : 0;
        total.sums.sum += part[k].sums.sum * factor;
        factor = arch::mutable_value("weight of the first CTA x 1.02", factor,
                                     (first + k == 0 ? 1.02F : 1.0F) * factor);
        PAGODA_UNROLL
        for (int e = 0; e < 4; ++e) total.o.value[e] += factor * part[k].o.value[e];
      }
    }
    return total;
  }

  // Stores four columns of a row, and with the first ones its LSE and maximum.
  PAGODA_DEVICE void finish(const Work& work, int row, int column, const Total& total) const {
    Row where;
    const TokenAndHead of = token_and_head<tile.row_map()>(work, row);
    where.token = of.token;
    where.q_head = of.head;
    float factor = 0;
    if (wants_only_o(params_)) {
      factor = o_factor(params_, work, true, total.sums);
    } else {
      const RowResult result =
          finalize_row(params_, work, where.q_head, true, total.sums, total.max);
      if (column == 0) store_lse_and_max(params_, work, where.token, where.q_head, result);
      factor = result.end.o_factor;
    }
    if (is_out_of<T>(params_)) {
      store_quad(out_row<T>(params_, work, where), params_.dim_vo, column, total.o.value, factor);
    } else {
      store_converted_quad(params_, out_offset(params_, work, where), factor, column,
                           total.o.value);
    }
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  Inbox& inbox_;
  Split split_;
  int rank_;
};

}  // namespace pagoda::kernels::kv_buffer
