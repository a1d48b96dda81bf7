// Kernel: attention by the FMA units, for what no kernel with matrix cores serves. A CTA has one
// row tile, its warps take the KV tiles in turn. README.md follows one call through it.
#pragma once

#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "kernels/common/grid_work.hpp"
#include "kernels/mha_simt/epilogue.hpp"
#include "kernels/mha_simt/mainloop.hpp"
#include "schedule/tile_scheduler.hpp"

namespace pagoda::mha_simt {

// `Config`: struct with tile. `least_arch`: compute capability, 10 * major + minor.
template <class Config_, int least_arch>
struct Kernel {
  using Config = Config_;
  using Params = kernels::AttentionParams;
  using Storage = mha_simt::Storage<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kThreads = tile.threads();
  static constexpr int kWarpSize = tile.warp_size;
  static constexpr int kClusterSize = 1, kMinArch = least_arch;
  static_assert(sizeof(Storage) <= 64 << 10, "what a workgroup of gfx942 may have");
  static_assert(tile.depth_qk % TileConfig::kChunk == 0 && tile.depth_vo % TileConfig::kChunk == 0);

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    using Scheduler = schedule::TransientScheduler;
    kernels::GridWork<Config, Scheduler> tiles(params, {params.grid, arch::block_idx().x});
    kernels::Work work;
    if (!tiles.next(work)) return;
    load_q(params, work, storage);
    arch::syncthreads();  // Q is stored
    typename Mainloop<Config>::OnlineRows online;
    typename Mainloop<Config>::Output o;
    PAGODA_UNROLL
    for (auto& chunk : o) {
      PAGODA_UNROLL
      for (auto& row : chunk) {
        PAGODA_UNROLL
        for (float& column : row) column = 0;
      }
    }
    Mainloop<Config> mainloop(params, work, storage);
    mainloop.run(online, o);
    Epilogue<Config>(params, work, storage).run(mainloop.first_row(), online, o);
  }

 private:
  // Q as fp32, zeros past the head dim and in rows without a query.
  static PAGODA_DEVICE void load_q(const Params& params, const kernels::Work& work,
                                   Storage& storage) {
    const int32_t num_rows = work.valid_tokens * work.num_heads;
    const int32_t num_columns = core::align_up(params.dim_qk, TileConfig::kChunk);
    for (int32_t row = arch::thread_idx() / kWarpSize; row < tile.BM; row += TileConfig::kWarps) {
      const auto [token, head] =
          kernels::token_and_head<kernels::RowMap::kPacked>(work, row < num_rows ? row : 0);
      const int64_t from = params.q_rows.offset(work.sequence, work.memory_row + token, head);
      const int32_t dim = row < num_rows ? params.dim_qk : 0;
      with_dtype(params.q_dtype, [&]<DType type>() {
        for (int32_t column = arch::lane_idx(); column < num_columns; column += kWarpSize) {
          const float value =
              column < dim ? load_element<type>(params.q_data, from + column) : 0.0F;
          arch::store(storage.rows.at(row * Storage::kRowStride + column), value);
        }
      });
    }
  }
};

}  // namespace pagoda::mha_simt
