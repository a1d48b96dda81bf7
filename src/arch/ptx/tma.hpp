// PTX implementation of arch/tma.hpp (sm_90; .cta_group::2 sm_100). The issuing instruction is
// predicated, so that a whole warp runs these lines without a branch. Loads always carry a cache
// policy: one form instead of two.
//
// PTX ISA, "Data Movement and Conversion Instructions": cp.async.bulk.tensor, prefetch,
// cp.async.bulk.commit_group, cp.async.bulk.wait_group. What is relied on:
// - The copies run in the async proxy. Before a store, fence_proxy_async_shared orders the threads'
//   writes of the tile before the engine's reads.
// - The complete-tx on the mbarrier is a release at cluster scope, followed by an implicit proxy
//   fence: a thread whose wait on the barrier returned reads the tile without a fence.
// - Shared addresses are 128-byte aligned (swizzled tiles: to the pattern's repeat), the tensor map
//   is 64-byte aligned.
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

// The CUtensorMap of a specification. Throws std::runtime_error with the driver's error code where
// the driver rejects it. Defined in tensor_map.cu: the driver is found at run time, nothing links
// to libcuda.
TensorMap make_tensor_map(const TensorMapSpec& spec);

PAGODA_DEVICE void tma_prefetch_descriptor(const TensorMap& map, Where = Where::current()) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// clang-format off

// One instruction at every rank. INSTRUCTION(dim, at) is its text for dim "1d" .. "5d" and the
// coordinates `at` in braces. The operands are the predicate (%0), those in __VA_ARGS__, then the
// coordinates, whose names are C0 .. C4.
#define PAGODA_TMA_ISSUE(text, ...)                                                                \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p " text "; }"                              \
               ::"r"(predicate), __VA_ARGS__ : "memory")
#define PAGODA_TMA_BY_RANK(INSTRUCTION, C0, C1, C2, C3, C4, ...)                                   \
  if constexpr (Rank == 1) {                                                                       \
    PAGODA_TMA_ISSUE(INSTRUCTION("1d", "{" C0 "}"), __VA_ARGS__, "r"(at.value[0]));                \
  } else if constexpr (Rank == 2) {                                                                \
    PAGODA_TMA_ISSUE(INSTRUCTION("2d", "{" C0 ", " C1 "}"), __VA_ARGS__,                           \
                     "r"(at.value[0]), "r"(at.value[1]));                                          \
  } else if constexpr (Rank == 3) {                                                                \
    PAGODA_TMA_ISSUE(INSTRUCTION("3d", "{" C0 ", " C1 ", " C2 "}"), __VA_ARGS__,                   \
                     "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]));                        \
  } else if constexpr (Rank == 4) {                                                                \
    PAGODA_TMA_ISSUE(INSTRUCTION("4d", "{" C0 ", " C1 ", " C2 ", " C3 "}"), __VA_ARGS__,           \
                     "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3]));      \
  } else {                                                                                         \
    PAGODA_TMA_ISSUE(INSTRUCTION("5d", "{" C0 ", " C1 ", " C2 ", " C3 ", " C4 "}"), __VA_ARGS__,   \
                     "r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3]),       \
                     "r"(at.value[4]));                                                            \
  }

// GROUP: "" or ".cta_group::2". Operands: 1 destination, 2 map, 3 mbarrier, 4 cache policy.
#define PAGODA_TMA_LOAD_IN_GROUP(dim, at, GROUP)                                                   \
  "cp.async.bulk.tensor." dim ".shared::cluster.global.tile.mbarrier::complete_tx::bytes" GROUP    \
  ".L2::cache_hint [%1], [%2, " at "], [%3], %4"
#define PAGODA_TMA_LOAD(dim, at) PAGODA_TMA_LOAD_IN_GROUP(dim, at, "")
#define PAGODA_TMA_LOAD_PAIR(dim, at) PAGODA_TMA_LOAD_IN_GROUP(dim, at, ".cta_group::2")
// Operands: 1 map, 2 source.
#define PAGODA_TMA_STORE(dim, at)                                                                  \
  "cp.async.bulk.tensor." dim ".global.shared::cta.tile.bulk_group [%1, " at "], [%2]"

template <int Rank>
PAGODA_DEVICE void tma_load(int32_t predicate, SharedPtr<void> to, const TensorMap& map,
                            TmaCoordinates<Rank> at, MBarrier& barrier,
                            Eviction eviction = Eviction::kNormal, Where = Where::current()) {
  PAGODA_TMA_BY_RANK(PAGODA_TMA_LOAD, "%5", "%6", "%7", "%8", "%9",
                     "r"(to.address()), "l"(&map), "r"(barrier.address()),
                     "l"(static_cast<uint64_t>(eviction)))
}

// Bit 24 of a shared::cluster address is the lowest bit of the CTA's rank: cleared, the address
// means the same offset in the even CTA of the pair.
inline constexpr uint32_t kEvenCta = 0xFEFFFFFFU;

template <int Rank>
PAGODA_DEVICE void tma_load_pair(int32_t predicate, SharedPtr<void> to, const TensorMap& map,
                                 TmaCoordinates<Rank> at, MBarrier& barrier,
                                 Eviction eviction = Eviction::kNormal, Where = Where::current()) {
  PAGODA_TMA_BY_RANK(PAGODA_TMA_LOAD_PAIR, "%5", "%6", "%7", "%8", "%9",
                     "r"(to.address()), "l"(&map), "r"(barrier.address() & kEvenCta),
                     "l"(static_cast<uint64_t>(eviction)))
}

template <int Rank>
PAGODA_DEVICE void tma_store(int32_t predicate, const TensorMap& map, TmaCoordinates<Rank> at,
                             SharedPtr<const void> from, Where = Where::current()) {
  PAGODA_TMA_BY_RANK(PAGODA_TMA_STORE, "%3", "%4", "%5", "%6", "%7",
                     "l"(&map), "r"(from.address()))
}

#undef PAGODA_TMA_STORE
#undef PAGODA_TMA_LOAD_PAIR
#undef PAGODA_TMA_LOAD
#undef PAGODA_TMA_LOAD_IN_GROUP
#undef PAGODA_TMA_BY_RANK
#undef PAGODA_TMA_ISSUE

// clang-format on

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
