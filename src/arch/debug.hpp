// Names for reports and traces. On the GPU every function here is empty.
//
//   Role role("load")                       until it goes out of scope this thread acts as that
//   role void name_barrier(MBarrier&, const char* name, int index = -1) void name_named_barrier(int
//   id, const char* name) void name_shared(SharedPtr<const void>, uint32_t bytes, const char* name)
//   void expect(bool holds, const char* claim)           what the caller must guarantee
//   void trace_begin(const char* work), trace_end()      a span of work on the role's track
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/debug.hpp"
#else
#include "arch/emu/debug.hpp"
#endif
