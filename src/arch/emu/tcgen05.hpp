// The tensor core of Blackwell in the emulator: maps to emulator/memory/tensor_memory.hpp.
#pragma once

#include "arch/emu/mbarrier.hpp"
#include "arch/emu/memory.hpp"
#include "arch/layout/instruction_descriptor.hpp"
#include "arch/layout/smem_descriptor.hpp"
#include "arch/layout/tmem_layout.hpp"
#include "arch/layout/where.hpp"
#include "emulator/memory/tensor_memory.hpp"

namespace pagoda::arch {
inline namespace emu {

template <int kCtaGroup>
void tmem_allocate(SharedPtr<uint32_t> out, int columns, Where where = Where::current()) {
  emulator::tmem_allocate(kCtaGroup, out.host(), columns, where);
}
template <int kCtaGroup>
void tmem_free(TmemPtr at, int columns, Where where = Where::current()) {
  emulator::tmem_free(kCtaGroup, at, columns, where);
}
template <int kCtaGroup>
void tmem_relinquish(Where where = Where::current()) {
  emulator::tmem_relinquish(kCtaGroup, where);
}

template <MmaKind kKind, int kCtaGroup>
struct UMma {
  static_assert(!is_block_scaled(kKind), "block-scaled kinds are not supported");
  static void ss(TmemPtr d, SmemDescriptor a, SmemDescriptor b, InstructionDescriptor instruction,
                 bool accumulate, Where where = Where::current()) {
    emulator::tcgen05_mma({.kind = kKind, .cta_group = kCtaGroup},
                          {.d = d,
                           .a_shared = a,
                           .a_tensor = {},
                           .b = b,
                           .instruction = instruction,
                           .accumulates = accumulate},
                          where);
  }
  static void ts(TmemPtr d, TmemPtr a, SmemDescriptor b, InstructionDescriptor instruction,
                 bool accumulate, Where where = Where::current()) {
    emulator::tcgen05_mma({.kind = kKind, .cta_group = kCtaGroup, .is_a_in_tmem = true},
                          {.d = d,
                           .a_shared = {},
                           .a_tensor = a,
                           .b = b,
                           .instruction = instruction,
                           .accumulates = accumulate},
                          where);
  }
};

template <TmemCopyShape kShape, int kCtaGroup>
void tmem_copy(TmemPtr to, SmemDescriptor from, Where where = Where::current()) {
  emulator::tmem_copy(kShape, kCtaGroup, to, from, where);
}

template <int kCtaGroup>
void tcgen05_commit(MBarrier& barrier, Where where = Where::current()) {
  emulator::tcgen05_commit(kCtaGroup, barrier.data().host(), 0, "tcgen05_commit", where);
}
template <int kCtaGroup>
void tcgen05_commit_multicast(MBarrier& barrier, uint16_t cta_mask,
                              Where where = Where::current()) {
  emulator::tcgen05_commit(kCtaGroup, barrier.data().host(), cta_mask, "tcgen05_commit_multicast",
                           where);
}

template <TmemShape kShape, int kRepeat, int kSplit = 0>
void tmem_load(uint32_t (&out)[tmem_registers(kShape, kRepeat)], TmemPtr from,
               Where where = Where::current()) {
  static_assert(is_tmem_repeat(kShape, kRepeat), "tcgen05.ld has no such .num for the shape");
  static_assert((kSplit > 0) == (kShape == TmemShape::k16x32bx2), "16x32bx2 alone is split");
  emulator::tmem_load({kShape, kRepeat, kSplit}, from, out, where);
}
template <TmemShape kShape, int kRepeat, int kSplit = 0>
void tmem_store(TmemPtr to, const uint32_t (&in)[tmem_registers(kShape, kRepeat)],
                Where where = Where::current()) {
  static_assert(is_tmem_repeat(kShape, kRepeat), "tcgen05.st has no such .num for the shape");
  static_assert((kSplit > 0) == (kShape == TmemShape::k16x32bx2), "16x32bx2 alone is split");
  emulator::tmem_store({kShape, kRepeat, kSplit}, to, in, where);
}
inline void tmem_wait_load(Where where = Where::current()) { emulator::tmem_wait_load(where); }
template <int kCount>
void tmem_wait_load(uint32_t (&)[kCount], Where where = Where::current()) {
  emulator::tmem_wait_load(where);
}
template <int kCount>
void tmem_wait_load(uint32_t (&)[kCount], uint32_t (&)[kCount], Where where = Where::current()) {
  emulator::tmem_wait_load(where);
}
inline void tmem_wait_store(Where where = Where::current()) { emulator::tmem_wait_store(where); }

inline void tcgen05_fence_before_thread_sync(Where where = Where::current()) {
  emulator::tcgen05_fence_before_thread_sync(where);
}
inline void tcgen05_fence_after_thread_sync(Where where = Where::current()) {
  emulator::tcgen05_fence_after_thread_sync(where);
}

}  // namespace emu
}  // namespace pagoda::arch
