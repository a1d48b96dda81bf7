// What NVRTC compiles besides the functor's source: one kernel and its facts. Options define
// PAGODA_FUNCTOR_TYPE, the functor's type; PAGODA_FUNCTOR_FAMILY: 80, 90, 100 or, for
// mha_sm100_d512, 512; PAGODA_FUNCTOR_SHAPE and PAGODA_FUNCTOR_VARIANT, indices of the family's
// kShapes and kVariants.
#pragma once

#include "arch/ptx/kernel_entry.hpp"
#include "kernels/common/functor.hpp"
#include "runtime_functor/device/kernel_facts.hpp"

#if PAGODA_FUNCTOR_FAMILY == 80
#include "kernels/mha_sm80/functor_kernel.hpp"
#define PAGODA_FUNCTOR_BASE mha_sm80
#elif PAGODA_FUNCTOR_FAMILY == 90
#include "kernels/mha_sm90/functor_kernel.hpp"
#define PAGODA_FUNCTOR_BASE mha_sm90
#elif PAGODA_FUNCTOR_FAMILY == 100
#include "kernels/mha_sm100/functor_kernel.hpp"
#define PAGODA_FUNCTOR_BASE mha_sm100
#elif PAGODA_FUNCTOR_FAMILY == 512
#include "kernels/mha_sm100_d512/functor_kernel.hpp"
#define PAGODA_FUNCTOR_BASE mha_sm100_d512
#endif

// As the source's own code names it: names of Pagoda do not hide it.
using PagodaFunctorType = PAGODA_FUNCTOR_TYPE;

namespace pagoda::runtime_functor {

using Functor = PagodaFunctorType;
static_assert(kernels::is_functor<Functor>());

using Kernel = typename PAGODA_FUNCTOR_BASE::FunctorKernel<PAGODA_FUNCTOR_SHAPE,
                                                           PAGODA_FUNCTOR_VARIANT, Functor>::type;
using Params = typename Kernel::Params;

// AttentionParams ends with tensor maps, without padding: the functor begins where it ends.
static_assert(sizeof(kernels::AttentionParams) % alignof(Params) == 0 && alignof(Functor) <= 16);
static_assert(sizeof(Params) - sizeof(kernels::AttentionParams) - sizeof(Functor) <
              alignof(Params));

}  // namespace pagoda::runtime_functor

extern "C" __global__ void __launch_bounds__(
    pagoda::runtime_functor::Kernel::kThreads,
    pagoda::arch::ctas_per_sm<pagoda::runtime_functor::Kernel>())
    pagoda_functor_kernel(const __grid_constant__ pagoda::runtime_functor::Params params) {
  pagoda::runtime_functor::Kernel::run(params);
}

extern "C" __device__ pagoda::runtime_functor::KernelFacts pagoda_functor_facts = {
    .functor_bytes = sizeof(pagoda::runtime_functor::Functor),
    .functor_offset = sizeof(pagoda::kernels::AttentionParams),
    .params_bytes = sizeof(pagoda::runtime_functor::Params),
    .threads = pagoda::runtime_functor::Kernel::kThreads,
    .cluster = pagoda::runtime_functor::Kernel::kClusterSize,
    .shared_bytes = sizeof(pagoda::runtime_functor::Kernel::Storage),
    .is_dependent = pagoda::arch::is_dependent<pagoda::runtime_functor::Kernel>(),
    .has_keep = pagoda::kernels::HasKeep<pagoda::runtime_functor::Functor>,
    .has_score = pagoda::kernels::HasScore<pagoda::runtime_functor::Functor>,
    .is_causal = pagoda::kernels::is_causal_functor<pagoda::runtime_functor::Functor>()};
