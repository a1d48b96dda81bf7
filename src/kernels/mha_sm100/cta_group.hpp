// CtaGroup: the CTAs whose rows a product holds, one or two, under one interface. In a pair the leader,
// the CTA of even rank, issues all products and commits; what it waits for stands in its shared memory, and
// the other CTA arrives there. What it tells reaches both.
#pragma once

#include <cstdint>

#include "arch/cluster.hpp"
#include "arch/mbarrier.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "core/target.hpp"

namespace pagoda::mha_sm100 {

template <int ctas>
struct CtaGroup {
  static_assert(ctas == 1 || ctas == 2, "products are of one CTA or of a pair");
  static constexpr int kLeader = 0;
  static constexpr uint16_t kAll = (1U << ctas) - 1;

  static PAGODA_DEVICE int32_t rank() {
    if constexpr (ctas == 2) return arch::cluster_rank();
    return kLeader;
  }
  static PAGODA_DEVICE bool is_leader() { return rank() == kLeader; }

  // Of the groups of the grid.
  static PAGODA_DEVICE int32_t index() { return static_cast<int32_t>(arch::block_idx().x) / ctas; }
  static PAGODA_DEVICE int32_t count() { return static_cast<int32_t>(arch::grid_dim().x) / ctas; }

  // The products so far are complete, in every CTA. By the lane that issued them.
  static PAGODA_DEVICE void commit(arch::MBarrier& barrier,
                                   arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      arch::tcgen05_commit_multicast<2>(barrier, kAll, where);
    } else {
      arch::tcgen05_commit<1>(barrier, where);
    }
  }

  // To this CTA's shared memory; the leader's barrier counts the bytes.
  template <int kRank>
  static PAGODA_DEVICE void tma_load(int32_t predicate, arch::SharedPtr<void> to,
                                     const arch::TensorMap& map,
                                     const arch::TmaCoordinates<kRank>& at, arch::MBarrier& barrier,
                                     arch::Eviction eviction,
                                     arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      arch::tma_load_pair<kRank>(predicate, to, map, at, barrier, eviction, where);
    } else {
      arch::tma_load<kRank>(predicate, to, map, at, barrier, eviction, where);
    }
  }

  // A CTA's bytes, at the leader's barrier, which counts an arrival of every CTA.
  static PAGODA_DEVICE void announce(arch::MBarrier& barrier, uint32_t bytes,
                                     arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      barrier.arrive_expect_tx_remote(kLeader, bytes, where);
    } else {
      barrier.arrive_expect_tx(bytes, where);
    }
  }
  // The leader's wait for every CTA.
  static PAGODA_DEVICE void wait(arch::MBarrier& barrier, uint32_t parity,
                                 arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      barrier.wait_cluster(parity, where);
    } else {
      barrier.wait(parity, where);
    }
  }

  // The same for tensor memory alone, between tcgen05 fences: in a pair the order of other memory would cost a
  // fence of all of it at each arrival.
  static PAGODA_DEVICE void tell_tensor(arch::MBarrier& barrier, int32_t predicate,
                                        arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      barrier.arrive_remote_relaxed_if(predicate, kLeader, where);
    } else {
      barrier.arrive_if(predicate, where);
    }
  }
  static PAGODA_DEVICE void wait_tensor(arch::MBarrier& barrier, uint32_t parity,
                                        arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      barrier.wait_relaxed(parity, where);
    } else {
      barrier.wait(parity, where);
    }
  }

  // Every thread of every CTA.
  static PAGODA_DEVICE void sync(arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      arch::cluster_sync(where);
    } else {
      arch::syncthreads(where);
    }
  }
};

}  // namespace pagoda::mha_sm100
