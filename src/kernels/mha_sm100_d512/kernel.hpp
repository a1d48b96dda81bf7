// SM100MHAD512: attention on Blackwell with head dims of 129 to 512. A pair of CTAs computes a work
// tile, one block of query rows each. Roles, in both CTAs:
//
//   warps 0-3   softmax       warp 8    MMA, one lane; only the leader's
//   warps 4-7   correction    warp 9    load K and V; warps 9 and 10 where gathered
//                             warp 11   schedule, load Q; one lane
#pragma once

#include "arch/debug.hpp"
#include "arch/grid_dependency.hpp"
#include "arch/register_budget.hpp"
#include "kernels/common/grid_work.hpp"
#include "kernels/mha_sm100_d512/roles/correction.hpp"
#include "kernels/mha_sm100_d512/roles/gather.hpp"
#include "kernels/mha_sm100_d512/roles/load.hpp"
#include "kernels/mha_sm100_d512/roles/mma.hpp"
#include "kernels/mha_sm100_d512/roles/softmax.hpp"

namespace pagoda::mha_sm100_d512 {

template <class Config>
struct SM100MHAD512 {
  using Params = kernels::ParamsOf<Config>;
  using Storage = mha_sm100_d512::Storage<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kThreads = mha_sm100_d512::kThreads;
  static constexpr int kClusterSize = kPair, kMinArch = 100, kMaxArch = 103;
  static constexpr int kCtasPerSm = 1;
  static constexpr int kRegisters = 65536 / kThreads / 8 * 8;  // per thread at launch
  static constexpr bool kHasTensorMemory = true;
  // Programmatic dependent launch: the previous kernel may still run when this one starts.
  static constexpr bool kIsDependent = true;
  static_assert(sizeof(Storage) <= kSharedBytes);

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    const int warp = arch::warp_idx(), rank = arch::cluster_rank();
    init(params, storage, warp, rank);
    // Waits until the previous kernel has completed: from here on its writes are visible. Nothing
    // above touches global memory that it may write.
    arch::grid_dependency_wait();
    if (params.schedule == kernels::Schedule::kStreamK) {
      kernels::find_stream_k_start<Config>(params, storage.share);
    }
    arch::cluster_sync();  // both CTAs' barriers are initialised before the peer arrives on them
    arch::grid_launch_dependents();
    run_role(params, storage, warp, rank);
    // Waits until every role of both CTAs has finished with tensor memory and the peer's barriers.
    arch::cluster_sync();
    // Warp index and address are read again, which keeps them out of the roles' registers.
    if (arch::warp_idx() == kAllocatingWarp) {
      arch::tmem_free<kPair>(tmem_of(storage).base, arch::kTmemColumns);
    }
  }

 private:
  using Ops = Operands<Config>;
  static constexpr int kAllocatingWarp = 8;

  static PAGODA_DEVICE Tmem<Config> tmem_of(Storage& storage) {
    return {arch::TmemPtr{arch::load(storage.tmem.at(0))}};
  }

  // Each role loads the address of tensor memory by itself: kept in a register across the branches,
  // ptxas spilled it.
  static PAGODA_DEVICE void run_role(const Params& params, Storage& storage, int warp, int rank) {
    if (warp < 4) {
      arch::register_budget_increase<tile.softmax_registers>();
      const arch::Role role("softmax");
      Softmax<Config>(params, storage, tmem_of(storage), rank).run();
    } else if (warp < 8) {
      arch::register_budget_decrease<tile.correction_registers>();
      const arch::Role role("correction");
      Correction<Config>(params, storage, tmem_of(storage), rank).run();
    } else {
      arch::register_budget_decrease<tile.other_registers>();
      run_single_warp(params, storage, warp, rank);
    }
  }

  // Initialises barriers, tensor memory and descriptor prefetches; the cluster barrier in run()
  // makes them visible to the other warps.
  static PAGODA_DEVICE void init(const Params& params, Storage& storage, int warp, int rank) {
    if (arch::thread_idx() == 0) init_barriers(params, storage, rank);
    if (warp == kAllocatingWarp) {
      arch::tmem_allocate<kPair>(storage.tmem.data(), arch::kTmemColumns);
      arch::tmem_relinquish<kPair>();
    }
    if (arch::thread_idx() == 10 * 32) {  // the first TMA copies find their maps cached
      arch::tma_prefetch_descriptor(params.q);
      if (params.is_gathered) return;
      arch::tma_prefetch_descriptor(params.k);
      arch::tma_prefetch_descriptor(params.v);
    }
  }

