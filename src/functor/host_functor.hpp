// Registers a functor with the engine: its name, and how host code calls it.
#pragma once

#include "engine/functors.hpp"
#include "kernels/common/functor.hpp"

// Unnamed: each compilation of a functor's file has its own.
namespace pagoda::functors {
namespace {  // NOLINT(google-build-namespaces)

template <class F>
const F& value_of(const void* value) {
  return *static_cast<const F*>(value);
}

// `Named`: struct with Functor and kName.
template <class Named>
bool register_it() {
  using F = typename Named::Functor;
  static_assert(kernels::is_functor<F>());
  core::RegisteredFunctor functor{.name = Named::kName,
                                  .number = 0,
                                  .value_bytes = sizeof(F),
                                  .is_causal = kernels::is_causal_functor<F>()};
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
