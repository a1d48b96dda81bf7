// The Hopper attention kernel: who does what. A warpgroup of producers, a role a warp, and one to three
// of consumers.
#pragma once

#include "arch/debug.hpp"
#include "arch/register_budget.hpp"
#include "kernels/mha_sm90/merge_warps.hpp"
#include "kernels/mha_sm90/partial.hpp"
#include "kernels/mha_sm90/roles/consumer.hpp"
#include "kernels/mha_sm90/roles/epilogue.hpp"
#include "kernels/mha_sm90/roles/gather.hpp"
#include "kernels/mha_sm90/roles/load.hpp"
#include "kernels/mha_sm90/roles/load_q.hpp"

namespace pagoda::mha_sm90 {

template <class Config>
struct Kernel {
  using Params = AttentionParams;
  using Storage = mha_sm90::Storage<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kThreads = tile.threads();
  static constexpr int kClusterSize = 1, kMinArch = 90, kMaxArch = 90;
  static constexpr int kCtasPerSm = tile.ctas_per_sm;
  // Of a thread at launch: what the register file holds (setmaxnreg moves them afterwards).
  static constexpr int kRegisters = 65536 / (kThreads * kCtasPerSm) / 8 * 8;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    prefetch(params);
    init_barriers(storage);
    if constexpr (tile.rows == RowKind::kPacked) {
      find_share<Config>(params, storage.share);  // ends with a barrier
    } else {
      arch::syncthreads();
    }
    if (arch::warpgroup_idx() == 0) {
      if constexpr (tile.has_budgets()) {
        arch::register_budget_decrease<tile.producer_registers>();
      }
      if constexpr (tile.load == LoadKind::kGather) {
        const arch::Role role("gather");  // two warps K, two V
        gather<Config>(params, storage);
      } else {
        produce(params, storage);
      }
    } else {
      if constexpr (tile.has_budgets()) {
        arch::register_budget_increase<tile.consumer_registers>();
      }
      if constexpr (tile.has_warp_products()) {
        consume_by_warps(params, storage);
      } else {
        consume(params, storage);
      }
    }
  }

 private:
  using Ops = Operands<Config>;

  // The first copies need not wait for their maps.
  static PAGODA_DEVICE void prefetch(const Params& params) {
    if (tile.load == LoadKind::kGather || arch::thread_idx() != kWarpgroup) return;
    arch::tma_prefetch_descriptor(params.k);
    arch::tma_prefetch_descriptor(params.v);
    if constexpr (tile.rows == RowKind::kTokens) arch::tma_prefetch_descriptor(params.q);
  }

  // By one thread. The others must not touch them before the next syncthreads.
  static PAGODA_DEVICE void init_barriers(Storage& storage) {
    if (arch::thread_idx() == 0) {
      const auto where = arch::Where::current();
      Ops::KRing::init(storage.k_ring, Ops::releases, "k", where, Ops::fills);
      Ops::VRing::init(storage.v_ring, Ops::releases, "v", where, Ops::fills);
      storage.work.init(Ops::work_readers);
      for (int w = 0; w < tile.num_consumers; ++w) {
        constexpr const char* names[] = {"q of 0", "q of 1", "q of 2"};
        Ops::QRing::init(storage.q_ring[w], 4, names[w], where);
      }
      if constexpr (RequestOrder<Config>::is_used) {
        storage.q_requested.init(tile.has_warp_products() ? 4 : 1);  // warps that load Q
        arch::name_barrier(storage.q_requested, "q requested");
      }
      storage.v_tail.init(1);
      arch::name_barrier(storage.v_tail, "v tail");
      arch::fence_mbarrier_init();
    }
  }

  // A role a warp.
  static PAGODA_DEVICE void produce(const Params& params, Storage& storage) {
    const int page_size = params.sequences.keys.paged_size();
    const int warp = arch::warp_idx();
    if (warp == 0) {
      const arch::Role role("load k");
      operand::dispatch_page_size<tile.BN>(
          page_size, [&]<int size>() { load_k<Config, size>(params, storage); });
    } else if (warp == 1) {
      const arch::Role role("load v");
      operand::dispatch_page_size<tile.BN>(
          page_size, [&]<int size>() { load_v<Config, size>(params, storage); });
    } else if (warp == 2) {
      const arch::Role role("load q");
      if constexpr (Ops::has_q_place) load_q<Config>(params, storage);
    } else {
      const arch::Role role("schedule");
      if (arch::elect_one() != 0) schedule(params, storage);
    }
  }

  static PAGODA_DEVICE void schedule(const Params& params, Storage& storage) {
    WorkWriter writer(storage.work);
    if constexpr (tile.rows == RowKind::kPacked) {
      ShareWork<Config> share(params, storage.share.load());
      for (Work work; share.next(work);) writer.write(work);
    } else {
      GridWork<Config> grid(params);
      for (Work work; grid.next(work);) writer.write(work);
    }
    writer.write(Work{});  // the end
  }

  static PAGODA_DEVICE void consume(const Params& params, Storage& storage) {
    const arch::Role role("consume");
    const int warpgroup = arch::warpgroup_idx() - 1;
    const int first = warpgroup * kRows + 16 * (arch::warp_idx() % 4) + arch::lane_idx() / 4;
    Attend<Config> attend(params, storage, warpgroup);
    attend.begin();
    WorkReader reader(storage.work);
    for (; reader.next(); reader.release()) {
      Row rows[2];
      float o[tile.depth_vo / 2];
      make_rows(params, reader.work(), first, rows);
      const mask::TileWalk walk = reader.work().walk;
      if (walk.num_tiles > 0) attend.run(reader, walk, rows, o);
      const Work work = reader.work();  // anew: nothing of it is kept while attending
      finish_rows(params, work, first, rows);
      if (work.is_split()) {
        Partial<Config>(params, storage, warpgroup).run(work, rows, o);
      } else {
        Store<Config>(params, warpgroup).run(work, rows, o, attend.q_place());
      }
      if (tile.rows == RowKind::kTokens && work.walk.num_tiles > 0) attend.leave_q();
    }
    attend.end();
  }

  // The same where each warp has all rows and some of the keys.
  static PAGODA_DEVICE void consume_by_warps(const Params& params, Storage& storage) {
    const arch::Role role("consume");
    const int first = arch::lane_idx() / 4;
    AttendWarp<Config> attend(params, storage);
    WorkReader reader(storage.work);
    for (; reader.next(); reader.release()) {
      Row rows[2];
      float o[tile.depth_vo / 2];
      make_rows(params, reader.work(), first, rows);
      const mask::TileWalk walk = reader.work().walk;
      if (walk.num_tiles > 0) {
        attend.run(reader, walk, rows, o);
      } else {
        attend.skip();
      }
      const Work work = reader.work();  // anew: nothing of it is kept while attending
      finish_rows(params, work, first, rows);
      MergeWarps<Config>(params, storage).run(work, rows, o);
    }
  }

  static PAGODA_DEVICE void make_rows(const Params& params, const Work& work, int first,
                                      Row (&rows)[2]) {
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) rows[r] = make_row<Config>(params, work, first + 8 * r);
  }

  // Which rows they are, again, and their sums over the lanes that share them.
  static PAGODA_DEVICE void finish_rows(const Params& params, const Work& work, int first,
                                        Row (&rows)[2]) {
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const auto online = rows[r].online;
      rows[r] = make_row<Config>(params, work, first + 8 * r);
      rows[r].online = online;
      rows[r].sums = softmax::Sums{online.sums().pivot, sum_of_quad(online.sums().sum)};
    }
  }
};

}  // namespace pagoda::mha_sm90
