// Register budgets of roles, and launches that depend on one another.
#pragma once

#include "arch/grid_dependency.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/register_budget.hpp"
#include "arch/thread.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

// One warpgroup releases registers, two acquire them and need them: 200 live values a thread.
struct RegisterBudgets {
  static constexpr int kValues = 200;
  struct Params {
    arch::GlobalPtr<const float> in;  // [kThreads + kValues]
    arch::GlobalPtr<float> out;       // [kThreads]
  };
  static constexpr int kThreads = 384, kClusterSize = 1, kMinArch = 90;
  static constexpr int kRegisters = 168;  // 64 Ki registers / 384 threads, a multiple of 8
  struct Storage {
    SharedArray<float, kThreads + kValues> values;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx();
    if (warpgroup_idx() == 0) {
      register_budget_decrease<40>();
      for (int j = i; j < kThreads + kValues; j += 128) store(s.values.at(j), load(p.in + j));
      sync_all();
      store(p.out + i, load(s.values.at(i)));
    } else {
      register_budget_increase<232>();
      sync_all();
      float values[kValues], sum = 0;
      PAGODA_UNROLL
      for (int j = 0; j < kValues; ++j) values[j] = load(s.values.at(i + j));
      syncthreads_of_consumers();  // all values are live here
      PAGODA_UNROLL
      for (int j = 0; j < kValues; ++j) sum = sum * 0.5F + values[kValues - 1 - j];
      store(p.out + i, sum);
    }
  }
  // Not syncthreads: the two branches would be two different barrier instructions.
  PAGODA_DEVICE static void sync_all() { named_barrier_sync(2, kThreads); }
  PAGODA_DEVICE static void syncthreads_of_consumers() { named_barrier_sync(1, 256); }
};

// Writes, and lets the next launch start early.
struct FirstLaunch {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 90;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = block_idx().x * kThreads + thread_idx();
    grid_launch_dependents();
    store(p.out + i, load(p.in + i) * 5);
  }
};

// Reads what the first launch wrote.
struct SecondLaunch {
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [2, CTA, kThreads]
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 90;
  static constexpr bool kIsDependent = true;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int count = grid_dim().x * kThreads, i = block_idx().x * kThreads + thread_idx();
    grid_dependency_wait();
    store(p.out + count + i, load(p.out + (count - 1 - i)) + 1);
  }
};

inline void add_launch_control_cases(Cases& cases) {
  {
    Random random(101);
    std::vector<float> input(RegisterBudgets::kThreads + RegisterBudgets::kValues);
    for (float& value : input) value = static_cast<float>(random.integer(-4, 4));
    std::vector<float> expected(RegisterBudgets::kThreads);
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = input[i];
      if (i < 128) continue;
      float sum = 0;  // a product by one half is exact: fused or not, the same
      for (size_t j = 0; j < RegisterBudgets::kValues; ++j) {
        sum = sum * 0.5F + input[i + RegisterBudgets::kValues - 1 - j];
      }
      expected[i] = sum;
    }
    cases.push_back(make_case<RegisterBudgets>("register_budget/1 releases, 2 acquire", {},
                                               to_bytes(input), poison(expected.size() * 4),
                                               to_bytes(expected), in_and_out<RegisterBudgets>()));
  }
  constexpr size_t kCtas = 600, kCount = kCtas * 128;
  const auto input = from_bytes<uint32_t>(random_bytes(kCount * 4, 102));
  std::vector<uint32_t> expected(2 * kCount);
  for (size_t i = 0; i < kCount; ++i) {
    expected[i] = input[i] * 5;
    expected[kCount + i] = input[kCount - 1 - i] * 5 + 1;
  }
  Case c = make_case<FirstLaunch>("grid_dependency/second launch waits for the first", {.x = kCtas},
                                  to_bytes(input), poison(2 * kCount * 4), to_bytes(expected),
                                  in_and_out<FirstLaunch>());
  c.run = [first = c.run](const Buffers& b) {
    first(b);
    launch<SecondLaunch>({.x = kCtas}, {reinterpret_cast<uint32_t*>(b.out)}, b);
  };
  cases.push_back(std::move(c));
}

}  // namespace pagoda::primitives
