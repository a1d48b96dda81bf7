// Kernel: the Hopper attention kernel, assembled from its roles. Warpgroup 0 loads and schedules,
// one role a warp; `num_consumers` consumer warpgroups follow, then one that converts K or V, if
// any.
#pragma once

#include <type_traits>

#include "arch/debug.hpp"
#include "arch/grid_dependency.hpp"
#include "arch/register_budget.hpp"
#include "kernels/mha_sm90/roles/consumer.hpp"
#include "kernels/mha_sm90/roles/epilogue.hpp"
#include "kernels/mha_sm90/roles/gather.hpp"
#include "kernels/mha_sm90/roles/latent_scores.hpp"
#include "kernels/mha_sm90/roles/latent_values.hpp"
#include "kernels/mha_sm90/roles/latent_work.hpp"
#include "kernels/mha_sm90/roles/load.hpp"
#include "kernels/mha_sm90/roles/load_latent.hpp"
#include "kernels/mha_sm90/roles/load_q.hpp"
#include "kernels/mha_sm90/roles/split_epilogue.hpp"
#include "kernels/mha_sm90/roles/transpose_v.hpp"
#include "kernels/mha_sm90/roles/warp_epilogue.hpp"
#include "kernels/mha_sm90/roles/widen.hpp"

namespace pagoda::mha_sm90 {

template <class Config>
struct Kernel {
  using Params = kernels::ParamsOf<Config>;
  using Storage = mha_sm90::Storage<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kThreads = tile.threads();
  static constexpr int kClusterSize = 1, kMinArch = 90, kMaxArch = 90;
  static constexpr int kCtasPerSm = tile.ctas_per_sm;
  // Programmatic dependent launch: the previous kernel may still run when this one starts.
  static constexpr bool kIsDependent = true;
  // Registers of a thread at launch, before setmaxnreg: an equal part of the register file.
  static constexpr int kRegisters = 65536 / (kThreads * kCtasPerSm) / 8 * 8;
  // A CTA has no more registers than at launch: setmaxnreg would wait for more forever.
  static_assert(!tile.uses_setmaxnreg() ||
                tile.producer_registers + tile.num_multiplying() * tile.consumer_registers +
                        tile.num_converters() * tile.converter_registers <=
                    tile.num_warpgroups() * kRegisters);

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    const bool schedules_at_once = kSchedulesAtOnce || finds_latent_work(params);
    if constexpr (kSchedulesAtOnce || tile.is_latent) {
      if (schedules_at_once && arch::warpgroup_idx() == 0) {
        release_registers();
        if (arch::warp_idx() == kSchedulerWarp) {
          if (arch::elect_one() != 0) init_work_barriers(storage);
          arch::converge_warp();
          arch::named_barrier_arrive(kInitBarrier, kThreads);
          arch::grid_dependency_wait();
          if constexpr (tile.is_latent) {
            schedule_latent(params, storage);
          } else {
            run_scheduler(params, storage);
          }
          return;
        }
      }
    }
    prefetch(params);
    if (arch::thread_idx() == 0) init_barriers(storage, schedules_at_once);
    // Waits until the previous kernel has completed: from here on its writes are visible. Nothing
    // above touches global memory that it may write; the scheduler warp and prefetch() have waits
    // of their own.
    arch::grid_dependency_wait();
    if (schedules_at_once) {
      arch::named_barrier_sync(kInitBarrier, kThreads);  // the barriers are initialised
    } else {
      find_start(params, storage);  // ends with a syncthreads
    }
    arch::grid_launch_dependents();
    if (arch::warpgroup_idx() == 0) {
      if (!schedules_at_once) release_registers();
      if constexpr (tile.load == LoadKind::kGather) {
        const arch::Role role("gather");  // warps 0, 1: K; warps 2, 3: V
        gather<Config>(params, storage);
      } else {
        produce(params, storage);
      }
    } else if (tile.num_converters() > 0 && arch::warpgroup_idx() > tile.num_consumers) {
      if constexpr (tile.num_converters() > 0) {
        arch::register_budget_decrease<tile.converter_registers>();
      }
      if constexpr (tile.transposes_v()) {
        const arch::Role role("transpose v");
        transpose_v<Config>(storage);
      }
      if constexpr (tile.widens()) {
        const arch::Role role("widen");
        widen<Config>(storage);
      }
    } else {
      if constexpr (tile.uses_setmaxnreg()) {
        arch::register_budget_increase<tile.consumer_registers>();
      }
      if constexpr (tile.is_latent) {
        consume_latent(params, storage);
      } else if constexpr (tile.uses_mma_sync()) {
        consume_by_warps(params, storage);
      } else {
        consume(params, storage);
      }
    }
  }

