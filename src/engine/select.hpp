// Kernel selection: the first supported row of the back end that is not ranked lower, among
// those that Options::kernel names.
#pragma once

#include "engine/registry.hpp"

namespace pagoda::engine {

// Why a back end can't run here; empty = it can.
[[nodiscard]] std::string unavailable_reason(const core::Backend& backend);

// The back end of a call whose first tensor is on `device`. kNotFound: no back end, or no kernel of
// it, has the given name. kUnsupported: the back end can't run here. kInvalidArgument: PAGODA_ISA
// names no level.
[[nodiscard]] Result<const core::Backend*> check_options(const Options& options, Device device);

// Why a later kernel is preferred to this one; empty = none is.
[[nodiscard]] std::string ranked_lower_reason(const core::Kernel& kernel,
                                              const core::Problem& problem);

// `options` must have passed check_options(), which validate() calls. kUnsupported: no kernel, or
// not the requested one, supports the problem; the message has the reason of the closest one.
[[nodiscard]] Result<const core::Kernel*> select(const core::Problem& problem,
                                                 const Options& options);

}  // namespace pagoda::engine
