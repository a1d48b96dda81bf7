// What the host reads of a cubin, an ELF file, before it is loaded.
#pragma once

#include <optional>
#include <string_view>

#include "runtime_functor/device/kernel_facts.hpp"

namespace pagoda::runtime_functor {

// The names of the kernel and of its facts in every cubin (device/program.hpp).
inline constexpr const char* kKernelName = "pagoda_functor_kernel";
inline constexpr const char* kFactsName = "pagoda_functor_facts";

// The facts of the kernel; none where the file is not such a cubin.
[[nodiscard]] std::optional<KernelFacts> read_facts(std::string_view cubin);

}  // namespace pagoda::runtime_functor
