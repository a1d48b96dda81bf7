// Bulk copies, clusters and distributed shared memory.
#pragma once

#include "arch/bulk_copy.hpp"
#include "arch/cluster.hpp"
#include "arch/fence.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

// Global to shared memory by the copy engine, reversed by the threads, back to global by the
// engine.
struct BulkRoundTrip {
  static constexpr int kWords = 1024;
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
    int32_t words;
    Eviction eviction;
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 90;
  struct Storage {
    SharedArray<uint32_t, kWords, 128> arrived, reversed;
    MBarrier full;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    if (thread_idx() == 0) {
      s.full.init(1);
      fence_mbarrier_init();
    }
    syncthreads();
    const int32_t elected = warp_idx() == 0 ? elect_one() : 0;
    const auto bytes = static_cast<uint32_t>(p.words * 4);
    s.full.arrive_expect_tx_if(elected, bytes);
    bulk_load(elected, s.arrived.data(), p.in, bytes, s.full, p.eviction);
    s.full.wait(0);
    for (int i = thread_idx(); i < p.words; i += kThreads) {
      store(s.reversed.at(p.words - 1 - i), load(s.arrived.at(i)));
    }
    fence_proxy_async_shared();
    syncthreads();
    bulk_store(elected, p.out, s.reversed.data(), bytes);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

// Threads write global and shared memory, then the copy engine reads the one and overwrites the
// other: the proxy fence orders both.
struct GenericThenAsync {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [128]
    arch::GlobalPtr<uint32_t> out;       // [128] written by threads, [128] what the engine read
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 90;
  struct Storage {
    SharedArray<uint32_t, kThreads, 128> values;
    MBarrier full;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx();
    if (i == 0) {
      s.full.init(1);
      fence_mbarrier_init();
    }
    store(p.out + i, load(p.in + i) * 3);
    store(s.values.at(i), 77);  // the copy must overwrite it
    fence_proxy_async();
    syncthreads();
    const int32_t elected = warp_idx() == 0 ? elect_one() : 0;
    s.full.arrive_expect_tx_if(elected, kThreads * 4);
    bulk_load(elected, s.values.data(), p.out, kThreads * 4, s.full);
    s.full.wait(0);
    store(p.out + kThreads + i, load(s.values.at(i)) + 1);
  }
};

// Four CTAs. Each reads the shared memory of the next rank and writes that of the previous rank.
struct DistributedShared {
  static constexpr int kRow = 64;
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [CTA, kRow]
    arch::GlobalPtr<uint32_t> out;       // [CTA, kRow, 4]
  };
  static constexpr int kThreads = kRow, kClusterSize = 4, kMinArch = 90;
  struct Storage {
    SharedArray<uint32_t, kRow> mine, given;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int i = thread_idx(), cta = block_idx().x, rank = cluster_rank(), size = cluster_size();
    store(s.mine.at(i), load(p.in + cta * kRow + i));
    cluster_arrive();
    cluster_wait();
    const uint32_t next = load(map_shared(s.mine.at(kRow - 1 - i), (rank + 1) % size));
    store(map_shared(s.given.at(i), (rank + size - 1) % size), next + 5);
    cluster_sync();
    const arch::GlobalPtr<uint32_t> out = p.out + (cta * kRow + i) * 4;
    store(out, next);
    store(out + 1, load(s.given.at(i)));
    store(out + 2, static_cast<uint32_t>(rank * 16 + size));
    store(out + 3, static_cast<uint32_t>(cta));
    cluster_arrive_relaxed();  // orders nothing: no CTA reads shared memory any more
    cluster_wait();
  }
};

// The CTAs of a pair send each other rows by st.async; a remote arrival releases the inbox.
template <class T>
struct StoreAsync {
  static constexpr int kRounds = 6;
  struct Params {
    arch::GlobalPtr<const T> in;  // [2, kRounds, 32]
    arch::GlobalPtr<T> out;
  };
  static constexpr int kThreads = 32, kClusterSize = 2, kMinArch = 90;
  struct Storage {
    SharedArray<T, 32> inbox;
    MBarrier full, empty;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int lane = thread_idx(), rank = cluster_rank(), peer = rank ^ 1;
    if (lane == 0) {
      s.full.init(1);
      s.empty.init(2);
      fence_mbarrier_init();
    }
    cluster_sync();
    const RemotePtr<T> theirs = map_shared(s.inbox.at(lane), peer);
    for (int round = 0; round < kRounds; ++round) {
      const auto parity = static_cast<uint32_t>(round % 2);
      const int at = (rank * kRounds + round) * 32 + lane;
      s.full.arrive_expect_tx_if(lane == 0 ? 1 : 0, 32 * sizeof(T));
      s.empty.wait_cluster(parity ^ 1);  // the peer has read the row of the previous round
      store_async(theirs, load(p.in + at), s.full, peer);
      s.full.wait_cluster(parity);
      store(p.out + at, load(s.inbox.at(31 - lane)));
      syncwarp();
      if (round + 1 == kRounds) continue;
      if (lane == 0) s.empty.arrive_remote(peer);
      s.empty.arrive_remote_if(lane == 1 ? 1 : 0, peer);
    }
    cluster_sync();
  }
};

// CTA 0 adds the expected bytes on the barrier of CTA 1, then copies a tile of its shared memory
// there. Relaxed: the copy's end orders what CTA 1 reads, not the arrival.
template <bool is_relaxed>
struct BulkCopyToCta {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [256]
    arch::GlobalPtr<uint32_t> out;       // [256]
  };
  static constexpr int kThreads = 128, kClusterSize = 2, kMinArch = 90;
  static constexpr int kWords = 256;
  struct Storage {
    SharedArray<uint32_t, kWords, 128> outbox, inbox;
    MBarrier full;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    if (thread_idx() == 0) {
      s.full.init(1);
      fence_mbarrier_init();
    }
    cluster_sync();
    if (cluster_rank() == 0) {
      for (int i = thread_idx(); i < kWords; i += kThreads) {
        store(s.outbox.at(i), load(p.in + i) ^ 0xFF);
      }
      fence_proxy_async_shared();
      syncthreads();
      const int32_t elected = warp_idx() == 0 ? elect_one() : 0;
      if (elected != 0) {
        if constexpr (is_relaxed) {
          s.full.arrive_expect_tx_remote_relaxed(1, kWords * 4);
        } else {
          s.full.arrive_expect_tx_remote(1, kWords * 4);
        }
      }
      bulk_copy_to_cta(elected, map_shared(s.inbox.data(), 1), s.outbox.data(), kWords * 4, s.full,
                       1);
    } else {
      s.full.wait_cluster(0);
      for (int i = thread_idx(); i < kWords; i += kThreads) {
        store(p.out + i, load(s.inbox.at(i)));
      }
    }
    cluster_sync();
  }
};

