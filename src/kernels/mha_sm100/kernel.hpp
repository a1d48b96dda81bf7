// SM100MHA2Q: attention on Blackwell. A CTA computes two halves (Q0, Q1) of 128 query rows, alone
// or with a peer CTA whose rows share its MMAs. Roles:
//
//   warps 0-3    softmax of half 0    warp 12   MMA, one lane; in a CTA pair only the leader's
//   warps 4-7    softmax of half 1    warp 13   load K and V; warps 13 and 14 where gathered
//   warps 8-11   correction           warp 15   schedule, load Q; one lane
#pragma once

#include "arch/debug.hpp"
#include "arch/grid_dependency.hpp"
#include "arch/register_budget.hpp"
#include "kernels/common/grid_work.hpp"
#include "kernels/mha_sm100/roles/correction.hpp"
#include "kernels/mha_sm100/roles/gather.hpp"
#include "kernels/mha_sm100/roles/load.hpp"
#include "kernels/mha_sm100/roles/mma.hpp"
#include "kernels/mha_sm100/roles/softmax.hpp"

namespace pagoda::mha_sm100 {

template <class Config>
struct SM100MHA2Q {
  using Params = kernels::ParamsOf<Config>;
  using Storage = mha_sm100::Storage<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kThreads = mha_sm100::kThreads;
  static constexpr int kClusterSize = tile.ctas, kMinArch = 100, kMaxArch = 103;
  static constexpr int kCtasPerSm = 1;
  static constexpr int kRegisters = 65536 / kThreads;  // per thread at launch
  static constexpr bool kHasTensorMemory = true;
  // Programmatic dependent launch: the previous kernel may still run when this one starts.
  static constexpr bool kIsDependent = true;
  static_assert(sizeof(Storage) <= kSharedBytes);

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    const int warp = arch::warp_idx();
    init(params, storage, warp);
    // Waits until the previous kernel has completed: from here on its writes are visible. Nothing
    // above touches global memory that it may write.
    arch::grid_dependency_wait();
    prepare(params, storage);
    arch::grid_launch_dependents();
    // The allocating warp wrote the address before the barrier in prepare().
    const Tmem<Config> tmem{arch::TmemPtr{arch::load(storage.tmem.at(0))}};
    if (warp < 8) {
      arch::register_budget_increase<tile.softmax_registers>();
      const arch::Role role("softmax");
      Softmax<Config>(params, storage, tmem, warp / 4).run();
    } else if (warp < 12) {
      arch::register_budget_decrease<tile.correction_registers>();
      const arch::Role role("correction");
      Correction<Config>(params, storage, tmem).run();
    } else {
      arch::register_budget_decrease<tile.other_registers>();
      run_single_warp(params, storage, tmem, warp);
    }
    // Waits until every role has finished with tensor memory and the peer's barriers.
    Group::sync();
    if (warp == kAllocatingWarp) arch::tmem_free<tile.ctas>(tmem.base, kTmemColumns);
  }

 private:
  using Ops = Operands<Config>;
  using Group = typename Ops::Group;
  static constexpr int kAllocatingWarp = 12;

  // Initialises barriers, tensor memory and descriptor prefetches; prepare() has the barrier that
  // makes them visible to the other warps.
  static PAGODA_DEVICE void init(const Params& params, Storage& storage, int warp) {
    if (arch::thread_idx() == 0) init_barriers(params, storage);
    if (warp == kAllocatingWarp) {
      arch::tmem_allocate<tile.ctas>(storage.tmem.data(), kTmemColumns);
      arch::tmem_relinquish<tile.ctas>();
    }
    if (arch::thread_idx() == 14 * 32) {  // the first TMA copies find their tensor maps cached
      arch::tma_prefetch_descriptor(params.q);
      if (params.is_gathered) return;
      arch::tma_prefetch_descriptor(params.k);
      arch::tma_prefetch_descriptor(params.v);
    }
  }

  // Computes the stream-K partition where the schedule needs it. Ends with a barrier.
  static PAGODA_DEVICE void prepare(const Params& params, Storage& storage) {
    if (params.schedule == kernels::Schedule::kStreamK) {
      kernels::find_stream_k_start<Config>(params, storage.share);
      if constexpr (tile.ctas == 1) return;
    }
    Group::sync();
  }

