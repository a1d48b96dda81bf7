// Where each CTA starts in the stream-K partition (stream_k.hpp), from lengths in device memory.
// Every CTA sums up the batch for itself: no launch and no memory besides.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"
#include "kernels/common/shared_value.hpp"
#include "kernels/common/stream_k.hpp"

namespace pagoda::kernels {

struct StreamKStorage {
  arch::SharedArray<int32_t, 16> warp_sums;
  arch::SharedArray<int32_t, 2> first_tiles;  // of sequence 0: row tiles, KV tiles of each
  SharedValue<StreamKStart> start;
};

// Of `value` over the lanes up to this one; every lane of a warp calls it.
template <int warp_size = 32>
PAGODA_DEVICE int32_t inclusive_sum_of_warp(int32_t value) {
  const int lane = arch::lane_idx();
  PAGODA_UNROLL
  for (int step = 1; step < warp_size; step *= 2) {
    const int32_t below = arch::shuffle_up(value, step);
    if (lane >= step) value += below;
  }
  return value;
}

// Exclusive prefix sum of `value` over the threads of the CTA, and its total. Every thread calls
// it. A syncthreads must stand between two calls: warp_sums is read until a call returns.
template <int threads, int warp_size>
PAGODA_DEVICE int32_t sum_before(int32_t value, int32_t& total, StreamKStorage& storage) {
  constexpr int warps = threads / warp_size;
  const int warp = arch::warp_idx();
  const int32_t inclusive = inclusive_sum_of_warp<warp_size>(value);
  if (arch::lane_idx() == warp_size - 1) arch::store(storage.warp_sums.at(warp), inclusive);
  arch::syncthreads();  // the sums of all warps are stored
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

// At least one, where there are none as well.
PAGODA_DEVICE int32_t tiles_of_cta(int32_t total, int32_t ctas) {
  return total > 0 ? arch::quotient(total - 1, ctas) + 1 : 1;
}

// What a CTA that has parts of row tiles takes besides its KV tiles, in KV tiles; 0: not measured.
// Latent rows: a second work tile, partial results of 128 KiB and their merge take 20 us and more
// (mha_sm90/notes/latent.md).
template <class Config>
constexpr int32_t kTilesOfSplit = has_head_tile_ctas<Config>() ? 12 : 0;

// The KV tiles of an interval, at least `tiles_per_cta`, in a batch whose row tiles all have
// `kv_tiles`: a multiple of them, which splits no row tile, if that takes no longer than splits
// (`split_tiles`: kTilesOfSplit). Where these were not measured, if it leaves at most a sixteenth
// of the CTAs without work.
PAGODA_DEVICE int32_t whole_row_tiles(int32_t tiles_per_cta, int32_t row_tiles, int32_t kv_tiles,
                                      int32_t ctas, int32_t split_tiles = 0) {
  const int32_t of_cta = arch::quotient(tiles_per_cta - 1, kv_tiles) + 1;
  if (split_tiles > 0) {
    const int32_t whole = of_cta * kv_tiles;
    return whole - tiles_per_cta <= split_tiles ? whole : tiles_per_cta;
  }
  const int32_t used = arch::quotient(row_tiles - 1, of_cta) + 1;
  return int64_t{16} * used >= int64_t{15} * ctas ? of_cta * kv_tiles : tiles_per_cta;
}

// find_stream_k_start for a partition in which no CTA takes parts of two row tiles: each counts as
// a multiple of tiles_per_cta (SequenceTiles::padded). For a batch with a sequence a thread. False:
// there are no more CTAs than row tiles.
template <class Config, int warp_size>
PAGODA_DEVICE bool find_row_tile_start(const AttentionParams& params, StreamKStorage& storage) {
  constexpr int threads = Config::tile.threads();
  const int thread = arch::thread_idx();
  const int32_t ctas = stream_k_count<Config>(params);
  SequenceTiles tiles;
  if (thread < params.sequences.batch) tiles = sequence_tiles<Config>(params, thread);
  int32_t before = 0;
  const auto sum = [&](int32_t value) {
    int32_t total = 0;
    before = sum_before<threads, warp_size>(value, total, storage);
    arch::syncthreads();  // every thread has read the warp sums
    return total;
  };
  const int32_t row_tiles = sum(tiles.row_tiles);
  if (row_tiles >= ctas) return false;
  const int32_t total = sum(tiles.tiles());
  int32_t per_cta = tiles_of_cta(total, ctas);
  int32_t padded_total = sum(tiles.padded(per_cta).tiles());
  if (padded_total > ctas * per_cta) {  // padding takes less than a CTA of each row tile
    per_cta = tiles_of_cta(total, ctas - row_tiles);
    padded_total = sum(tiles.padded(per_cta).tiles());
  }
  tiles = tiles.padded(per_cta);
  const int32_t begin = stream_k_index<Config>(params) * per_cta;
  if (begin >= padded_total && thread == 0) storage.start.store({.tiles_per_cta = per_cta});
  if (before <= begin && begin < before + tiles.tiles()) {
    storage.start.store({begin, begin + per_cta, per_cta, thread, before, tiles});
  }
  arch::syncthreads();  // the start is stored
  return true;
}

// Stores the CTA's StreamKStart in storage.start. Every thread calls it; it ends with a
// syncthreads, after which every thread may load the start. Where a pair of CTAs computes each work
// tile, the caller's cluster barrier takes its place.
template <class Config, int warp_size = 32>
PAGODA_DEVICE void find_stream_k_start(const AttentionParams& params, StreamKStorage& storage) {
  constexpr int threads = Config::tile.threads();
  const int32_t batch = params.sequences.batch;
  const int thread = arch::thread_idx();
  const auto tiles_of = [&params, batch](int32_t b) {
    return b < batch ? sequence_tiles<Config>(params, b) : SequenceTiles{};
  };
  // A round has a sequence a thread; most batches are one round.
  SequenceTiles tiles = tiles_of(thread);
  if (thread == 0) {
    arch::store(storage.first_tiles.at(0), tiles.row_tiles);
    arch::store(storage.first_tiles.at(1), tiles.kv_tiles);
  }
  int32_t total = 0;
  int32_t before = sum_before<threads, warp_size>(tiles.tiles(), total, storage);
  int32_t done = total;  // tiles of the rounds up to this one
  PAGODA_NO_UNROLL
  for (int32_t round = threads; round < batch; round += threads) {
    int32_t sum = 0;
    arch::syncthreads();  // every thread has read the warp sums of the previous round
    sum_before<threads, warp_size>(tiles_of(round + thread).tiles(), sum, storage);
    total += sum;
  }
  const int32_t ctas = stream_k_count<Config>(params);
  int32_t tiles_per_cta = tiles_of_cta(total, ctas);
  const int64_t row_tiles = int64_t{batch} * arch::load(storage.first_tiles.at(0));
  const int32_t kv_tiles = arch::load(storage.first_tiles.at(1));
  if (row_tiles > 0 && row_tiles * kv_tiles == total && total < 1 << 30) {
    tiles_per_cta = whole_row_tiles(tiles_per_cta, static_cast<int32_t>(row_tiles), kv_tiles, ctas,
                                    kTilesOfSplit<Config>);
  }
  const int32_t begin = stream_k_index<Config>(params) * tiles_per_cta;
  const int32_t end = begin < total - tiles_per_cta ? begin + tiles_per_cta : total;
  if (begin >= total && thread == 0) storage.start.store({.tiles_per_cta = tiles_per_cta});

  // The thread that has the sequence of the CTA's first tile stores.
  PAGODA_NO_UNROLL
  for (int32_t round = 0;;) {
    if (before <= begin && begin < before + tiles.tiles()) {
      storage.start.store({begin, end, tiles_per_cta, round + thread, before, tiles});
    }
    round += threads;
    if (round >= batch) break;
    int32_t sum = 0;
    tiles = tiles_of(round + thread);
    arch::syncthreads();  // every thread has read the warp sums of the previous round
    before = done + sum_before<threads, warp_size>(tiles.tiles(), sum, storage);
    done += sum;
  }
  if constexpr (ctas_of_tile<Config>() == 1) arch::syncthreads();  // the start is stored
}

// Of the lanes of a warp; every lane calls it.
PAGODA_DEVICE int32_t sum_of_warp(int32_t value) {
  return static_cast<int32_t>(arch::reduce_add(static_cast<uint32_t>(value)));
}

// The start of CTA `index` in a partition of `total` KV tiles, `tiles_per_cta` each, by one warp:
// every lane gets it.
template <class Config>
PAGODA_DEVICE StreamKStart stream_k_start_of_warp(const AttentionParams& params, int32_t index,
                                                  int32_t tiles_per_cta, int32_t total) {
  const int32_t batch = params.sequences.batch, lane = arch::lane_idx();
  StreamKStart start{.tiles_per_cta = tiles_per_cta};
  start.begin = start.end = index * tiles_per_cta;
  if (start.begin >= total) return start;
  start.end = start.begin < total - tiles_per_cta ? start.begin + tiles_per_cta : total;
  int32_t done = 0;  // tiles of the rounds before
  PAGODA_NO_UNROLL
  for (int32_t first = 0; first < batch; first += 32) {
    const int32_t b = first + lane;
    const int32_t tiles = b < batch ? sequence_tiles<Config>(params, b).tiles() : 0;
    const int32_t before = done + inclusive_sum_of_warp(tiles) - tiles;
    const bool holds =
        before <= start.begin && start.begin < before + tiles;  // in one lane at most
    if (arch::any(holds)) {
      start.sequence = sum_of_warp(holds ? b : 0);
      start.sequence_begin = sum_of_warp(holds ? before : 0);
      break;
    }
    done += sum_of_warp(tiles);
  }
  start.tiles = sequence_tiles<Config>(params, start.sequence);
  return start;
}

}  // namespace pagoda::kernels
