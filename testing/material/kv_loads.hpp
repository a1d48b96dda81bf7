// The registers of all threads after a KVBuffer has loaded block tiles into them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"
#include "testing/material/kv_buffers.hpp"
#include "testing/material/kv_cache_case.hpp"

namespace pagoda::material {

inline constexpr uint32_t kUnloaded = 0xabababab;  // a word of a register stage without a load

// `loads` block tiles from block tile `first_step` on; then the registers of all threads.
template <class Buffer_, int loads_>
struct LoadKernel {
  using Buffer = Buffer_;
  static constexpr int loads = loads_;
  static constexpr int kVectors = kNumStages<Buffer> * Buffer::stage_vectors;  // of a thread
  struct Params {
    operand::KVSource source;
    operand::KeyRows keys;
    int32_t first_key, num_b_rows, first_step;
    arch::GlobalPtr<arch::Words<4>> out;  // [kThreads, kVectors]
    arch::GlobalPtr<int32_t> load_ids;    // [loads + 1]: load_tile_id before each load, and after
  };
  struct Storage {
    arch::SharedArray<typename Buffer::T, Buffer::smem_layout.size() * 8, 128> tile;
  };
  static constexpr int kThreads = kThreadsOf<Buffer>, kWarpSize = kWarpSizeOf<Buffer>;

  static PAGODA_DEVICE void run(const Params& params) {
    const int thread = arch::thread_idx();
    Buffer buffer(arch::shared_storage<Storage>().tile.data(), 0);
    for (arch::Words<4>& words : buffer.load_tile) {
      for (uint32_t& word : words.word) word = kUnloaded;
    }
    buffer.begin({params.source, params.keys, KVCacheCase::kSequence, params.first_key},
                 params.num_b_rows, params.first_step);
    for (int i = 0; i <= loads; ++i) {
      if (thread == 0) arch::store(params.load_ids + i, buffer.load_tile_id);
      if (i < loads) buffer.load_from_dram();
    }
    for (int i = 0; i < kVectors; ++i) {
      arch::store(params.out + (thread * kVectors + i), buffer.load_tile[i]);
    }
  }
};

struct LoadRun {
  std::vector<uint32_t> words;
  std::vector<int32_t> load_ids;
};
// What is reported is an exception.
template <class Kernel>
LoadRun load(const KVCacheCase& cache, int first_key, int num_b_rows, int first_step = 0) {
  LoadRun run{std::vector<uint32_t>(4UL * Kernel::kThreads * Kernel::kVectors),
              std::vector<int32_t>(Kernel::loads + 1, -1)};
  const emulator::Result result = emulator::launch<Kernel>(
      emulator::shape_of<Kernel>("load", {1}),
      {cache.source(), cache.keys(), first_key, num_b_rows, first_step,
       reinterpret_cast<arch::Words<4>*>(run.words.data()), run.load_ids.data()},
      cache.buffers({emulator::output("out", run.words.data(), run.words.size()),
                     emulator::output("ids", run.load_ids.data(), run.load_ids.size())}));
  if (!result.is_clean()) throw std::runtime_error(emulator::all_reports(result));
  return run;
}

}  // namespace pagoda::material
