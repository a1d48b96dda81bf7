// Loads, stores, atomics and scopes.
#pragma once

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

// Global to shared to global memory, in reverse order.
template <class T>
struct CopyThroughShared {
  struct Params {
    arch::GlobalPtr<const T> in;
    arch::GlobalPtr<T> out;
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<T, kThreads> values;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx();
    store(s.values.at(i), load(p.in + i));
    syncthreads();
    store(p.out + i, load(s.values.at(kThreads - 1 - i)));
  }
};

template <class T>
struct LoadReadOnly {
  struct Params {
    arch::GlobalPtr<const T> in;
    arch::GlobalPtr<T> out;
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    store(p.out + thread_idx(), load_read_only(p.in + (thread_idx() ^ 5)));
  }
};

// Two CTAs: the first writes and releases a flag, the second acquires it and reads. `by_fence`: the
// flag is relaxed, and a fence releases.
template <Scope kScope, bool by_fence>
struct PassMessage {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;  // [1 + 2 * kThreads]: flag, message, copy
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = thread_idx();
    const arch::GlobalPtr<uint32_t> message = p.out + 1;
    if (block_idx().x == 0) {
      store(message + i, load(p.in + i) + 7);
      syncthreads();
      if (i == 0) {
        if constexpr (by_fence) {
          thread_fence<kScope>();
          atomic_exchange<Order::kRelaxed, kScope>(p.out, 1);
        } else {
          store_release<kScope>(p.out, 1);
        }
      }
    } else {
      if (i == 0) {
        while (load_acquire<kScope>(p.out) == 0) {
        }
      }
      syncthreads();
      store(message + kThreads + i, load(message + i));
    }
  }
};

// The same between two warps, through shared memory, 8 bytes of flag.
struct PassMessageShared {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<uint32_t, 4> message;
    SharedArray<uint64_t, 1> flag;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    if (thread_idx() == 0) store(s.flag.at(0), 0);
    syncthreads();
    if (thread_idx() == 0) {
      for (int i = 0; i < 4; ++i) store(s.message.at(i), load(p.in + i));
      store_release<Scope::kCta>(s.flag.at(0), 1);
    } else if (thread_idx() == 32) {
      while (load_acquire<Scope::kCta>(s.flag.at(0)) == 0) {
      }
      for (int i = 0; i < 4; ++i) store(p.out + i, load(s.message.at(i)) * 3);
    }
  }
};

// Every thread adds; the sum does not depend on the order.
template <class T, Order kOrder, Scope kScope, int kArch = 80>
struct AtomicAdd {
  struct Params {
    arch::GlobalPtr<const T> in;
    arch::GlobalPtr<T> out;
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = kArch;
  struct Storage {
    SharedArray<T, 1> sum;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx();
    if (i == 0) store(s.sum.at(0), T{});
    syncthreads();
    const T value = load(p.in + i);
    atomic_add<kOrder, kScope>(s.sum.at(0), value);
    atomic_add<kOrder, kScope>(p.out, value);
    syncthreads();
    if (i == 0) atomic_add<Order::kRelaxed, Scope::kGpu>(p.out + 1, load(s.sum.at(0)));
  }
};

// All threads of the grid exchange their value with one word: the values returned and the value
// left have the sum of all inputs. The last thread, known by a ticket that acquires the other
// threads' sums, adds the value left.
struct AtomicExchange {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;  // word, sum, ticket, total
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<uint32_t, kThreads> slots;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx();
    const uint32_t threads = static_cast<uint32_t>(kThreads * grid_dim().x);
    const uint32_t value = load(p.in + block_idx().x * kThreads + i);
    store(s.slots.at(i), value);
    const uint32_t mine = atomic_exchange<Order::kRelaxed, Scope::kCta>(s.slots.at(i), 0);
    const uint32_t before = atomic_exchange<Order::kAcqRel, Scope::kGpu>(p.out, mine);
    atomic_add<Order::kRelaxed, Scope::kGpu>(p.out + 1, before);
    if (atomic_add<Order::kAcqRel, Scope::kGpu>(p.out + 2, 1) == threads - 1) {
      const uint32_t rest = atomic_exchange<Order::kAcqRel, Scope::kSystem>(p.out, 0);
      store(p.out + 3, atomic_add<Order::kRelaxed, Scope::kGpu>(p.out + 1, rest) + rest);
    }
  }
};

// Adds by compare-and-swap; also a swap that must fail, in shared memory.
struct AtomicCas {
  struct Params {
    arch::GlobalPtr<const int32_t> in;
    arch::GlobalPtr<int32_t> out;  // word, then one per thread
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<int32_t, kThreads> slots;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx();
    const int32_t value = load(p.in + i);
    int32_t seen = load_acquire<Scope::kGpu>(p.out), expected = 0;
    do {
      expected = seen;
      seen = atomic_cas<Order::kAcqRel, Scope::kGpu>(p.out, expected, expected + value);
    } while (seen != expected);
    store(s.slots.at(i), value);
    const int32_t kept = atomic_cas<Order::kRelaxed, Scope::kCta>(s.slots.at(i), value + 1, 0);
    const int32_t old = atomic_cas<Order::kRelaxed, Scope::kCta>(s.slots.at(i), value, 9);
    if (block_idx().x == 0) store(p.out + 1 + i, kept + old + load(s.slots.at(i)));
  }
};

