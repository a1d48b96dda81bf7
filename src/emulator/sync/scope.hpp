// Scopes of the PTX memory model, between threads of two CTAs of a grid.
#pragma once

#include <cstdint>
#include <string>

#include "arch/layout/types.hpp"

namespace pagoda::emulator {

using arch::Scope;

// Does `scope` around a thread of CTA `a` reach the threads of CTA `b`?
[[nodiscard]] constexpr bool includes(Scope scope, uint32_t a, uint32_t b, uint32_t cluster_size) {
  return a == b || scope >= Scope::kGpu ||
         (scope == Scope::kCluster && a / cluster_size == b / cluster_size);
}

// The narrowest that includes threads of both CTAs.
[[nodiscard]] constexpr Scope needed_scope(uint32_t a, uint32_t b, uint32_t cluster_size) {
  for (const Scope scope : {Scope::kCta, Scope::kCluster}) {
    if (includes(scope, a, b, cluster_size)) return scope;
  }
  return Scope::kGpu;
}

[[nodiscard]] inline std::string name(Scope scope) {
  return scope == Scope::kCta       ? ".cta"
         : scope == Scope::kCluster ? ".cluster"
         : scope == Scope::kGpu     ? ".gpu"
                                    : ".sys";
}

}  // namespace pagoda::emulator
