// cp.async: sizes, zero fill, groups, arrival on an mbarrier.
#pragma once

#include "arch/cp_async.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

// Thread i copies i % (kBytes + 1) bytes; the rest of its kBytes must become zero.
template <int kBytes>
struct CpAsyncZeroFill {
  struct Params {
    arch::GlobalPtr<const uint8_t> in;
    arch::GlobalPtr<uint8_t> out;
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<uint8_t, kThreads * kBytes> bytes;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx();
    cp_async<kBytes>(s.bytes.at(i * kBytes), p.in + i * kBytes, i % (kBytes + 1));
    cp_async_commit();
    cp_async_wait<0>();
    syncthreads();
    const int other = i ^ 1;
    for (int byte = 0; byte < kBytes; ++byte) {
      store(p.out + other * kBytes + byte, load(s.bytes.at(other * kBytes + byte)));
    }
  }
};

// A ring of three stages, two groups in flight.
struct CpAsyncGroups {
  static constexpr int kTiles = 9, kStages = 3;
  struct Params {
    arch::GlobalPtr<const Words<4>> in;  // [kTiles, kThreads]
    arch::GlobalPtr<Words<4>> out;
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<Words<4>, kStages * kThreads> ring;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx();
    const auto copy = [&](int tile) {
      if (tile < kTiles) {
        cp_async<16>(s.ring.at(tile % kStages * kThreads + i), p.in + tile * kThreads + i);
      }
      cp_async_commit();
    };
    copy(0);
    copy(1);
    for (int tile = 0; tile < kTiles; ++tile) {
      cp_async_wait<1>();  // this tile's group; the next tile's may be in flight
      syncthreads();  // all threads' copies are visible, and all have read the stage refilled below
      copy(tile + 2);
      store(p.out + tile * kThreads + i,
            load(s.ring.at(tile % kStages * kThreads + kThreads - 1 - i)));
    }
    cp_async_wait<0>();
  }
};

// One warp copies, the other waits on the barrier.
struct CpAsyncMBarrier {
  static constexpr int kRounds = 4;
  struct Params {
    arch::GlobalPtr<const uint64_t> in;  // [kRounds, 32]
    arch::GlobalPtr<uint64_t> out;
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<uint64_t, kRounds * 32> values;
    MBarrier full;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int lane = lane_idx();
    if (thread_idx() == 0) {
      s.full.init(32);
      fence_mbarrier_init();
    }
    syncthreads();
    for (int round = 0; round < kRounds; ++round) {
      const int at = round * 32 + lane;
      if (warp_idx() == 0) {
        cp_async<8>(s.values.at(at), p.in + at);
        cp_async_mbarrier_arrive(s.full);
        s.full.wait(static_cast<uint32_t>(round % 2));
      } else {
        s.full.wait(static_cast<uint32_t>(round % 2));
        store(p.out + at, load(s.values.at(at ^ 31)));
      }
      syncthreads();  // no thread is a whole phase behind
    }
  }
};

template <int kBytes>
void add_zero_fill_case(Cases& cases) {
  const Bytes input = random_bytes(64 * kBytes, 41);
  Bytes expected(input.size(), std::byte{0});
  for (size_t i = 0; i < 64; ++i) {
    for (size_t byte = 0; byte < i % (kBytes + 1); ++byte) {
      expected[i * kBytes + byte] = input[i * kBytes + byte];
    }
  }
  cases.push_back(make_case<CpAsyncZeroFill<kBytes>>(
      "cp_async/zero fill/" + std::to_string(kBytes) + " bytes", {}, input, poison(input.size()),
      expected, in_and_out<CpAsyncZeroFill<kBytes>>()));
}

inline void add_cp_async_cases(Cases& cases) {
  add_zero_fill_case<4>(cases);
  add_zero_fill_case<8>(cases);
  add_zero_fill_case<16>(cases);
  {
    const Bytes input = random_bytes(CpAsyncGroups::kTiles * 32 * 16, 42);
    Bytes expected(input.size());
    for (size_t i = 0; i < expected.size() / 16; ++i) {
      std::memcpy(&expected[i * 16], &input[(i ^ 31) * 16], 16);
    }
    cases.push_back(make_case<CpAsyncGroups>("cp_async/groups", {}, input, poison(input.size()),
                                             expected, in_and_out<CpAsyncGroups>()));
  }
  {
    const Bytes input = random_bytes(CpAsyncMBarrier::kRounds * 32 * 8, 43);
    Bytes expected(input.size());
    for (size_t i = 0; i < expected.size() / 8; ++i) {
      std::memcpy(&expected[i * 8], &input[(i ^ 31) * 8], 8);
    }
    cases.push_back(make_case<CpAsyncMBarrier>("cp_async/mbarrier_arrive", {}, input,
                                               poison(input.size()), expected,
                                               in_and_out<CpAsyncMBarrier>()));
  }
}

}  // namespace pagoda::primitives
