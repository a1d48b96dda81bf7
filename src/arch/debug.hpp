// Names for reports and traces, claims, and faults of mutants. On the GPU nothing of it is left.
//
//   Role role("load")             until it goes out of scope this thread acts as that role
//   name_barrier(mbarrier, "q", index = -1)              "q[0]"
//   name_barrier(mbarrier, "kv", "full", index)          "kv full[0]"
//   name_named_barrier(id, name)
//   name_shared(SharedPtr<const void>, uint32_t bytes, name)
//   expect(bool holds, const char* claim)                what the caller must guarantee
//   trace_begin(const char* work), trace_end()           a span of work on the role's track
//   T mutable_value(const char* fault, T value, T wrong)  `value`; `wrong` in the mutant of this fault.
//                                 `wrong` must have no side effects: on the GPU nothing of it is left
//   float mutable_factor(const char* fault, float value)  `value`; 1.02 times that in the mutant
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/debug.hpp"
#else
#include "arch/emu/debug.hpp"
#endif
