// Key shares: the key tiles of a whole batch cut into equal parts, one a CTA, from lengths that lie on
// the device. No launch and no memory besides: every CTA adds up the batch for itself.
#pragma once

#include <cstdint>
#include <cstring>

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"
#include "kernels/common/work.hpp"

namespace pagoda::kernels {

struct ShareStorage {
  static constexpr int kWords = sizeof(ShareStart) / sizeof(int32_t);
  arch::SharedArray<int32_t, 16> warp_sums;
  arch::SharedArray<int32_t, kWords> start;  // a ShareStart

  PAGODA_DEVICE ShareStart load() {
    int32_t words[kWords];
    PAGODA_UNROLL
    for (int i = 0; i < kWords; ++i) words[i] = arch::load(start.at(i));
    ShareStart result;
    memcpy(&result, words, sizeof result);
    return result;
  }
  PAGODA_DEVICE void store(const ShareStart& from) {
    int32_t words[kWords];
    memcpy(words, &from, sizeof from);
    PAGODA_UNROLL
    for (int i = 0; i < kWords; ++i) arch::store(start.at(i), words[i]);
  }
};

// Sum of `value` over the threads of the CTA before this one, and over all. Every thread calls; all have
// read what a call before left.
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
    return b < batch ? sequence_tiles<Config>(params, b) : SequenceTiles{};
  };
  // A thread has one sequence of a round; most batches are one round.
  SequenceTiles tiles = tiles_of(thread);
  int32_t total = 0;
  int32_t before = sum_before<threads>(tiles.tiles(), total, storage);
  int32_t done = total;  // tiles of the rounds up to this one
  PAGODA_NO_UNROLL
  for (int32_t round = threads; round < batch; round += threads) {
    int32_t sum = 0;
    arch::syncthreads();  // the sums of the round before are read
    sum_before<threads>(tiles_of(round + thread).tiles(), sum, storage);
    total += sum;
  }
  const int32_t ctas = arch::grid_dim().x;
  const int32_t share = (total - 1) / ctas + 1;
  const int32_t begin = arch::block_idx().x * share;
  const int32_t end = begin < total - share ? begin + share : total;
  if (begin >= total && thread == 0) storage.store({.share_tiles = share});

  // Whoever has the sequence that holds the first tile writes.
  PAGODA_NO_UNROLL
  for (int32_t round = 0;;) {
    if (before <= begin && begin < before + tiles.tiles()) {
      storage.store({begin, end, share, round + thread, before, tiles});
    }
    round += threads;
    if (round >= batch) break;
    int32_t sum = 0;
    tiles = tiles_of(round + thread);
    arch::syncthreads();
    before = done + sum_before<threads>(tiles.tiles(), sum, storage);
    done += sum;
  }
  arch::syncthreads();
}

}  // namespace pagoda::kernels
