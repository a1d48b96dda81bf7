// Kernel: attention on KVBuffer, for GPUs without TMA. All threads of a CTA load, multiply and
// store together. docs/kernels/kv_buffer.md follows one call through it.
#pragma once

#include <type_traits>

#include "arch/debug.hpp"
#include "arch/thread.hpp"
#include "kernels/common/grid_work.hpp"
#include "kernels/common/kv_buffer/decode_work.hpp"
#include "kernels/common/kv_buffer/epilogue.hpp"
#include "kernels/common/kv_buffer/first_work.hpp"
#include "kernels/common/kv_buffer/load_q.hpp"
#include "kernels/common/kv_buffer/mainloop.hpp"
#include "kernels/common/stream_k.hpp"

namespace pagoda::kernels::kv_buffer {

// decode_mainloop.hpp and latent_mainloop.hpp, which a family includes that has kernels for
// decoding, and latent rows among them.
template <class Config>
class DecodeMainloop;
template <class Config>
class LatentMainloop;
// Of Config.
template <class Config>
using MainloopOf = std::conditional_t<
    Config::tile.is_latent(), LatentMainloop<Config>,
    std::conditional_t<Config::tile.is_decode, DecodeMainloop<Config>, Mainloop<Config>>>;

// `Config`: struct with T and tile. `least_arch`: compute capability, 10 * major + minor.
template <class Config_, int least_arch>
struct Kernel {
  using Config = Config_;
  using Params = ParamsOf<Config>;
  using Storage = kv_buffer::Storage<Config>;
  using Ops = Operands<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kThreads = tile.threads();
  static constexpr int kWarpSize = tile.warp_size;
  static constexpr int kClusterSize = tile.cluster, kMinArch = least_arch;
  // Decoding: that registers leave room for.
  static constexpr int kCtasPerSm =
      tile.is_decode ? decode_occupancy(tile.depth_qk).most : tile.ctas_per_sm;
  // What a CTA may have on every GPU from sm_80 on: 99 KB of the 100 KB of sm_86, sm_89 and sm_120.
  // On gfx942: 64 KB. Kernels of latent rows are for Hopper alone, whose CTAs may have 227 KB.
  static_assert(sizeof(Storage) <= (tile.is_latent()       ? 227
                                    : tile.warp_size == 64 ? 64
                                                           : 99) *
                                       1024);
  static_assert(!tile.is_latent() || least_arch == 90);
  static_assert(!tile.is_decode || tile.cluster > 1 ||
                decode_occupancy(tile.depth_qk).most * (sizeof(Storage) + 1024) <= 228 * 1024);

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if constexpr (tile.is_decode) {
      Work work;
      if (make_decode_work<Config>(params, work)) compute(params, storage, work);
    } else if constexpr (Ops::token_gen) {
      const bool has_only_one = params.ctas_per_kv_head > 0;
      if (!has_only_one) find_start(params, storage.stream_k);
      while (next(params, storage, [&](Work& work) {
        if (has_only_one) return make_only_work<Config>(params, work);
        StreamKWork<Config> work_tiles(params, storage.stream_k.start.load());
        const bool exists = work_tiles.next(work);
        storage.stream_k.start.store(work_tiles.rest());
        return exists;
      })) {
        compute(params, storage, storage.work.load());
        if (has_only_one) break;
      }
    } else {  // a work tile for each CTA
      const bool exists = next(params, storage, [&](Work& work) {
        using Scheduler = schedule::TransientScheduler;
        const Scheduler scheduler(grid_of<Config>(params),
                                  static_cast<int32_t>(arch::block_idx().x));
        return GridWork<Config, Scheduler>(params, scheduler).next(work);
      });
      if (exists) compute(params, storage, storage.work.load());
    }
  }

 private:
  static PAGODA_DEVICE void find_start(const Params& params, StreamKStorage& storage) {
    if (params.sequences.batch <= kThreads && !params.is_batch_invariant &&
        find_row_tile_start<Config, tile.warp_size>(params, storage)) {
      return;
    }
    find_stream_k_start<Config, tile.warp_size>(params, storage);
  }

  // One thread makes the next work tile for all. False: none is left. The epilogue has a barrier
  // after every thread's last look at the work tile before.
  template <class Make>
  static PAGODA_DEVICE bool next(const Params& params, Storage& storage, const Make& make) {
    if (arch::thread_idx() == 0) {
      Work work;
      if (!make(work)) work.num_tokens = 0;
      storage.work.store(work);
      if constexpr (Ops::is_async) {
        storage.whole_tiles.store(find_whole_tiles<Config>(params, work));
      }
    }
    arch::syncthreads();  // the work tile is stored, and shared memory is free for it
    return storage.work.load().num_tokens > 0;
  }

  static PAGODA_DEVICE void compute(const Params& params, Storage& storage, const Work& work) {
    const int warp = arch::thread_idx() / tile.warp_size;
    const int warp_m = warp / tile.warps_n, warp_n = warp % tile.warps_n;
    Online online[Ops::rows];
    typename Ops::Output o;
    PAGODA_UNROLL
    for (int m = 0; m < Ops::m_tiles; ++m) {
      PAGODA_UNROLL
      for (int n = 0; n < Ops::o_tiles; ++n) {
        PAGODA_UNROLL
        for (int e = 0; e < Ops::elements; ++e) o[m][n][e] = 0;
      }
    }
    if (work.walk.num_tiles > 0) {
      bool is_loading_q = false;
      if constexpr (tile.is_decode) {
        MainloopOf<Config>::Loads::load_q(params, storage, work);
      } else if constexpr (Ops::is_async) {
        is_loading_q = Ops::KVBuffers::template load_q<Config>(params, storage, work);
      }
      MainloopOf<Config> mainloop(params, storage, work, warp_m, warp_n);
      if constexpr (tile.cluster > 1) ClusterMerge<Config>(params, storage).begin(work);
      if constexpr (!tile.reads_q_directly) {
        if constexpr (Ops::is_async && Ops::token_gen && !tile.is_decode) {
          if (!is_loading_q) call_load_q<Config>(params, storage);
        } else if (!is_loading_q && !tile.is_decode) {
          load_q<Config>(params, storage, work);
        }
      }
      mainloop.run(online, o);
    } else if constexpr (tile.cluster > 1) {
      ClusterMerge<Config>(params, storage).begin(work);
    }
    // Loaded again, to free its registers in the mainloop.
    const Work rest = tile.is_decode ? work : storage.work.load();
    Epilogue<Config>(params, storage, warp_m, warp_n).run(rest, online, o);
  }
};

}  // namespace pagoda::kernels::kv_buffer