 private:
  using Ops = Operands<Config>;
  using Row = mha_sm90::Row<Config>;

  // The scheduler warp initialises the barriers that it uses, arrives, and makes the first work
  // tile, for which all others wait, while another thread initialises the other barriers, 19 cycles
  // each. Packed rows, but those of LatentWork, look for it with all threads, of which the last
  // seldom has a sequence.
  static constexpr bool kSchedulesAtOnce = tile.rows != RowKind::kPacked;
  static constexpr int kSchedulerWarp = 3, kPrefetchWarp = 4;
  static PAGODA_DEVICE bool finds_latent_work(const Params& params) {
    if constexpr (tile.is_latent) return LatentWork<Config>::is_used(params);
    return false;
  }

  using Scheduler =
      std::conditional_t<tile.has_equal_shares, schedule::ShareScheduler, kernels::GridQueue>;

  static PAGODA_DEVICE void release_registers() {
    if constexpr (tile.uses_setmaxnreg()) {
      arch::register_budget_decrease<tile.producer_registers>();
    }
  }

  // A warp that has nothing else to do.
  static PAGODA_DEVICE void prefetch(const Params& params) {
    if (tile.load == LoadKind::kGather || arch::warp_idx() != kPrefetchWarp) return;
    if (arch::elect_one() != 0) {
      arch::tma_prefetch_descriptor(params.k);
      if constexpr (!tile.is_latent) arch::tma_prefetch_descriptor(params.v);
      if constexpr (tile.rows == RowKind::kTokens || tile.is_latent) {
        arch::tma_prefetch_descriptor(params.q);
      }
    }
    if constexpr (tile.rows == RowKind::kTokens) {
      arch::grid_dependency_wait();  // the previous kernel may have written the lengths
      params.sequences.prefetch_lengths(arch::lane_idx());
    }
  }

  static PAGODA_DEVICE void init_work_barriers(Storage& storage) {
    storage.work.init(Ops::work_readers);
    if constexpr (tile.rows == RowKind::kTokens) {
      storage.draws.init(1);
      arch::name_barrier(storage.draws, "draws");
    }
  }
  // By one thread. The barrier after it makes them visible to the other threads, and
  // fence_mbarrier_init to TMA.
  static PAGODA_DEVICE void init_barriers(Storage& storage, bool schedules_at_once) {
    const auto where = arch::Where::current();
    Ops::KRing::init(storage.k_ring, Ops::releases, "k", where, Ops::k_fills);
    if constexpr (tile.is_latent) {
      using Ring = typename LatentStorage<Ops>::Ring;
      Ring::init(storage.latent.ring, 4, "factors", where, 32);
    } else {
      Ops::VRing::init(storage.v_ring, Ops::releases, "v", where, Ops::v_fills);
    }
    if constexpr (tile.widens()) {
      Ops::LoadedKRing::init(storage.conversion.k_ring, 4, "loaded k", where);
    }
    if constexpr (tile.num_converters() > 0) {
      Ops::LoadedVRing::init(storage.conversion.v_ring, 4, "loaded v", where);
    }
    if (!schedules_at_once) init_work_barriers(storage);
    for (int w = 0; w < tile.num_consumers; ++w) {
      constexpr const char* names[] = {"q of consumer 0", "q of consumer 1", "q of consumer 2"};
      Ops::QRing::init(storage.q_ring[w], 4 * tile.column_parts(), names[w], where, Ops::q_fills);
    }
    if constexpr (QBeforeKV<Config>::is_used) {
      storage.q_issued.init(tile.uses_mma_sync() ? 4 : 1);  // warps that load Q
      arch::name_barrier(storage.q_issued, "q issued");
    }
    if constexpr (tile.load != LoadKind::kGather) {
      if constexpr (!tile.zeroes_v_in_registers()) {
        storage.v_tail.init(1);
        arch::name_barrier(storage.v_tail, "v tail");
      }
      arch::fence_mbarrier_init();
    }
  }

