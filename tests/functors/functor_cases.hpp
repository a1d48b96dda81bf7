// Rows of the conformance table with the functors of examples/functors, for every back end.
#pragma once

#include <cstdint>
#include <vector>

#include "testing/conformance/case.hpp"

namespace pagoda::functor_tests {

// The arrays that the functors of the cases read.
inline const std::vector<int32_t> kDocuments{0, 70, 150, 555, 640};
inline const std::vector<float> kSlopes{0.02F, 0.3F, 0.005F, 0.11F};
constexpr int32_t kPrefix = 19;

// Documents of `kDocuments`, with a common prefix.
[[nodiscard]] FunctorCall documents();
// The mask that it re-states, as a predicate of the CPU.
[[nodiscard]] Mask documents_on_the_cpu();
// HeadDecay by `kSlopes` times `factor`: the slopes are a static array of the factor.
[[nodiscard]] FunctorCall head_decay(bool is_steeper = false);
[[nodiscard]] FunctorCall causal();

// Prefill, chunked prefill and decode over every cache layout, KV splits, batch invariance.
[[nodiscard]] std::vector<conformance::Case> cases();
// Those that the kernels of a back end must serve; emu:sm80 has functors for 16-bit caches alone.
[[nodiscard]] bool may_skip(const conformance::Case& c, std::string_view backend);

}  // namespace pagoda::functor_tests
