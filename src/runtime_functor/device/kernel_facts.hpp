// KernelFacts: what the host needs to know of a kernel that was compiled for a functor. The
// kernel's cubin holds them as the variable pagoda_functor_facts; host and device code share this
// layout.
#pragma once

#include <cstdint>

namespace pagoda::runtime_functor {

struct KernelFacts {
  int32_t functor_bytes = 0;
  int32_t functor_offset = 0;  // of the functor's value in the kernel's parameters
  int32_t params_bytes = 0;
  int32_t threads = 0;  // of a CTA
  int32_t cluster = 0;  // CTAs
  int32_t shared_bytes = 0;
  // 0 or 1.
  int32_t is_dependent = 0;
  int32_t has_keep = 0;
  int32_t has_score = 0;
  int32_t is_causal = 0;
};

}  // namespace pagoda::runtime_functor
