// Thread, CTA and grid indices, and warp-wide operations.
#pragma once

#include <bit>

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

struct ThreadIndices {
  static constexpr int kFields = 10;
  struct Params {
    arch::GlobalPtr<const int32_t> in;
    arch::GlobalPtr<int32_t> out;  // [CTA, kThreads, kFields]
  };
  static constexpr int kThreads = 256, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const Dim3 cta = block_idx(), grid = grid_dim();
    const int linear = (cta.z * grid.y + cta.y) * grid.x + cta.x;
    const arch::GlobalPtr<int32_t> out = p.out + (linear * kThreads + thread_idx()) * kFields;
    store(out + 0, thread_idx());
    store(out + 1, lane_idx());
    store(out + 2, warp_idx());
    store(out + 3, warpgroup_idx());
    store(out + 4, cta.x);
    store(out + 5, cta.y);
    store(out + 6, cta.z);
    store(out + 7, grid.x);
    store(out + 8, grid.y);
    store(out + 9, grid.z);
  }
};

struct WarpOperations {
  static constexpr int kRows = 19;
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [64]
    arch::GlobalPtr<uint32_t> out;       // [kRows, 64]
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const uint32_t value = load(p.in + thread_idx());
    int row = 0;
    const auto record = [&](uint32_t result) {
      store(p.out + row * kThreads + thread_idx(), result);
      ++row;
    };
    record(shuffle(value, static_cast<int>(value % 32)));
    record(shuffle(value, 17));
    record(static_cast<uint32_t>(shuffle(static_cast<float>(value % 1000), lane_idx() ^ 9)));
    for (int mask = 1; mask < 32; mask *= 2) record(shuffle_xor(value, mask));
    record(shuffle_up(value, 1));
    record(shuffle_up(value, 20));
    record(static_cast<uint32_t>(ballot((value & 1) != 0)));
    record(any(value == 0) ? 1 : 0);
    record(any((value & 1) != 0) ? 1 : 0);
    record(all(value != 0) ? 1 : 0);
    record(all((value & 1) != 0) ? 1 : 0);
    record(reduce_add(value));
    record(reduce_max(value));
    const auto elected = static_cast<uint32_t>(ballot(elect_one() != 0));
    record(elected != 0 && (elected & (elected - 1)) == 0 ? 1 : 0);
    record(static_cast<uint32_t>(ballot(true)));
  }
};

// Lanes of a warp exchange values through shared memory; only syncwarp orders the accesses.
struct SyncWarp {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<uint32_t, kThreads> values;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx(), next = i / 32 * 32 + (i + 1) % 32;
    uint32_t value = load(p.in + i);
    for (int round = 0; round < 5; ++round) {
      store(s.values.at(i), value);
      syncwarp();
      value = value * 5 + load(s.values.at(next));
      syncwarp();
    }
    if (lane_idx() < 16) {  // half of the warp
      store(s.values.at(i), value);
      syncwarp(0xFFFF);
      value ^= load(s.values.at(i ^ 3));
    }
    store(p.out + i, value);
  }
};

inline void add_thread_indices_case(Cases& cases) {
  const int x = 3, y = 2, z = 2;
  std::vector<int32_t> expected;
  for (int c = 0; c < x * y * z; ++c) {
    for (int t = 0; t < 256; ++t) {
      for (const int value : {t, t % 32, t / 32, t / 128, c % x, c / x % y, c / x / y, x, y, z}) {
        expected.push_back(value);
      }
    }
  }
  cases.push_back(make_case<ThreadIndices>("thread/indices", {x, y, z}, poison(4),
                                           poison(expected.size() * 4), to_bytes(expected),
                                           in_and_out<ThreadIndices>()));
}

inline void add_warp_operations_case(Cases& cases) {
  auto input = from_bytes<uint32_t>(random_bytes(64 * 4, 21));
  for (size_t i = 0; i < 32; ++i) input[32 + i] |= 1;  // the second warp: all odd
  std::vector<uint32_t> expected(WarpOperations::kRows * 64);
  for (size_t warp = 0; warp < 2; ++warp) {
    const uint32_t* v = &input[warp * 32];
    uint32_t odd = 0, sum = 0, largest = 0;
    for (size_t lane = 0; lane < 32; ++lane) {
      odd |= (v[lane] & 1) << lane;
      sum += v[lane];
      largest = std::max(largest, v[lane]);
    }
    for (size_t lane = 0; lane < 32; ++lane) {
      size_t row = 0;
      const auto record = [&](uint32_t value) { expected[row++ * 64 + warp * 32 + lane] = value; };
      record(v[v[lane] % 32]);
      record(v[17]);
      record(v[lane ^ 9] % 1000);
      for (size_t mask = 1; mask < 32; mask *= 2) record(v[lane ^ mask]);
      record(v[lane < 1 ? lane : lane - 1]);
      record(v[lane < 20 ? lane : lane - 20]);
      for (const uint32_t value :
           {odd, 0U, odd != 0 ? 1U : 0U, 1U, odd == ~0U ? 1U : 0U, sum, largest, 1U, ~0U}) {
        record(value);
      }
    }
  }
  cases.push_back(make_case<WarpOperations>("warp/operations", {}, to_bytes(input),
                                            poison(expected.size() * 4), to_bytes(expected),
                                            in_and_out<WarpOperations>()));
}

inline void add_sync_warp_case(Cases& cases) {
  const auto input = from_bytes<uint32_t>(random_bytes(64 * 4, 22));
  std::vector<uint32_t> values = input;
  for (int round = 0; round < 5; ++round) {
    const std::vector<uint32_t> before = values;
    for (size_t i = 0; i < 64; ++i) {
      values[i] = before[i] * 5 + before[i / 32 * 32 + (i + 1) % 32];
    }
  }
  std::vector<uint32_t> expected = values;
  for (size_t i = 0; i < 64; ++i) {
    if (i % 32 < 16) expected[i] = values[i] ^ values[i ^ 3];
  }
  cases.push_back(make_case<SyncWarp>("warp/syncwarp", {}, to_bytes(input), poison(64 * 4),
                                      to_bytes(expected), in_and_out<SyncWarp>()));
}

inline void add_warp_cases(Cases& cases) {
  add_thread_indices_case(cases);
  add_warp_operations_case(cases);
  add_sync_warp_case(cases);
}

}  // namespace pagoda::primitives
