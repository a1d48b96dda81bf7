// PTX implementation of arch/bulk_copy.hpp (sm_90), predicated instead of branched around.
//
// PTX ISA, "Data Movement and Conversion Instructions": cp.async.bulk. The copies run in the async
// proxy, and completion is as for cp.async.bulk.tensor (ptx/tma.hpp); addresses and size are
// multiples of 16 bytes.
#pragma once

#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "arch/ptx/cluster.hpp"
#include "arch/ptx/mbarrier.hpp"
#include "arch/ptx/memory.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE void bulk_load(int32_t predicate, SharedPtr<void> to, GlobalPtr<const void> from,
                             uint32_t bytes, MBarrier& barrier,
                             Eviction eviction = Eviction::kNormal, Where = Where::current()) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
      "@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%1], [%2], %3, [%4], %5; }" ::"r"(predicate),
      "r"(to.address()), "l"(__cvta_generic_to_global(RawGlobal::of(from))), "r"(bytes),
      "r"(barrier.address()), "l"(static_cast<uint64_t>(eviction))
      : "memory");
}

PAGODA_DEVICE void bulk_store(int32_t predicate, GlobalPtr<void> to, SharedPtr<const void> from,
                              uint32_t bytes, Where = Where::current()) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
      "@p cp.async.bulk.global.shared::cta.bulk_group [%1], [%2], %3; }" ::"r"(predicate),
      "l"(__cvta_generic_to_global(RawGlobal::of(to))), "r"(from.address()), "r"(bytes)
      : "memory");
}

PAGODA_DEVICE void bulk_copy_to_cta(int32_t predicate, RemotePtr<void> to,
                                    SharedPtr<const void> from, uint32_t bytes, MBarrier& mine,
                                    int rank, Where = Where::current()) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
      "@p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
      "[%1], [%2], %3, [%4]; }" ::"r"(predicate),
      "r"(to.address()), "r"(from.address()), "r"(bytes), "r"(mine.address_in(rank))
      : "memory");
}

}  // namespace ptx
}  // namespace pagoda::arch
