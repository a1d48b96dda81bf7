// The back ends in listing order: the built-in ones, then those that other libraries have
// registered (the emulator, which needs Boost).
#pragma once

#include <span>
#include <string_view>

#include "core/backend.hpp"

namespace pagoda::engine {

inline constexpr size_t kMaxBackends = 16;

[[nodiscard]] std::span<const core::Backend* const> registry();

// nullptr if no back end has that name.
[[nodiscard]] const core::Backend* find_backend(std::string_view name);
// The back end of a call whose first tensor is on `device`: the one that the options name, or the
// one of that memory ("cpu", "cuda", "hip"). kNotFound with the existing names.
[[nodiscard]] Result<const core::Backend*> backend_of(const Options& options, Device device);

// Adds a back end for the rest of the process; `backend` must live as long. Registering it again
// changes nothing. kInvalidArgument: another back end has that name. Spans from registry() stay
// valid.
[[nodiscard]] Status register_backend(const core::Backend& backend);

}  // namespace pagoda::engine
