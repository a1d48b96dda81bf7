// Key shares: the key tiles of a whole batch cut into equal parts, one a CTA, from lengths that lie on
// the device. No launch and no memory besides: every CTA adds up the batch for itself.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"
#include "kernels/attention/work.hpp"

namespace pagoda::kernel {

struct ShareStorage {
  arch::SharedArray<int32_t, 16> warp_sums;
  arch::SharedArray<int32_t, 5> start;  // a ShareStart

  PAGODA_DEVICE ShareStart load() {
    return {arch::load(start.at(0)), arch::load(start.at(1)), arch::load(start.at(2)),
            arch::load(start.at(3)), arch::load(start.at(4))};
  }
  PAGODA_DEVICE void store(const ShareStart& from) {
    arch::store(start.at(0), from.begin);
    arch::store(start.at(1), from.end);
    arch::store(start.at(2), from.share_tiles);
    arch::store(start.at(3), from.sequence);
    arch::store(start.at(4), from.sequence_begin);
  }
};

// Sum of `value` over the threads of the CTA before this one, and over all. Every thread calls.
template <int threads>
PAGODA_DEVICE int32_t sum_before(int32_t value, int32_t& total, ShareStorage& storage) {
  constexpr int warps = threads / 32;
  const int lane = arch::lane_idx(), warp = arch::warp_idx();
  int32_t inclusive = value;
  PAGODA_UNROLL
  for (int step = 1; step < 32; step *= 2) {
    const int32_t below = arch::shuffle_up(inclusive, step);
    if (lane >= step) inclusive += below;
  }
  arch::syncthreads();  // the sums of the round before are read
  if (lane == 31) arch::store(storage.warp_sums.at(warp), inclusive);
  arch::syncthreads();
  int32_t before = 0;
  total = 0;
  PAGODA_UNROLL
  for (int w = 0; w < warps; ++w) {
    const int32_t sum = arch::load(storage.warp_sums.at(w));
    if (w < warp) before += sum;
    total += sum;
  }
  return before + inclusive - value;
}

// Leaves the CTA's share in storage.start. Every thread calls.
template <class Config>
PAGODA_DEVICE void find_share(const AttentionParams& params, ShareStorage& storage) {
  constexpr int threads = Config::tile.threads();
  const int32_t batch = params.sequences.batch;
  const int thread = arch::thread_idx();
  const auto tiles_of = [&params, batch](int32_t b) {
    return b < batch ? sequence_tiles<Config>(params, b).tiles() : 0;
  };
  const int32_t first_tiles = tiles_of(thread);  // of the first round; kept
  int32_t total = 0;
  for (int32_t round = 0; round < batch; round += threads) {
    int32_t sum = 0;
    sum_before<threads>(round == 0 ? first_tiles : tiles_of(round + thread), sum, storage);
    total += sum;
  }
  const int32_t ctas = arch::grid_dim().x;
  int32_t share = (total - 1) / ctas + 1;
  if (share < params.min_share_tiles) share = params.min_share_tiles;
  const int32_t begin = arch::block_idx().x * share;
  const int32_t end = begin < total - share ? begin + share : total;

  int32_t done = 0;
  for (int32_t round = 0; round < batch; round += threads) {
    const int32_t tiles = round == 0 ? first_tiles : tiles_of(round + thread);
    int32_t sum = 0;
    const int32_t before = done + sum_before<threads>(tiles, sum, storage);
    if (before <= begin && begin < before + tiles) {
      arch::store(storage.start.at(3), round + thread);
      arch::store(storage.start.at(4), before);
    }
    done += sum;
  }
  if (thread == 0) {
    const bool is_empty = begin >= total;
    arch::store(storage.start.at(0), is_empty ? 0 : begin);
    arch::store(storage.start.at(1), is_empty ? 0 : end);
    arch::store(storage.start.at(2), share);
    if (is_empty) {
      arch::store(storage.start.at(3), 0);
      arch::store(storage.start.at(4), 0);
    }
  }
  arch::syncthreads();
}

}  // namespace pagoda::kernel
