// PTX implementation of arch/tcgen05.hpp (sm_100a). cuda::ptx has every instruction; this file
// selects them by template arguments. ptxas accepts this code, no Blackwell chip has run it yet.
//
// PTX ISA, "TensorCore 5th Generation Family Instructions": tcgen05.alloc, dealloc,
// relinquish_alloc_permit, mma, commit, ld, st, wait, fence. What is relied on ("Memory consistency
// model for 5th generation of TensorCore operations"):
// - mma and commit of one thread execute in pipeline order; commit implies
//   fence::before_thread_sync.
// - ld and st are asynchronous until wait::ld and wait::st.
// - Across threads tensor memory is ordered by fence::before_thread_sync, a barrier or mbarrier,
//   and fence::after_thread_sync, in this order.
// - mma reads shared memory in the async proxy.
#pragma once

#include <cstdint>

#include "arch/layout/instruction_descriptor.hpp"
#include "arch/layout/smem_descriptor.hpp"
#include "arch/layout/tmem_layout.hpp"
#include "arch/layout/where.hpp"
#include "arch/ptx/cuda_ptx.hpp"
#include "arch/ptx/mbarrier.hpp"
#include "arch/ptx/memory.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

template <int kGroup>
PAGODA_DEVICE constexpr auto cta_group_tag() {
  static_assert(kGroup == 1 || kGroup == 2, "a CTA group is 1 or 2 CTAs");
  if constexpr (kGroup == 1) {
    return ::cuda::ptx::cta_group_1_t{};
  } else {
    return ::cuda::ptx::cta_group_2_t{};
  }
}

template <MmaKind kKind>
PAGODA_DEVICE constexpr auto kind_tag() {
  static_assert(!is_block_scaled(kKind), "block-scaled kinds are not here yet");
  if constexpr (kKind == MmaKind::kF16) {
    return ::cuda::ptx::kind_f16_t{};
  } else if constexpr (kKind == MmaKind::kTF32) {
    return ::cuda::ptx::kind_tf32_t{};
  } else if constexpr (kKind == MmaKind::kF8F6F4) {
    return ::cuda::ptx::kind_f8f6f4_t{};
  } else {
    return ::cuda::ptx::kind_i8_t{};
  }
}

template <int kGroup>
PAGODA_DEVICE void tmem_allocate(SharedPtr<uint32_t> out, int columns, Where = Where::current()) {
  ::cuda::ptx::tcgen05_alloc(cta_group_tag<kGroup>(), out.generic(),
                             static_cast<uint32_t>(columns));
}
template <int kGroup>
PAGODA_DEVICE void tmem_free(TmemPtr at, int columns, Where = Where::current()) {
  ::cuda::ptx::tcgen05_dealloc(cta_group_tag<kGroup>(), at.address, static_cast<uint32_t>(columns));
}
template <int kGroup>
PAGODA_DEVICE void tmem_relinquish(Where = Where::current()) {
  ::cuda::ptx::tcgen05_relinquish_alloc_permit(cta_group_tag<kGroup>());
}

template <MmaKind kKind, int kGroup>
struct UMma {
  static PAGODA_DEVICE void ss(TmemPtr d, SmemDescriptor a, SmemDescriptor b,
                               InstructionDescriptor instruction, bool accumulate,
                               Where = Where::current()) {
    ::cuda::ptx::tcgen05_mma(kind_tag<kKind>(), cta_group_tag<kGroup>(), d.address, a.bits, b.bits,
                             instruction.bits, accumulate);
  }
  static PAGODA_DEVICE void ts(TmemPtr d, TmemPtr a, SmemDescriptor b,
                               InstructionDescriptor instruction, bool accumulate,
                               Where = Where::current()) {
    ::cuda::ptx::tcgen05_mma_tmem_a(kind_tag<kKind>(), cta_group_tag<kGroup>(), d.address,
                                    a.address, b.bits, instruction.bits, accumulate);
  }
};