inline void add_bulk_cases(Cases& cases) {
  for (const int32_t words : {4, 36, 1024}) {
    const auto input = from_bytes<uint32_t>(random_bytes(static_cast<size_t>(words) * 4, 91));
    const std::vector<uint32_t> expected(input.rbegin(), input.rend());
    const Eviction eviction = words == 36 ? Eviction::kFirst : Eviction::kNormal;
    cases.push_back(make_case<BulkRoundTrip>(
        "bulk_load bulk_store/" + std::to_string(words * 4) + " bytes", {}, to_bytes(input),
        poison(static_cast<size_t>(words) * 4), to_bytes(expected),
        [words, eviction](const Buffers& b) {
          return BulkRoundTrip::Params{reinterpret_cast<const uint32_t*>(b.in),
                                       reinterpret_cast<uint32_t*>(b.out), words, eviction};
        }));
  }
  const auto input = from_bytes<uint32_t>(random_bytes(512, 92));
  std::vector<uint32_t> expected(256);
  for (size_t i = 0; i < 128; ++i) {
    expected[i] = input[i] * 3;
    expected[128 + i] = input[i] * 3 + 1;
  }
  cases.push_back(make_case<GenericThenAsync>("fence_proxy_async/bulk_load after stores", {},
                                              to_bytes(input), poison(1024), to_bytes(expected),
                                              in_and_out<GenericThenAsync>()));
  {
    const auto sent = from_bytes<uint32_t>(random_bytes(1024, 93));
    std::vector<uint32_t> received(256);
    for (size_t i = 0; i < 256; ++i) received[i] = sent[i] ^ 0xFF;
    cases.push_back(make_case<BulkCopyToCta<false>>(
        "bulk_copy_to_cta/armed by the sender", {.x = 2}, to_bytes(sent), poison(1024),
        to_bytes(received), in_and_out<BulkCopyToCta<false>>()));
    cases.push_back(make_case<BulkCopyToCta<true>>(
        "bulk_copy_to_cta/armed by the sender, relaxed", {.x = 2}, to_bytes(sent), poison(1024),
        to_bytes(received), in_and_out<BulkCopyToCta<true>>()));
  }
}

template <class T>
void add_store_async_case(Cases& cases) {
  constexpr size_t kCount = 2 * StoreAsync<T>::kRounds * 32;
  const auto input = from_bytes<T>(random_bytes(kCount * sizeof(T), 94));
  std::vector<T> expected(kCount);
  for (size_t i = 0; i < kCount; ++i) expected[i] = input[(i + kCount / 2) % kCount ^ 31];
  cases.push_back(make_case<StoreAsync<T>>(
      "store_async arrive_remote wait_cluster/" + std::to_string(sizeof(T)) + " bytes", {.x = 2},
      to_bytes(input), poison(kCount * sizeof(T)), to_bytes(expected),
      in_and_out<StoreAsync<T>>()));
}

inline void add_cluster_cases(Cases& cases) {
  add_bulk_cases(cases);
  add_store_async_case<uint32_t>(cases);
  add_store_async_case<uint64_t>(cases);

  constexpr size_t kCtas = 8, kRow = DistributedShared::kRow;
  const auto input = from_bytes<uint32_t>(random_bytes(kCtas * kRow * 4, 95));
  std::vector<uint32_t> expected(kCtas * kRow * 4);
  for (size_t cta = 0; cta < kCtas; ++cta) {
    const size_t first = cta / 4 * 4, rank = cta % 4;
    for (size_t i = 0; i < kRow; ++i) {
      uint32_t* out = &expected[(cta * kRow + i) * 4];
      out[0] = input[(first + (rank + 1) % 4) * kRow + kRow - 1 - i];
      out[1] = input[(first + (rank + 2) % 4) * kRow + kRow - 1 - i] + 5;
      out[2] = static_cast<uint32_t>(rank * 16 + 4);
      out[3] = static_cast<uint32_t>(cta);
    }
  }
  cases.push_back(make_case<DistributedShared>(
      "cluster/distributed shared memory", {.x = kCtas}, to_bytes(input),
      poison(expected.size() * 4), to_bytes(expected), in_and_out<DistributedShared>()));
}

}  // namespace pagoda::primitives
