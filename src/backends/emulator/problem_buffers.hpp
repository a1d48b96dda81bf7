// The buffers of an attention call that a launch declares to the emulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/emulator/call_buffers.hpp"
#include "core/problem.hpp"

namespace pagoda::emulator {

[[nodiscard]] CallBuffers buffers_of(const core::Problem& problem, int64_t zeroed_workspace_bytes,
                                     std::span<std::byte> workspace);

}  // namespace pagoda::emulator
