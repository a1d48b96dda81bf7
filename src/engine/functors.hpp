// The functors of this process, and their kernels on GPUs and emulators. The program that contains
// them registers them when it starts (src/functor); the library has none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/functor.hpp"
#include "core/kernel.hpp"

namespace pagoda::engine {

// For the rest of the process. A second functor of the same name makes the name ambiguous: calls
// that name it fail.
void register_functor(core::RegisteredFunctor functor);

// `kernels` live as long as the process. Rows of lower `rank` are preferred.
void register_functor_kernels(std::string_view functor, std::string_view backend, int32_t rank,
                              std::span<const core::Kernel> kernels);

// Null: no functor has that name.
[[nodiscard]] const core::RegisteredFunctor* find_functor(std::string_view name);
[[nodiscard]] bool is_ambiguous(const core::RegisteredFunctor& functor);
[[nodiscard]] std::string functor_names();  // "a, b"; empty: none

// The kernels of a back end that are compiled for functors, best first; of any where `functor` is
// null.
[[nodiscard]] std::vector<const core::Kernel*> functor_kernels(
    std::string_view backend, const core::RegisteredFunctor* functor);

}  // namespace pagoda::engine
