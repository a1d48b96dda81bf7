// Registers a functor with the engine: its name, and how host code calls it.
#pragma once

#include <type_traits>

#include "engine/functors.hpp"
#include "kernels/common/functor.hpp"

// Unnamed: each compilation of a functor's file has its own.
namespace pagoda::functors {
namespace {

template <class F>
constexpr bool is_causal() {
  if constexpr (requires { F::kIsCausal; }) return F::kIsCausal;
  return false;
}

template <class F>
const F& value_of(const void* value) {
  return *static_cast<const F*>(value);
}

// `Named`: struct with Functor and kName.
template <class Named>
bool register_it() {
  using F = typename Named::Functor;
  static_assert(std::is_trivially_copyable_v<F>, "a functor is copied into kernel parameters");
  static_assert(kernels::HasKeep<F> || kernels::HasScore<F>,
                "a functor has keep(const QueryRow&, int32_t) -> bool, score(const QueryRow&, "
                "int32_t, float) -> float, or both, as const members");
  static_assert(!kernels::HasVisible<F> || kernels::HasKeep<F>, "visible() needs keep()");
  core::RegisteredFunctor functor{

      .name = Named::kName, .number = 0, .value_bytes = sizeof(F), .is_causal = is_causal<F>()};
  if constexpr (kernels::HasKeep<F>) {
    functor.keep = [](const void* value, const QueryRow& row, int32_t key) {
      return value_of<F>(value).keep(row, key);
    };
  }
  if constexpr (kernels::HasVisible<F>) {
    functor.visible = [](const void* value, const QueryRows& rows) {
      return value_of<F>(value).visible(rows);
    };
  }
  if constexpr (kernels::HasScore<F>) {
    functor.score = [](const void* value, const QueryRow& row, int32_t key, float score) {
      return value_of<F>(value).score(row, key, score);
    };
  }
  engine::register_functor(std::move(functor));
  return true;
}

}  // namespace
}  // namespace pagoda::functors
