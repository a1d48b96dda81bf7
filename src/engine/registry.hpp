// The back ends, in the order in which they are listed: the library's own, and those that libraries
// beside it have registered (the emulator's, which users of the library do not link).
#pragma once

#include <span>
#include <string_view>

#include "core/backend.hpp"

namespace pagoda::engine {

inline constexpr size_t kMaxBackends = 16;

[[nodiscard]] std::span<const core::Backend* const> registry();

// nullptr where there is none of that name.
[[nodiscard]] const core::Backend* find_backend(std::string_view name);
// The same for public functions: kNotFound, with the names that there are.
[[nodiscard]] Result<const core::Backend*> backend_of(const Options& options);

// Adds a back end for the rest of the process, which it must outlive. Registering it again changes
// nothing; another one of a name that is taken is refused. Spans from registry() stay valid.
[[nodiscard]] Status register_backend(const core::Backend& backend);

}  // namespace pagoda::engine
