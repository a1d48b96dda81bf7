// Real half of arch/debug.hpp: nothing. There are no mbarriers to name.
#pragma once

#include <cstdint>

#include "arch/hip/memory.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace hip {

struct Role {
  explicit PAGODA_DEVICE Role(const char*, Where = Where::current()) {}
};
PAGODA_DEVICE void name_shared(SharedPtr<const void>, uint32_t, const char*,
                               Where = Where::current()) {}
PAGODA_DEVICE void expect(bool, const char*, Where = Where::current()) {}
PAGODA_DEVICE void trace_begin(const char*, Where = Where::current()) {}
PAGODA_DEVICE void trace_end(Where = Where::current()) {}

}  // namespace hip
}  // namespace pagoda::arch
