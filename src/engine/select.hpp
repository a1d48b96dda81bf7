// Chooses the kernel: the first row of the back end that does not refuse, or the one forced by
// name.
#pragma once

#include "engine/registry.hpp"

namespace pagoda::engine {

// kNotFound where the library has no such back end, or the back end no kernel of the forced name.
[[nodiscard]] Status check_names(const Options& options);

// kUnsupported where every kernel, or the forced one, refuses: the message gives the reasons.
[[nodiscard]] Result<const core::Kernel*> select(const core::Problem& problem,
                                                 const Options& options);

}  // namespace pagoda::engine
