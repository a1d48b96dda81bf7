// mbarrier in the emulator. The 8 bytes in shared memory only identify the barrier; the machine has
// its state, because the chip's encoding is opaque.
#pragma once

#include "arch/emu/memory.hpp"
#include "arch/layout/where.hpp"
#include "emulator/sync/mbarrier.hpp"

namespace pagoda::arch {
inline namespace emu {

struct MBarrier {
  void init(uint32_t arrivals, Where where = Where::current()) {
    emulator::mbarrier_init(&word_, arrivals, where);
  }
  void invalidate(Where where = Where::current()) { emulator::mbarrier_invalidate(&word_, where); }
  void arrive(uint32_t count = 1, Where where = Where::current()) {
    emulator::mbarrier_arrive(&word_, -1, count, 0, "mbarrier_arrive", where);
  }
  void arrive_if(int32_t predicate, Where where = Where::current()) {
    if (predicate != 0) arrive(1, where);
  }
  void arrive_expect_tx(uint32_t bytes, Where where = Where::current()) {
    emulator::mbarrier_arrive(&word_, -1, 1, bytes, "mbarrier_arrive_expect_tx", where);
  }
  void arrive_expect_tx_if(int32_t predicate, uint32_t bytes, Where where = Where::current()) {
    if (predicate != 0) arrive_expect_tx(bytes, where);
  }
  void arrive_remote(int cta_rank, uint32_t count = 1, Where where = Where::current()) {
    emulator::mbarrier_arrive(&word_, cta_rank, count, 0, "mbarrier_arrive_remote", where);
  }
  void arrive_expect_tx_remote(int cta_rank, uint32_t bytes, Where where = Where::current()) {
    emulator::mbarrier_arrive(&word_, cta_rank, 1, bytes, "mbarrier_arrive_expect_tx_remote",
                              where);
  }
  void arrive_expect_tx_remote_relaxed(int cta_rank, uint32_t bytes,
                                       Where where = Where::current()) {
    emulator::mbarrier_arrive_relaxed(&word_, cta_rank, bytes,
                                      "mbarrier_arrive_expect_tx_remote_relaxed", where);
  }
  void arrive_remote_if(int32_t predicate, int cta_rank, Where where = Where::current()) {
    if (predicate != 0) arrive_remote(cta_rank, 1, where);
  }
  void arrive_remote_relaxed_if(int32_t predicate, int cta_rank, Where where = Where::current()) {
    if (predicate == 0) return;
    emulator::mbarrier_arrive_relaxed(&word_, cta_rank, 0, "mbarrier_arrive_remote_relaxed", where);
  }
  bool test_wait(uint32_t parity, Where where = Where::current()) {
    return emulator::mbarrier_test(&word_, parity, where);
  }
  // PTX lets it suspend for an unspecified time: here until the phase ends.
  bool try_wait(uint32_t parity, Where where = Where::current()) {
    emulator::mbarrier_wait(&word_, parity, Scope::kCta, "mbarrier_try_wait", where);
    return true;
  }
  void wait(uint32_t parity, Where where = Where::current()) {
    emulator::mbarrier_wait(&word_, parity, Scope::kCta, "mbarrier_wait", where);
  }
  void wait_cluster(uint32_t parity, Where where = Where::current()) {
    emulator::mbarrier_wait(&word_, parity, Scope::kCluster, "mbarrier_wait_cluster", where);
  }
  void wait_relaxed(uint32_t parity, Where where = Where::current()) {
    emulator::mbarrier_wait_relaxed(&word_, parity, "mbarrier_wait_relaxed", where);
  }
  SharedPtr<uint64_t> data() { return SharedPtr<uint64_t>(&word_); }

 private:
  uint64_t word_;
};
static_assert(sizeof(MBarrier) == 8);

inline void fence_mbarrier_init(Where where = Where::current()) {
  emulator::fence_mbarrier_init(where);
}

}  // namespace emu
}  // namespace pagoda::arch