  static PAGODA_DEVICE void init_barriers(const Params& params, Storage& storage, int rank) {
    const uint32_t fills = params.is_gathered ? kPair * kernels::sm100::kGatherWarps : kPair;
    Ops::Ring::init(storage.ring, 1, "kv", arch::Where::current(), fills);
    storage.work.init(Ops::work_readers(rank, params.is_gathered));
    if (params.schedule == kernels::Schedule::kQueue) storage.queue.init();
    const auto init = [](arch::MBarrier& barrier, uint32_t arrivals, const char* name,
                         int index = 0) {
      barrier.init(arrivals);
      arch::name_barrier(barrier, name, index);
    };
    init(storage.v_tail, 1, "v tail");
    init(storage.q_full, kPair, "q full");
    init(storage.q_empty, 1, "q empty");
    init(storage.s_full[0], 1, "s full", 0);
    init(storage.s_full[1], 1, "s full", 1);
    init(storage.p_full, kPair * 8, "p full, o rescaled");
    init(storage.o_full, 1, "o full");
    FactorPipeline::init(storage.factor_ring, 4, 4, "factor");
    // Orders the initialisation before arrivals of TMA, tcgen05.commit and the peer CTA.
    arch::fence_mbarrier_init();
  }

  static PAGODA_DEVICE void run_single_warp(const Params& params, Storage& storage, int warp,
                                            int rank) {
    if (warp == 8 && rank == kLeader) {
      const arch::Role role("mma");
      run_mma(params, storage);
    } else if (warp < 11 && params.is_gathered) {
      if (warp > 8) gather(params, storage, warp - 9, rank);
    } else if (warp == 9) {
      const arch::Role role("load");
      operand::dispatch_page_size<tile.BN>(params.sequences.keys.paged_size(), [&]<int size>() {
        if constexpr (size == 0 || size >= kernels::sm100::kMinPieceRows) {
          if (rank == kLeader) {
            Load<Config, size, true>(params, storage).run();
          } else {
            Load<Config, size, false>(params, storage).run();
          }
        }
      });
    } else if (warp == 11) {
      const arch::Role role("schedule");
      if (arch::elect_one() != 0) schedule(params, storage, rank);
    }
  }

  static PAGODA_DEVICE void gather(const Params& params, Storage& storage, int warp, int rank) {
    const arch::Role role("gather");
    constexpr int element_bytes = sizeof(typename Config::T);
    if (params.kv_element_bytes == element_bytes) {
      Gather<Config, element_bytes>(params, storage, warp, rank).run();
    } else if constexpr (element_bytes == 2) {
      Gather<Config, 1>(params, storage, warp, rank).run();
    }
  }

  static PAGODA_DEVICE void run_mma(const Params& params, Storage& storage) {
    // One lane issues every MMA and commit: a commit covers the MMAs of the thread that issues it.
    const int32_t elect = arch::elect_one();
    MmaIssuer<Config> mma(params, storage, tmem_of(storage));
    WorkReader reader(storage.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      if (elect != 0 && work.walk.num_tiles > 0) mma.run(work);
    }
  }

  // Both CTAs compute the same work tiles: from the index of their cluster, or the leader draws for
  // both.
  static PAGODA_DEVICE void schedule(const Params& params, Storage& storage, int rank) {
    kernels::WorkWriter writer(storage.work);
    LoadQ<Config> q(params, storage, rank);
    const auto write_all = [&writer, &q](auto items) {
      for (Work work; items.next(work);) {
        writer.write(work);
        q.load(work);  // waits for the previous epilogue, while the load warp loads K and V
      }
    };
    const int32_t pair = arch::block_idx().x / kPair, pairs = arch::grid_dim().x / kPair;
    switch (params.schedule) {
      case kernels::Schedule::kStreamK:
        write_all(kernels::StreamKWork<Config>(params, storage.share.start.load()));
        break;
      case kernels::Schedule::kQueue: {
        const kernels::sm100::PairDraws draws(params, storage.queue, rank);
        write_all(kernels::GridWork<Config, kernels::sm100::PairScheduler>(
            params, {params.grid, pair, pairs, draws}));
        break;
      }
      case kernels::Schedule::kPersistent:
        write_all(kernels::GridWork<Config, schedule::PersistentScheduler>(
            params, {params.grid, pair, pairs}));
        break;
      case kernels::Schedule::kTransient:
        write_all(
            kernels::GridWork<Config, schedule::TransientScheduler>(params, {params.grid, pair}));
        break;
    }
    writer.write(Work{});  // end of work
  }
};

}  // namespace pagoda::mha_sm100_d512
