// The functors of the cases, compiled at run time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testing/conformance/case.hpp"

namespace pagoda::functor_tests {

// Compiles them for the GPUs of the process, which have this compute capability. Why they are not tested where there is no NVRTC; empty
// = they are. Throws where they do not compile.
[[nodiscard]] std::string compile_at_run_time(int32_t arch);

[[nodiscard]] FunctorCall causal_at_run_time();
// cases() by these functors.
[[nodiscard]] std::vector<conformance::Case> cases_at_run_time();

}  // namespace pagoda::functor_tests
