// Real half of arch/debug.hpp: nothing.
#pragma once

#include <cstdint>

#include "arch/layout/where.hpp"
#include "arch/ptx/mbarrier.hpp"
#include "arch/ptx/memory.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

struct Role {
  explicit PAGODA_DEVICE Role(const char*, Where = Where::current()) {}
};
PAGODA_DEVICE void name_barrier(MBarrier&, const char*, int = -1, Where = Where::current()) {}
PAGODA_DEVICE void name_barrier(MBarrier&, const char*, const char*, int,
                                Where = Where::current()) {}
PAGODA_DEVICE void name_named_barrier(int, const char*, Where = Where::current()) {}
PAGODA_DEVICE void name_shared(SharedPtr<const void>, uint32_t, const char*,
                               Where = Where::current()) {}
PAGODA_DEVICE void expect(bool, const char*, Where = Where::current()) {}
PAGODA_DEVICE void trace_begin(const char*, Where = Where::current()) {}
PAGODA_DEVICE void trace_end(Where = Where::current()) {}

}  // namespace ptx
}  // namespace pagoda::arch