template <class T>
void add_copy_cases(Cases& cases, const std::string& type) {
  const Bytes input = random_bytes(128 * sizeof(T), 11);
  Bytes expected(input.size()), swapped(64 * sizeof(T));
  for (size_t i = 0; i < 128; ++i) {
    std::memcpy(&expected[i * sizeof(T)], &input[(127 - i) * sizeof(T)], sizeof(T));
    if (i < 64) std::memcpy(&swapped[i * sizeof(T)], &input[(i ^ 5) * sizeof(T)], sizeof(T));
  }
  cases.push_back(make_case<CopyThroughShared<T>>("memory/load_store/" + type, {}, input,
                                                  poison(input.size()), expected,
                                                  in_and_out<CopyThroughShared<T>>()));
  cases.push_back(make_case<LoadReadOnly<T>>("memory/load_read_only/" + type, {}, input,
                                             poison(swapped.size()), swapped,
                                             in_and_out<LoadReadOnly<T>>()));
}

template <Scope kScope, bool by_fence>
void add_message_case(Cases& cases, const std::string& name) {
  using Kernel = PassMessage<kScope, by_fence>;
  const auto input = from_bytes<uint32_t>(random_bytes(128 * 4, 12));
  std::vector<uint32_t> output(257, 0), expected(257, 1);
  for (size_t i = 0; i < 128; ++i) expected[1 + i] = expected[129 + i] = input[i] + 7;
  cases.push_back(make_case<Kernel>("memory/" + name, {.x = 2}, to_bytes(input), to_bytes(output),
                                    to_bytes(expected), in_and_out<Kernel>()));
}

template <class T, Order kOrder, Scope kScope, int kArch = 80>
void add_atomic_add_case(Cases& cases, const std::string& name) {
  using Kernel = AtomicAdd<T, kOrder, kScope, kArch>;
  const int ctas = kScope == Scope::kGpu || kScope == Scope::kSystem ? 5 : 1;
  Random random(13);
  std::vector<T> input(128);
  double sum = 0;
  for (T& value : input) {
    value = static_cast<T>(random.integer(std::is_unsigned_v<T> ? 0 : -1000, 1000));
    sum += static_cast<double>(value);
  }
  const auto total = static_cast<T>(sum * ctas);
  cases.push_back(make_case<Kernel>("memory/atomic_add/" + name, {.x = ctas}, to_bytes(input),
                                    to_bytes(std::vector<T>(2, T{})),
                                    to_bytes(std::vector<T>(2, total)), in_and_out<Kernel>()));
}

inline void add_memory_cases(Cases& cases) {
  add_copy_cases<uint8_t>(cases, "1 byte");
  add_copy_cases<uint16_t>(cases, "2 bytes");
  add_copy_cases<uint32_t>(cases, "4 bytes");
  add_copy_cases<uint64_t>(cases, "8 bytes");
  add_copy_cases<Words<2>>(cases, "2 words");
  add_copy_cases<Words<4>>(cases, "4 words");

  add_message_case<Scope::kGpu, false>(cases, "store_release load_acquire/gpu");
  add_message_case<Scope::kSystem, false>(cases, "store_release load_acquire/system");
  add_message_case<Scope::kGpu, true>(cases, "thread_fence/gpu");
  add_message_case<Scope::kSystem, true>(cases, "thread_fence/system");
  {
    const std::vector<uint32_t> input = {1, 20, 300, 4000};
    cases.push_back(make_case<PassMessageShared>(
        "memory/store_release load_acquire/shared", {}, to_bytes(input), poison(16),
        to_bytes(std::vector<uint32_t>{3, 60, 900, 12000}), in_and_out<PassMessageShared>()));
  }

  add_atomic_add_case<uint32_t, Order::kRelaxed, Scope::kCta>(cases, "uint32 relaxed cta");
  add_atomic_add_case<uint32_t, Order::kAcquire, Scope::kGpu>(cases, "uint32 acquire gpu");
  add_atomic_add_case<uint32_t, Order::kRelease, Scope::kGpu>(cases, "uint32 release gpu");
  add_atomic_add_case<int32_t, Order::kAcqRel, Scope::kSystem>(cases, "int32 acq_rel system");
  add_atomic_add_case<int32_t, Order::kAcqRel, Scope::kCta>(cases, "int32 acq_rel cta");
  add_atomic_add_case<float, Order::kRelaxed, Scope::kGpu>(cases, "float relaxed gpu");
  add_atomic_add_case<float, Order::kAcqRel, Scope::kGpu>(cases, "float acq_rel gpu");
  add_atomic_add_case<uint32_t, Order::kAcqRel, Scope::kCluster, 90>(cases,
                                                                     "uint32 acq_rel cluster");
  {
    auto input = from_bytes<uint32_t>(random_bytes(4 * 64 * 4, 15));
    uint32_t sum = 0;
    for (const uint32_t value : input) sum += value;
    const uint32_t threads = 4 * 64;
    cases.push_back(make_case<AtomicExchange>(
        "memory/atomic_exchange", {.x = 4}, to_bytes(input), to_bytes(std::vector<uint32_t>(4, 0)),
        to_bytes(std::vector<uint32_t>{0, sum, threads, sum}), in_and_out<AtomicExchange>()));
  }
  {
    Random random(16);
    std::vector<int32_t> input(32), output(33, 0), expected(33, 0);
    for (size_t i = 0; i < 32; ++i) {
      input[i] = random.integer(-50, 50);
      expected[0] += 3 * input[i];
      expected[1 + i] = 2 * input[i] + 9;
    }
    cases.push_back(make_case<AtomicCas>("memory/atomic_cas", {.x = 3}, to_bytes(input),
                                         to_bytes(output), to_bytes(expected),
                                         in_and_out<AtomicCas>()));
  }
}

}  // namespace pagoda::primitives
