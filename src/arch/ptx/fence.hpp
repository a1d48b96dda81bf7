// PTX implementation of arch/fence.hpp (sm_90).
//
// PTX ISA, "Parallel Synchronization and Communication Instructions": membar / fence,
// fence.proxy.async; "Memory Consistency Model": Proxies. The fence orders this thread's accesses
// only: other threads' writes come before it through a barrier or an acquire.
#pragma once

#include "arch/layout/where.hpp"
#include "arch/ptx/cuda_ptx.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE void fence_proxy_async_shared(Where = Where::current()) {
  ::cuda::ptx::fence_proxy_async(::cuda::ptx::space_shared);
}
PAGODA_DEVICE void fence_proxy_async(Where = Where::current()) { ::cuda::ptx::fence_proxy_async(); }

}  // namespace ptx
}  // namespace pagoda::arch
