// Chooses the kernel: the first row of the back end that neither refuses nor yields, or the one
// forced by name.
#pragma once

#include "engine/registry.hpp"

namespace pagoda::engine {

// Why a back end can't run here; empty where it can.
[[nodiscard]] std::string unavailable_reason(const core::Backend& backend);

// kNotFound where the library has no such back end, or the back end no kernel of the forced name;
// kUnsupported where the back end can't run here; kInvalidArgument where the environment's PAGODA_ISA
// is no level.
[[nodiscard]] Status check_options(const Options& options);

// Why this kernel stands back for a later one, empty where it does not.
[[nodiscard]] std::string ranked_lower_reason(const core::Kernel& kernel,
                                              const core::Problem& problem);

// `options` have passed check_options(), as those of every validated call have.
// kUnsupported where every kernel, or the forced one, refuses: the message gives the reasons.
[[nodiscard]] Result<const core::Kernel*> select(const core::Problem& problem,
                                                 const Options& options);

}  // namespace pagoda::engine
