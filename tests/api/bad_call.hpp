// One row of the table of invalid calls: what makes the call invalid, and the expected error.
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "valid_call.hpp"

namespace pagoda::test {

struct BadCall {
  const char* name;
  Base base;
  void (*spoil)(ValidCall& call);
  const char* field;     // Status::field(), exactly
  const char* fragment;  // part of Status::message()
  StatusCode code = StatusCode::kInvalidArgument;
};

inline void PrintTo(const BadCall& bad, std::ostream* stream) { *stream << bad.name; }

[[nodiscard]] std::span<const BadCall> bad_queries();
[[nodiscard]] std::span<const BadCall> bad_caches();
[[nodiscard]] std::span<const BadCall> bad_page_tables();
[[nodiscard]] std::span<const BadCall> bad_outputs();
[[nodiscard]] std::span<const BadCall> bad_scores();
[[nodiscard]] std::span<const BadCall> bad_masks();
[[nodiscard]] std::span<const BadCall> bad_options();

}  // namespace pagoda::test
