// The table of a deadlock: what every thread waits for, and what every barrier that they wait for
// still expects.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/machine/hierarchy.hpp"

namespace pagoda::emulator {

struct Deadlock {
  const Thread* first_waiting;
  std::string message;
};

// Of a run in which nothing can happen any more; nothing: no thread waits.
[[nodiscard]] std::optional<Deadlock> describe_deadlock(
    const std::vector<std::unique_ptr<Cluster>>& clusters);

}  // namespace pagoda::emulator
