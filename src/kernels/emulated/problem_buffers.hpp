// The memory of an attention call as the emulator wants it declared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/problem.hpp"
#include "kernels/emulated/call_buffers.hpp"

namespace pagoda::emulated {

[[nodiscard]] CallBuffers buffers_of(const core::Problem& problem, int64_t zeroed_workspace_bytes,
                                     std::span<std::byte> workspace);

}  // namespace pagoda::emulated