  static PAGODA_DEVICE void init_barriers(const Params& params, Storage& storage) {
    const uint32_t fills = params.is_gathered ? kernels::sm100::kGatherWarps : 1;
    const auto where = arch::Where::current();
    if constexpr (tile.has_shared_ring()) {
      Ops::KRing::init(storage.kv_rings[0], 1, "kv", where, fills);
    } else {
      Ops::KRing::init(storage.kv_rings[0], 1, "k", where, fills);
      Ops::VRing::init(storage.kv_rings[1], 1, "v", where, fills);
    }
    storage.work.init(Ops::work_readers(params.is_gathered));
    const auto init = [](arch::MBarrier& barrier, uint32_t arrivals, const char* name, int index) {
      barrier.init(arrivals);
      arch::name_barrier(barrier, name, index);
    };
    for (int half = 0; half < kHalves; ++half) {
      init(storage.q_full[half], tile.ctas, "q full", half);
      init(storage.q_empty[half], 1, "q empty", half);
      init(storage.s_full[half], 1, "s full", half);
      init(storage.p_full[half][0], tile.ctas * 8, "p full, o rescaled", half);
      init(storage.p_full[half][1], tile.ctas * 4, "p rest full", half);
      init(storage.o_full[half], 1, "o full", half);
      FactorPipeline::init(storage.factor_ring[half], 4, 4, half == 0 ? "factor 0" : "factor 1");
    }
    init(storage.v_tail, 1, "v tail", 0);
    for (int stage = 0; tile.ctas == 2 && stage < Storage::kTailStages; ++stage) {
      init(storage.v_tail_of_peer[stage], 1, "v tail of the peer", stage);
    }
    if constexpr (tile.ctas == 2) {
      if (params.schedule == kernels::Schedule::kQueue) storage.queue.init();
    }
    // Orders the initialisation before arrivals of TMA, tcgen05.commit and the peer CTA.
    arch::fence_mbarrier_init();
  }

  static PAGODA_DEVICE void run_single_warp(const Params& params, Storage& storage,
                                            Tmem<Config> tmem, int warp) {
    if (warp == 12) {
      const arch::Role role("mma");
      run_mma(params, storage, tmem);
    } else if (warp < 15 && params.is_gathered) {
      if constexpr (tile.ctas == 1) gather(params, storage, warp - 13);
    } else if (warp == 13) {
      const arch::Role role("load");
      if constexpr (tile.ctas == 2) {
        if (!Group::is_leader()) return load<false>(params, storage);
      }
      load<true>(params, storage);
    } else if (warp == 15) {
      const arch::Role role("schedule");
      if (arch::elect_one() != 0) schedule(params, storage);
    }
  }

  template <bool is_leader>
  static PAGODA_DEVICE void load(const Params& params, Storage& storage) {
    operand::dispatch_page_size<tile.BN>(params.sequences.keys.paged_size(), [&]<int size>() {
      if constexpr (size == 0 || size >= kernels::sm100::kMinPieceRows) {
        Load<Config, size, is_leader>(params, storage).run();
      }
    });
  }

  static PAGODA_DEVICE void gather(const Params& params, Storage& storage, int warp) {
    const arch::Role role("gather");
    if (params.kv_element_bytes == static_cast<int32_t>(sizeof(typename Config::T))) {
      Gather<Config, sizeof(typename Config::T)>(params, storage, warp).run();
    } else if constexpr (sizeof(typename Config::T) == 2) {
      Gather<Config, 1>(params, storage, warp).run();
    }
  }

  static PAGODA_DEVICE void run_mma(const Params& params, Storage& storage, Tmem<Config> tmem) {
    // One lane issues every MMA and commit: a commit covers the MMAs of the thread that issues it.
    const int32_t elect = Group::is_leader() ? arch::elect_one() : 0;
    MmaIssuer<Config> mma(params, storage, tmem);
    WorkReader reader(storage.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      if (elect != 0 && work.walk.num_tiles > 0) mma.run(work);
    }
  }

  static PAGODA_DEVICE void schedule(const Params& params, Storage& storage) {
    kernels::WorkWriter writer(storage.work);
    LoadQ<Config> q(params, storage);
    const auto write_all = [&writer, &q](auto items) {
      for (Work work; items.next(work);) {
        writer.write(work);
        q.load(work);  // waits for the previous epilogue, while the load warp loads K and V
      }
    };
    const int32_t index = Group::index();
    switch (params.schedule) {
      case kernels::Schedule::kStreamK:
        write_all(kernels::StreamKWork<Config>(params, storage.share.start.load()));
        break;
      case kernels::Schedule::kQueue:
        if constexpr (tile.ctas == 1) {
          write_all(kernels::GridWork<Config>(params));
        } else {
          const kernels::sm100::PairDraws draws(params, storage.queue, Group::rank());
          write_all(kernels::GridWork<Config, kernels::sm100::PairScheduler>(
              params, {params.grid, index, Group::count(), draws}));
        }
        break;
      case kernels::Schedule::kPersistent:
        write_all(kernels::GridWork<Config, schedule::PersistentScheduler>(
            params, {params.grid, index, Group::count()}));
        break;
      case kernels::Schedule::kTransient:
        write_all(
            kernels::GridWork<Config, schedule::TransientScheduler>(params, {params.grid, index}));
        break;
    }
    writer.write(Work{});  // end of work
  }
};

}  // namespace pagoda::mha_sm100