  static PAGODA_DEVICE void produce(const Params& params, Storage& storage) {
    const int page_size = params.sequences.keys.paged_size();
    const int warp = arch::warp_idx();
    if constexpr (tile.is_latent) {
      produce_latent(params, storage);
    } else if (warp == 0) {
      const arch::Role role("load k");
      operand::dispatch_page_size<tile.BN, tile.fewest_copy_rows()>(
          page_size, [&]<int size>() { load_k<Config, size>(params, storage); });
    } else if (warp == 1) {
      const arch::Role role("load v");
      operand::dispatch_page_size<tile.BN, tile.fewest_copy_rows()>(
          page_size, [&]<int size>() { load_v<Config, size>(params, storage); });
    } else if (kSchedulesAtOnce || warp == 2) {
      const arch::Role role("load q");
      if constexpr (Ops::has_q_stages) load_q<Config>(params, storage);
    } else {
      run_scheduler(params, storage);
    }
  }

  static PAGODA_DEVICE void produce_latent(const Params& params, Storage& storage) {
    const int warp = arch::warp_idx();
    if (warp == 0) {
      const arch::Role role("load latent");
      operand::dispatch_page_size<tile.BN, tile.fewest_copy_rows()>(
          params.sequences.keys.paged_size(),
          [&]<int size>() { LoadLatent<Config, size>(params, storage).run(); });
    } else if (warp == 2) {
      const arch::Role role("load q");
      load_q<Config>(params, storage);
    } else if (warp == kSchedulerWarp) {  // else LatentWork has found them
      run_scheduler(params, storage);
    }
  }

  // Partial results of latent rows may be merged by all CTAs of a row tile, if none has parts of
  // two row tiles; the host has seen to it that there are as many CTAs.
  static PAGODA_DEVICE void find_start(const Params& params, Storage& storage) {
    if constexpr (tile.is_latent) {
      if (params.is_merge_shared) {
        const bool is_found = kernels::find_row_tile_start<Config, 32>(params, storage.stream_k);
        arch::expect(is_found, "a merge that CTAs share has fewer row tiles than CTAs");
        return;
      }
    }
    find_stream_k_start<Config>(params, storage.stream_k);
  }

  static PAGODA_DEVICE void run_scheduler(const Params& params, Storage& storage) {
    const arch::Role role("schedule");
    if constexpr (tile.decodes) {
      schedule_mixed(params, storage);
    } else if (arch::elect_one() != 0) {
      schedule(params, storage);
    }
  }

  static PAGODA_DEVICE void schedule(const Params& params, Storage& storage) {
    WorkWriter writer(storage.work);
    if constexpr (tile.rows == RowKind::kPacked) {
      StreamKWork<Config> work_tiles(params, storage.stream_k.start.load());
      for (Work work; work_tiles.next(work);) writer.write(work);
    } else {
      GridWork<Config, Scheduler> work_tiles(params);
      uint32_t phase = 0;
      write_all(work_tiles, writer, phase, storage);
    }
    writer.write(Work{});  // no tokens: the end
  }

