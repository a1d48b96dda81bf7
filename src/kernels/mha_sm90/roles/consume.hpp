// consume: the loops of consumer warpgroups over work tiles, each a mainloop and an epilogue.
#pragma once

#include <cstdint>

#include "arch/thread.hpp"
#include "kernels/mha_sm90/roles/consumer.hpp"
#include "kernels/mha_sm90/roles/epilogue.hpp"
#include "kernels/mha_sm90/roles/split_epilogue.hpp"
#include "kernels/mha_sm90/roles/warp_epilogue.hpp"

namespace pagoda::mha_sm90 {

// The two rows of a thread, 8 apart.
template <class Config>
PAGODA_DEVICE void make_rows(const AttentionParams& params, const Work& work, int first,
                             Row<Config> (&rows)[2]) {
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) rows[r] = make_row<Config>(params, work, first + 8 * r);
}

// Makes the rows again, so that the mainloop need not keep them in registers, and sums each over
// the four lanes that share it.
template <class Config>
PAGODA_DEVICE void finish_rows(const AttentionParams& params, const Work& work, int first,
                               Row<Config> (&rows)[2]) {
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const auto online = rows[r].online;
    rows[r] = make_row<Config>(params, work, first + 8 * r);
    rows[r].online = online;
    rows[r].sums = softmax::Sums{online.sums().pivot, sum_of_quad(online.sums().sum)};
    rows[r].max = online.max();
  }
}

// The loop with wgmma: a warp has 16 of its warpgroup's 64 rows. Where Consumer::starts_early, O of
// a work tile is staged, and its TMA store issued, under the first product of the next one.
//
// What nvcc 13.0 makes of it hangs on little. It keeps the state of the rings in uniform registers,
// without which a KV tile has 50 instructions more, only if no branch on the epilogue's results
// changes it; and O in registers only if it is a variable of one round, hence the first start()
// outside the loop. As a class with members this loop spills with O of 256 columns.
template <class Config>
PAGODA_DEVICE void consume(const kernels::ParamsOf<Config>& params, Storage<Config>& storage) {
  using Scores = typename Consumer<Config>::Scores;
  using Rows = Row<Config>[2];
  using Output = float[Config::tile.depth_vo / 2];
  constexpr bool starts_early = Consumer<Config>::starts_early;
  // A constant where there is one: registers are few.
  const int warpgroup = Config::tile.num_consumers == 1 ? 0 : arch::warpgroup_idx() - 1;
  const int first = warpgroup * kRows + 16 * (arch::warp_idx() % 4) + arch::lane_idx() / 4;
  Consumer<Config> consumer(params, storage, warpgroup);
  consumer.start_ping_pong();
  WorkReader reader(storage.work);
  Epilogue<Config> epilogue(params, warpgroup);
  const auto make = [&](Rows& rows) { make_rows<Config>(params, reader.work(), first, rows); };
  // The mainloop, and of split row tiles the partial results and their merge. Calls store() if `o`
  // and `factors` are those of whole rows, and returns whether they are.
  const auto add_keys = [&](bool has_keys, Scores& s, Rows& rows, Output& o, float(&factors)[2],
                            const auto& store) __attribute__((always_inline)) {
    const auto finish = [&] { finish_rows<Config>(params, reader.work(), first, rows); };
    if (has_keys) {
      if constexpr (!starts_early) consumer.first_product(s, [&] { make(rows); });
      consumer.mainloop(reader, s, rows, o, [&] {
        finish();
        if (!reader.work().is_split()) epilogue.finish(reader.work(), rows, factors);
      });
    } else {
      if constexpr (!starts_early) make(rows);
      consumer.skip(reader);
      finish();
    }
    const Work work = reader.work();  // loaded again, to free its registers in the mainloop
    const bool is_whole =
        !work.is_split() || SplitEpilogue<Config>(params, storage, warpgroup).run(work, rows, o);
    if (is_whole) {
      if (!has_keys || work.is_split()) epilogue.finish(work, rows, factors);
      store(work);
    }
    if constexpr (!starts_early) {
      if (work.walk.num_tiles > 0) consumer.release_q();
    }
    return is_whole;
  };

  if constexpr (!starts_early) {
    for (; reader.next(); reader.release()) {
      Scores s;
      Rows rows;
      Output o;
      float factors[2];
      add_keys(consumer.start(reader), s, rows, o, factors, [&](const Work& work) {
        epilogue.store(work, rows, factors, o, consumer.out_smem());
      });
    }
  } else if (reader.next()) {
    Scores s;
    Rows rows;
    bool has_keys = consumer.start(reader);
    if (has_keys) {
      consumer.first_product(s, [&] { make(rows); });
    } else {
      make(rows);
    }
    for (;;) {
      Output o;
      float factors[2];
      const bool is_whole = add_keys(has_keys, s, rows, o, factors, [&](const Work& work) {
        if (epilogue.is_stored_by_tma(work)) return;
        epilogue.store_by_threads(work, rows, factors, o, consumer.out_smem());
      });
      const auto staging = consumer.out_smem();
      reader.step();
      const auto store = [&] {
        const Work previous = reader.previous();
        if (is_whole && epilogue.is_stored_by_tma(previous)) {
          epilogue.store_by_tma(previous, factors, o, staging);
        }
      };
      if (!reader.next()) {
        store();
        break;
      }
      has_keys = consumer.start(reader);
      if (has_keys) {
        consumer.first_product(s, [&] {
          store();
          make(rows);
        });
      } else {
        store();
        make(rows);
      }
      if (reader.previous().walk.num_tiles > 0) consumer.release_q();
      reader.release_previous();
    }
  }
  consumer.finish();
}

// The loop with mma.sync: a warp has all 16 rows and a quarter of the keys.
template <class Config>
PAGODA_DEVICE void consume_by_warps(const kernels::ParamsOf<Config>& params,
                                    Storage<Config>& storage) {
  const int first = arch::lane_idx() / 4;
  WarpConsumer<Config> consumer(params, storage);
  WorkReader reader(storage.work);
  for (; reader.next(); reader.release()) {
    Row<Config> rows[2];
    float o[Config::tile.depth_vo / 2];
    make_rows<Config>(params, reader.work(), first, rows);
    const mask::KVTileRange walk = reader.work().walk;
    if (walk.num_tiles > 0) {
      consumer.mainloop(reader, walk, rows, o);
    } else {
      consumer.skip();
    }
    const Work work = reader.work();  // loaded again, to free its registers in the mainloop
    finish_rows<Config>(params, work, first, rows);
    WarpEpilogue<Config>(params, storage).run(work, rows, o);
  }
}

}  // namespace pagoda::mha_sm90
