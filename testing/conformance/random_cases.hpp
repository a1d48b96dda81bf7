// Cases drawn at random: combinations of lengths, shapes, layouts and options that no list of cases
// has.
#pragma once

#include <cstdint>
#include <vector>

#include "testing/conformance/case.hpp"

namespace pagoda::conformance {

// The first `count` cases of a seed, the same on every machine. The name of case i ends in
// random<seed>_<i>. Tiles of 64 rows have at most 100 million multiply-adds in a case, which the
// emulator runs in a second or two.
[[nodiscard]] std::vector<Case> random_cases(int64_t seed, int64_t count);

}  // namespace pagoda::conformance