  static PAGODA_DEVICE void schedule_latent(const Params& params, Storage& storage) {
    const arch::Role role("schedule");
    LatentWork<Config> work_tiles(params);
    if (arch::elect_one() == 0) return;
    WorkWriter writer(storage.work);
    for (Work work; work_tiles.next(work);) writer.write(work);
    writer.write(Work{});  // no tokens: the end
  }

  // Some CTAs decode, which waits for memory, while the others multiply for prompts.
  static PAGODA_DEVICE void schedule_mixed(const Params& params, Storage& storage) {
    const schedule::TileDecoder grid = params.grid;
    const kernels::MixedShares shares = kernels::mixed_shares<Config>(params, grid);
    const kernels::StreamKStart start = kernels::decode_start<Config>(params, shares);
    if (arch::elect_one() == 0) return;
    WorkWriter writer(storage.work);
    uint32_t phase = 0;
    StreamKWork<Config> decodes(params, start);
    write_all(decodes, writer, phase, storage);
    GridWork<Config, kernels::PromptQueue> rows(params, {params, grid, shares});
    write_all(rows, writer, phase, storage);
    writer.write(Work{});  // no tokens: the end
  }

  template <class WorkTiles>
  static PAGODA_DEVICE void write_all(WorkTiles& work_tiles, WorkWriter& writer, uint32_t& phase,
                                      Storage& storage) {
    for (Work work; work_tiles.next(work); phase ^= 1U) {
      // The two stages of the ring alternate like the phases of `draws`, which saves a register.
      // Kernels with two consumers that transpose V spill with it.
      static_assert(kernels::WorkRing::kStages == 2);
      if constexpr (!tile.transposes_v() || tile.num_consumers > 2) phase = writer.stage();
      writer.write(work);
      storage.draws.wait(phase);  // load K is near the end of this work tile
    }
  }

  // A consumer warpgroup with wgmma: a warp has 16 of its 64 rows.
  static PAGODA_DEVICE void consume(const Params& params, Storage& storage) {
    const arch::Role role("consume");
    // A constant where there is one: registers are few.
    const int warpgroup = tile.num_consumers == 1 ? 0 : arch::warpgroup_idx() - 1;
    // With 256 columns the mainloop has no register for what follows from it; with general scores
    // there is none to find it again.
    constexpr bool is_kept = tile.scores == ScoreClass::kGeneral || tile.depth_vo < 256;
    const int kept = is_kept ? first_row_of(warpgroup, arch::warp_idx() % 4, arch::lane_idx()) : 0;
    const auto first = [&] {
      if (is_kept) return kept;
      const int thread = arch::thread_idx_again() % kWarpgroup;
      return first_row_of(warpgroup, thread / 32, thread % 32);
    };
    Consumer<Config> consumer(params, storage, warpgroup);
    consumer.start_ping_pong();
    WorkReader reader(storage.work);
    Epilogue<Config> epilogue(params, warpgroup);
    float o[tile.depth_vo / 2];
    for (; reader.next(); reader.release()) {
      Row rows[2];
      float factors[2];
      const auto make = [&] { make_rows(params, reader.work(), first(), rows); };
      const auto finish = [&] { finish_rows(params, reader.work(), first(), rows); };
      const auto finish_all = [&] {
        finish();
        if (!reader.work().is_split()) epilogue.finish(reader.work(), rows, factors);
      };
      const bool has_keys =
          reader.work().walk.num_tiles > 0 && consumer.mainloop(reader, rows, o, make, finish_all);
      if (!has_keys) {
        make();
        finish();
      }
      const Work work = reader.work();  // loaded again, to free its registers in the mainloop
      const bool is_whole =
          !work.is_split() || SplitEpilogue<Config>(params, storage, warpgroup).run(work, rows, o);
      if (is_whole) {
        if (!has_keys || work.is_split()) epilogue.finish(work, rows, factors);
        epilogue.store(work, rows, factors, o, consumer.out_smem());
      }
      if (work.walk.num_tiles > 0) consumer.release_q();
    }
    consumer.finish();
  }