template <int kGroup>
PAGODA_DEVICE void tcgen05_commit(MBarrier& barrier, Where = Where::current()) {
  ::cuda::ptx::tcgen05_commit(cta_group_tag<kGroup>(), &barrier.state);
}
template <int kGroup>
PAGODA_DEVICE void tcgen05_commit_multicast(MBarrier& barrier, uint16_t cta_mask,
                                            Where = Where::current()) {
  ::cuda::ptx::tcgen05_commit_multicast(cta_group_tag<kGroup>(), &barrier.state, cta_mask);
}

template <TmemShape kShape, int kCount, int kSplit = 0>
PAGODA_DEVICE void tmem_load(uint32_t (&out)[tmem_registers(kShape, kCount)], TmemPtr from,
                             Where = Where::current()) {
  static_assert(is_tmem_repeat(kShape, kCount), "the shape has no such repeat");
  if constexpr (kShape == TmemShape::k32x32b) {
    ::cuda::ptx::tcgen05_ld_32x32b(out, from.address);
  } else if constexpr (kShape == TmemShape::k16x64b) {
    ::cuda::ptx::tcgen05_ld_16x64b(out, from.address);
  } else if constexpr (kShape == TmemShape::k16x128b) {
    ::cuda::ptx::tcgen05_ld_16x128b(out, from.address);
  } else if constexpr (kShape == TmemShape::k16x256b) {
    ::cuda::ptx::tcgen05_ld_16x256b(out, from.address);
  } else {
    ::cuda::ptx::tcgen05_ld_16x32bx2(out, from.address, ::cuda::ptx::n32_t<kSplit>{});
  }
}

template <TmemShape kShape, int kCount, int kSplit = 0>
PAGODA_DEVICE void tmem_store(TmemPtr to, const uint32_t (&in)[tmem_registers(kShape, kCount)],
                              Where = Where::current()) {
  static_assert(is_tmem_repeat(kShape, kCount), "the shape has no such repeat");
  if constexpr (kShape == TmemShape::k32x32b) {
    ::cuda::ptx::tcgen05_st_32x32b(to.address, in);
  } else if constexpr (kShape == TmemShape::k16x64b) {
    ::cuda::ptx::tcgen05_st_16x64b(to.address, in);
  } else if constexpr (kShape == TmemShape::k16x128b) {
    ::cuda::ptx::tcgen05_st_16x128b(to.address, in);
  } else if constexpr (kShape == TmemShape::k16x256b) {
    ::cuda::ptx::tcgen05_st_16x256b(to.address, in);
  } else {
    ::cuda::ptx::tcgen05_st_16x32bx2(to.address, ::cuda::ptx::n32_t<kSplit>{}, in);
  }
}

PAGODA_DEVICE void tmem_wait_load(Where = Where::current()) { ::cuda::ptx::tcgen05_wait_ld(); }
// No instruction: the compiler must not read `out` before this point.
template <int kCount>
PAGODA_DEVICE void tmem_pin(uint32_t (&out)[kCount]) {
  PAGODA_UNROLL
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(out[i])::"memory");
}
template <int kCount>
PAGODA_DEVICE void tmem_wait_load(uint32_t (&out)[kCount], Where = Where::current()) {
  ::cuda::ptx::tcgen05_wait_ld();
  tmem_pin(out);
}
template <int kCount>
PAGODA_DEVICE void tmem_wait_load(uint32_t (&a)[kCount], uint32_t (&b)[kCount],
                                  Where = Where::current()) {
  ::cuda::ptx::tcgen05_wait_ld();
  tmem_pin(a);
  tmem_pin(b);
}
PAGODA_DEVICE void tmem_wait_store(Where = Where::current()) { ::cuda::ptx::tcgen05_wait_st(); }

PAGODA_DEVICE void tcgen05_fence_before_thread_sync(Where = Where::current()) {
  ::cuda::ptx::tcgen05_fence_before_thread_sync();
}
PAGODA_DEVICE void tcgen05_fence_after_thread_sync(Where = Where::current()) {
  ::cuda::ptx::tcgen05_fence_after_thread_sync();
}

}  // namespace ptx
}  // namespace pagoda::arch
