// Real half of arch/fence.hpp: fence.proxy.async (sm_90).
#pragma once

#include "arch/layout/where.hpp"
#include "arch/ptx/cuda_ptx.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE void fence_proxy_async_shared(Where = Where::current()) {
  ::cuda::ptx::fence_proxy_async(::cuda::ptx::space_shared);
}
PAGODA_DEVICE void fence_proxy_async_global(Where = Where::current()) {
  ::cuda::ptx::fence_proxy_async(::cuda::ptx::space_global);
}
PAGODA_DEVICE void fence_proxy_async(Where = Where::current()) { ::cuda::ptx::fence_proxy_async(); }

}  // namespace ptx
}  // namespace pagoda::arch