  // The warpgroups of latent rows: a warp of each has the same 16 of 64 rows. Both execute the same
  // code for what follows the products: it is fetched once.
  static PAGODA_DEVICE void consume_latent(const Params& params, Storage& storage) {
    using Products = LatentProducts<Config>;
    const int part = arch::warpgroup_idx() - 1;  // of O's columns
    const arch::Role role(part == 0 ? "scores" : "values");
    const int first = first_row_of(0, arch::warp_idx() % 4, arch::lane_idx());
    LatentState<Config> state(storage, part);
    WorkReader reader(storage.work);
    Epilogue<Config> epilogue(params, part);
    float o[tile.out_columns() / 2];
    for (; reader.next(); reader.release()) {
      Row rows[2];
      const auto make = [&] { make_rows(params, reader.work(), first, rows); };
      const bool has_keys = reader.work().walk.num_tiles > 0;
      if (!has_keys) {
        make();
      } else if (part == 0) {
        LatentScores<Config>(params, storage, state).mainloop(reader, rows, o, make);
      } else {
        LatentValues<Config>(params, storage, state).mainloop(reader, rows, o, make);
      }
      const Work work = reader.work();  // loaded again, to free its registers in the mainloop
      if (!work.is_split() || SplitEpilogue<Config>(params, storage, part).run(work, rows, o)) {
        float factors[2];
        epilogue.finish(work, rows, factors);
        epilogue.store(work, rows, factors, o, Products::out_smem(storage, part));
      }
      if (has_keys && !Products::releases_q_early(params)) {
        arch::syncwarp();  // every lane has read its O there
        Products::release_q(storage);
      }
    }
  }

  // A consumer warpgroup with mma.sync: a warp has all 16 rows and a quarter of the keys.
  static PAGODA_DEVICE void consume_by_warps(const Params& params, Storage& storage) {
    const arch::Role role("consume");
    const int first = arch::lane_idx() / 4;
    WarpConsumer<Config> consumer(params, storage);
    WorkReader reader(storage.work);
    for (; reader.next(); reader.release()) {
      Row rows[2];
      float o[tile.depth_vo / 2];
      make_rows(params, reader.work(), first, rows);
      const mask::KVTileRange walk = reader.work().walk;
      if (walk.num_tiles > 0) {
        consumer.mainloop(reader, walk, rows, o);
      } else {
        consumer.skip();
      }
      const Work work = reader.work();  // loaded again, to free its registers in the mainloop
      finish_rows(params, work, first, rows);
      WarpEpilogue<Config>(params, storage).run(work, rows, o);
    }
  }

  // Of the two rows of a lane, which are 8 apart.
  static PAGODA_DEVICE int first_row_of(int warpgroup, int warp, int lane) {
    return warpgroup * kRows + 16 * warp + lane / 4;
  }

  static PAGODA_DEVICE void make_rows(const Params& params, const Work& work, int first,
                                      Row (&rows)[2]) {
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) rows[r] = make_row<Config>(params, work, first + 8 * r);
  }

  // Makes the rows again, so that the mainloop need not keep them in registers, and sums each over
  // the four lanes that share it.
  static PAGODA_DEVICE void finish_rows(const Params& params, const Work& work, int first,
                                        Row (&rows)[2]) {
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const auto online = rows[r].online;
      rows[r] = make_row<Config>(params, work, first + 8 * r);
      rows[r].online = online;
      rows[r].sums = softmax::Sums{online.sums().pivot, sum_of_quad(online.sums().sum)};
      rows[r].max = online.max();
    }
  }
};

}  // namespace pagoda::mha_sm90
