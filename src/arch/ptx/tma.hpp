// Real half of arch/tma.hpp (sm_90; pairs sm_100). The issuing instruction is predicated, so that a
// whole warp can run these lines. A load always carries a cache policy: one form instead of two.
#pragma once

#include <cstdint>

#include "arch/layout/tensor_map.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "arch/ptx/cuda_ptx.hpp"
#include "arch/ptx/mbarrier.hpp"
#include "arch/ptx/memory.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

// CUtensorMap, without the driver's header. Made on the host by make_tensor_map.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

// The CUtensorMap of a specification. Throws std::runtime_error with the driver's error if it
// refuses. In tensor_map.cu: the driver is found at run time, nothing links to libcuda.
TensorMap make_tensor_map(const TensorMapSpec& spec);

PAGODA_DEVICE void tma_prefetch_descriptor(const TensorMap& map, Where = Where::current()) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

template <int Rank>
PAGODA_DEVICE void tma_load(int32_t predicate, SharedPtr<void> to, const TensorMap& map,
                            TmaCoordinates<Rank> at, MBarrier& barrier,
                            Eviction eviction = Eviction::kNormal, Where = Where::current()) {
  const auto policy = static_cast<uint64_t>(eviction);
  if constexpr (Rank == 1) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%1], [%2, {%5}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "r"(at.value[0])
        : "memory");
  } else if constexpr (Rank == 2) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%1], [%2, {%5, %6}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "r"(at.value[0]),
        "r"(at.value[1])
        : "memory");
  } else if constexpr (Rank == 3) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%1], [%2, {%5, %6, %7}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "r"(at.value[0]),
        "r"(at.value[1]), "r"(at.value[2])
        : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%1], [%2, {%5, %6, %7, %8}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "r"(at.value[0]),
        "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3])
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%1], [%2, {%5, %6, %7, %8, %9}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "r"(at.value[0]),
        "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3]), "r"(at.value[4])
        : "memory");
  }
}

template <int Rank>
PAGODA_DEVICE void tma_load_multicast(int32_t predicate, SharedPtr<void> to, const TensorMap& map,
                                      TmaCoordinates<Rank> at, MBarrier& barrier, uint16_t cta_mask,
                                      Eviction eviction = Eviction::kNormal,
                                      Where = Where::current()) {
  const auto policy = static_cast<uint64_t>(eviction);
  if constexpr (Rank == 1) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%1], [%2, {%6}], [%3], %5, %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "h"(cta_mask),
        "r"(at.value[0])
        : "memory");
  } else if constexpr (Rank == 2) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%1], [%2, {%6, %7}], [%3], %5, %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "h"(cta_mask),
        "r"(at.value[0]), "r"(at.value[1])
        : "memory");
  } else if constexpr (Rank == 3) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%1], [%2, {%6, %7, %8}], [%3], %5, %4; }" ::"r"(
            predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "h"(cta_mask),
        "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2])
        : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%1], [%2, {%6, %7, %8, %9}], [%3], %5, %4; }" ::"r"(
            predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "h"(cta_mask),
        "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3])
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%1], [%2, {%6, %7, %8, %9, %10}], [%3], %5, %4; }" ::
            "r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address()), "l"(policy), "h"(cta_mask),
        "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3]), "r"(at.value[4])
        : "memory");
  }
}

// Bit 24 of a shared::cluster address is the lowest bit of the CTA's rank.
inline constexpr uint32_t kEvenCta = 0xFEFFFFFFU;

template <int Rank>
PAGODA_DEVICE void tma_load_pair(int32_t predicate, SharedPtr<void> to, const TensorMap& map,
                                 TmaCoordinates<Rank> at, MBarrier& barrier,
                                 Eviction eviction = Eviction::kNormal, Where = Where::current()) {
  const auto policy = static_cast<uint64_t>(eviction);
  if constexpr (Rank == 1) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p "
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_"
        "group::2"
        ".L2::cache_hint [%1], [%2, {%5}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address() & kEvenCta), "l"(policy),
        "r"(at.value[0])
        : "memory");
  } else if constexpr (Rank == 2) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p "
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_"
        "group::2"
        ".L2::cache_hint [%1], [%2, {%5, %6}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address() & kEvenCta), "l"(policy),
        "r"(at.value[0]), "r"(at.value[1])
        : "memory");
  } else if constexpr (Rank == 3) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p "
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_"
        "group::2"
        ".L2::cache_hint [%1], [%2, {%5, %6, %7}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address() & kEvenCta), "l"(policy),
        "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2])
        : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p "
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_"
        "group::2"
        ".L2::cache_hint [%1], [%2, {%5, %6, %7, %8}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address() & kEvenCta), "l"(policy),
        "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3])
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p "
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_"
        "group::2"
        ".L2::cache_hint [%1], [%2, {%5, %6, %7, %8, %9}], [%3], %4; }" ::"r"(predicate),
        "r"(to.address()), "l"(&map), "r"(barrier.address() & kEvenCta), "l"(policy),
        "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3]), "r"(at.value[4])
        : "memory");
  }
}

template <int Rank>
PAGODA_DEVICE void tma_store(int32_t predicate, const TensorMap& map, TmaCoordinates<Rank> at,
                             SharedPtr<const void> from, Where = Where::current()) {
  if constexpr (Rank == 1) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%1, {%3}], [%2]; }" ::"r"(
            predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0])
        : "memory");
  } else if constexpr (Rank == 2) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%3, %4}], [%2]; }" ::
            "r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0]), "r"(at.value[1])
        : "memory");
  } else if constexpr (Rank == 3) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%1, {%3, %4, %5}], [%2]; "
        "}" ::"r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2])
        : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%1, {%3, %4, %5, %6}], "
        "[%2]; }" ::"r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]),
        "r"(at.value[3])
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%1, {%3, %4, %5, %6, %7}], "
        "[%2]; }" ::"r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]),
        "r"(at.value[3]), "r"(at.value[4])
        : "memory");
  }
}

template <int Rank>
PAGODA_DEVICE void tma_reduce_add(int32_t predicate, const TensorMap& map, TmaCoordinates<Rank> at,
                                  SharedPtr<const void> from, Where = Where::current()) {
  if constexpr (Rank == 1) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group "
        "[%1, {%3}], [%2]; }" ::"r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0])
        : "memory");
  } else if constexpr (Rank == 2) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
        "[%1, {%3, %4}], [%2]; }" ::"r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0]), "r"(at.value[1])
        : "memory");
  } else if constexpr (Rank == 3) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group "
        "[%1, {%3, %4, %5}], [%2]; }" ::"r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2])
        : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group "
        "[%1, {%3, %4, %5, %6}], [%2]; }" ::"r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]),
        "r"(at.value[3])
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; "
        "@p cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group "
        "[%1, {%3, %4, %5, %6, %7}], [%2]; }" ::"r"(predicate),
        "l"(&map), "r"(from.address()), "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]),
        "r"(at.value[3]), "r"(at.value[4])
        : "memory");
  }
}

PAGODA_DEVICE void bulk_commit_group(Where = Where::current()) {
  ::cuda::ptx::cp_async_bulk_commit_group();
}
template <int N>
PAGODA_DEVICE void bulk_wait_group(Where = Where::current()) {
  ::cuda::ptx::cp_async_bulk_wait_group(::cuda::ptx::n32_t<N>{});
}
template <int N>
PAGODA_DEVICE void bulk_wait_group_read(Where = Where::current()) {
  ::cuda::ptx::cp_async_bulk_wait_group_read(::cuda::ptx::n32_t<N>{});
}

}  // namespace ptx
}  // namespace pagoda::arch
