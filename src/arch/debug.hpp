// Names for reports and traces, and claims. On the GPU they leave no code.
//
//   Role role("load")             the role of this thread until the object goes out of scope
//   name_barrier(mbarrier, "q", index = -1)              "q[0]"
//   name_barrier(mbarrier, "kv", "full", index)          "kv full[0]"
//   name_named_barrier(id, name)
//   name_shared(SharedPtr<const void>, uint32_t bytes, name)
//   expect(bool holds, const char* claim)                what the caller must guarantee
//   trace_begin(const char* work), trace_end()           a span of work on the role's track
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/debug.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/debug.hpp"
#else
#include "arch/emu/debug.hpp"
#endif
