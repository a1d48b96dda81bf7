// CtaGroup: the one or two CTAs of an MMA (cta_group::1 or ::2), under one interface. In a pair the
// leader, the CTA of even rank, issues every MMA and commit. The barriers that its MMA warp waits
// for are in its shared memory; the peer CTA arrives there. Its commits arrive in both CTAs.
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
  static_assert(ctas == 1 || ctas == 2, "an MMA has one CTA or a pair");
  static constexpr int kLeader = 0;
  static constexpr uint16_t kAll = (1U << ctas) - 1;

  static PAGODA_DEVICE int32_t rank() {
    if constexpr (ctas == 2) return arch::cluster_rank();
    return kLeader;
  }
  static PAGODA_DEVICE bool is_leader() { return rank() == kLeader; }

  // This group's index in the grid, and the number of groups.
  static PAGODA_DEVICE int32_t index() { return static_cast<int32_t>(arch::block_idx().x) / ctas; }
  static PAGODA_DEVICE int32_t count() { return static_cast<int32_t>(arch::grid_dim().x) / ctas; }

  // Arrives on `barrier` in every CTA when the MMAs issued so far have completed. The lane that
  // issued them calls.
  static PAGODA_DEVICE void commit(arch::MBarrier& barrier,
                                   arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      arch::tcgen05_commit_multicast<2>(barrier, kAll, where);
    } else {
      arch::tcgen05_commit<1>(barrier, where);
    }
  }

  // Copies to this CTA's shared memory; the bytes complete on the leader's barrier.
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

  // Arrives on the leader's barrier and expects this CTA's bytes there. The barrier counts one
  // arrival per CTA.
  static PAGODA_DEVICE void arrive_expect_tx(arch::MBarrier& barrier, uint32_t bytes,
                                             arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      barrier.arrive_expect_tx_remote(kLeader, bytes, where);
    } else {
      barrier.arrive_expect_tx(bytes, where);
    }
  }
  // Waits for arrivals of every CTA; acquires what they released.
  static PAGODA_DEVICE void wait(arch::MBarrier& barrier, uint32_t parity,
                                 arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      barrier.wait_cluster(parity, where);
    } else {
      barrier.wait(parity, where);
    }
  }

  // Arrive and wait that order accesses to tensor memory only, together with the tcgen05 fences of
  // the caller. In a pair they are relaxed: a release at cluster scope is a MEMBAR.ALL.GPU.
  static PAGODA_DEVICE void arrive_tmem(arch::MBarrier& barrier, int32_t predicate,
                                        arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      barrier.arrive_remote_relaxed_if(predicate, kLeader, where);
    } else {
      barrier.arrive_if(predicate, where);
    }
  }
  static PAGODA_DEVICE void wait_tmem(arch::MBarrier& barrier, uint32_t parity,
                                      arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      barrier.wait_relaxed(parity, where);
    } else {
      barrier.wait(parity, where);
    }
  }

  // Barrier of all threads of all CTAs of the group.
  static PAGODA_DEVICE void sync(arch::Where where = arch::Where::current()) {
    if constexpr (ctas == 2) {
      arch::cluster_sync(where);
    } else {
      arch::syncthreads(where);
    }
  }
};

}  // namespace pagoda::mha_sm100
