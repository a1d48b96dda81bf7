// Named barriers and mbarriers of one CTA.
#pragma once

#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

// Warps 0 and 1 exchange values through barrier 1, warps 2 and 3 through barrier 2; then warp 0
// produces for warp 1 and warp 2 for warp 3: full barrier 3 + pair, empty barrier 5 + pair.
struct NamedBarriers {
  static constexpr int kRounds = 8;
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<uint32_t, kThreads> values;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx(), pair = warp_idx() / 2, full = 3 + pair, empty = 5 + pair;
    store(s.values.at(i), load(p.in + i));
    named_barrier_sync(1 + pair, 64);
    uint32_t value = load(s.values.at(i ^ 32));
    syncthreads();
    if (warp_idx() % 2 == 0) {
      for (int round = 0; round < kRounds; ++round) {
        if (round > 0) named_barrier_sync(empty, 64);
        store(s.values.at(i), value);
        value = value * 3 + 1;
        named_barrier_arrive(full, 64);
      }
    } else {
      for (int round = 0; round < kRounds; ++round) {
        named_barrier_sync(full, 64);
        value = value * 7 + load(s.values.at(i - 32));
        if (round + 1 < kRounds) named_barrier_arrive(empty, 64);
      }
    }
    store(p.out + i, value);
  }
};

// The results of test_wait and try_wait to one thread, step by step.
struct MBarrierAnswers {
  static constexpr int kAnswers = 14;
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    MBarrier barrier;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    if (thread_idx() != 0) return;
    int answers = 0;
    const auto record = [&](bool answer) { store(p.out + answers++, answer ? 1U : 0U); };
    s.barrier.init(3);
    record(s.barrier.test_wait(1));  // a fresh barrier: the phase before the first is complete
    record(s.barrier.test_wait(0));
    s.barrier.arrive();
    record(s.barrier.test_wait(0));
    s.barrier.arrive(2);
    record(s.barrier.test_wait(0));
    record(s.barrier.try_wait(0));
    record(s.barrier.test_wait(1));
    s.barrier.arrive_if(0);
    s.barrier.arrive(2);
    record(s.barrier.test_wait(1));
    s.barrier.arrive_if(5);
    record(s.barrier.test_wait(1));
    record(s.barrier.test_wait(0));
    s.barrier.wait(1);
    s.barrier.invalidate();
    s.barrier.init(1);
    record(s.barrier.test_wait(0));
    s.barrier.arrive();
    record(s.barrier.test_wait(0));
    s.barrier.arrive();
    record(s.barrier.test_wait(1));
    record(s.barrier.test_wait(0));
    record(s.barrier.data().address() % 8 == 0);
  }
};

// One warp fills a ring of two stages, three warps consume it, over many phases.
struct MBarrierRing {
  static constexpr int kRounds = 21, kStages = 2;
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<uint32_t, kStages * 32> values;
    MBarrier full[kStages], empty[kStages];
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int lane = lane_idx();
    if (thread_idx() == 0) {
      for (int stage = 0; stage < kStages; ++stage) {
        s.full[stage].init(32);
        s.empty[stage].init(3);
      }
      fence_mbarrier_init();
    }
    syncthreads();
    uint32_t value = load(p.in + thread_idx());
    for (int round = 0; round < kRounds; ++round) {
      const int stage = round % kStages;
      const auto parity = static_cast<uint32_t>(round / kStages % 2);
      if (warp_idx() == 0) {
        s.empty[stage].wait(parity ^ 1);  // the ring starts empty
        store(s.values.at(stage * 32 + lane), value);
        value = value * 3 + 1;
        s.full[stage].arrive();
      } else {
        s.full[stage].wait(parity);
        value = value * 7 + load(s.values.at(stage * 32 + (lane + warp_idx()) % 32));
        syncwarp();  // every lane has read
        s.empty[stage].arrive_if(elect_one());
      }
    }
    store(p.out + thread_idx(), value);
  }
};

inline void add_barrier_cases(Cases& cases) {
  const auto input = from_bytes<uint32_t>(random_bytes(128 * 4, 31));
  std::vector<uint32_t> expected(128);
  for (size_t i = 0; i < 128; ++i) {
    uint32_t value = input[i ^ 32];
    if (i / 32 % 2 == 0) {
      for (int round = 0; round < NamedBarriers::kRounds; ++round) value = value * 3 + 1;
    } else {
      uint32_t fed = input[i];  // the producer starts with what this thread stored
      for (int round = 0; round < NamedBarriers::kRounds; ++round) {
        value = value * 7 + fed;
        fed = fed * 3 + 1;
      }
    }
    expected[i] = value;
  }
  cases.push_back(make_case<NamedBarriers>("named_barrier/sync and arrive", {}, to_bytes(input),
                                           poison(128 * 4), to_bytes(expected),
                                           in_and_out<NamedBarriers>()));

  const std::vector<uint32_t> answers = {1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1};
  cases.push_back(make_case<MBarrierAnswers>("mbarrier/answers", {}, poison(4),
                                             poison(answers.size() * 4), to_bytes(answers),
                                             in_and_out<MBarrierAnswers>()));

  for (size_t i = 0; i < 128; ++i) {
    uint32_t value = input[i], fed = input[(i % 32 + i / 32) % 32];
    for (int round = 0; round < MBarrierRing::kRounds; ++round) {
      value = i < 32 ? value * 3 + 1 : value * 7 + fed;
      fed = fed * 3 + 1;
    }
    expected[i] = value;
  }
  cases.push_back(make_case<MBarrierRing>("mbarrier/ring over many phases", {}, to_bytes(input),
                                          poison(128 * 4), to_bytes(expected),
                                          in_and_out<MBarrierRing>()));
}

}  // namespace pagoda::primitives
