// Division: which launches a call has, and which of its sequences each of them serves. Host code.
#pragma once

#include <cstdint>
#include <optional>

#include "core/problem.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/mha_sm90/instances.hpp"

namespace pagoda::mha_sm90 {

enum class LaunchSet : uint8_t {
  // One of row tiles of tokens, some of whose CTAs decode (kernels/common/mixed_work.hpp).
  kMixed,
  kTokens,           // one of row tiles of tokens, which serves short sequences, too
  kPacked,           // one of packed rows
  kPackedAndTokens,  // both; each skips the other's sequences
};

struct Division {
  LaunchSet launches = LaunchSet::kPacked;
  // Sequences of up to so many query rows are packed (kMixed: decoded), longer ones are row tiles
  // of tokens. kPacked: what it would be if there were longer ones; INT32_MAX where these would be
  // packed, too.
  int32_t most_packed = INT32_MAX;
};

// For calls with query rows that fit() serves. `tokens`: tokens_load() of the call.
[[nodiscard]] Division divide_sequences(const core::Problem& problem, const Shape& shape,
                                        std::optional<LoadKind> tokens, int32_t num_sms,
                                        const kernels::ScheduleChoice& choice);

}  // namespace pagoda::mha_sm90
