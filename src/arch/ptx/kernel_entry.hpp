// kernel_entry: the entry of a kernel, which is a struct with Params, Storage, run(), kThreads,
// kClusterSize and kMinArch. On an architecture that lacks the kernel's instructions its body is
// empty.
//
// CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization", "Grid
// Constants".
#pragma once

#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

#if defined(__CUDA_ARCH__)
inline constexpr int kTargetArch = __CUDA_ARCH__ / 10;
#else
inline constexpr int kTargetArch = 0;
#endif

// wgmma exists on sm_90 only: a kernel that uses it has kMaxArch = 90.
template <class Kernel>
PAGODA_HOST_DEVICE constexpr bool runs_on(int arch) {
  if (arch < Kernel::kMinArch) return false;
  if constexpr (requires { Kernel::kMaxArch; }) return arch <= Kernel::kMaxArch;
  return true;
}

// Minimum of resident CTAs per SM; one unless the kernel has kCtasPerSm.
template <class Kernel>
constexpr int ctas_per_sm() {
  if constexpr (requires { Kernel::kCtasPerSm; }) return Kernel::kCtasPerSm;
  return 1;
}

// Without the minimum of CTAs ptxas does not know the registers per thread at entry and ignores
// setmaxnreg.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, ctas_per_sm<Kernel>())
    kernel_entry(const __grid_constant__ typename Kernel::Params params) {
  if constexpr (runs_on<Kernel>(kTargetArch)) Kernel::run(params);
}

// Programmatic dependent launch: the kernel may start before the previous kernel of the stream has
// ended, and accesses no global memory before grid_dependency_wait.
template <class Kernel>
constexpr bool is_dependent() {
  if constexpr (requires { Kernel::kIsDependent; }) return Kernel::kIsDependent;
  return false;
}

}  // namespace ptx
}  // namespace pagoda::arch
