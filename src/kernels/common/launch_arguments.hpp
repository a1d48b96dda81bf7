// LaunchArguments: what a launch plan computes for one launch of an attention kernel, and the
// kernel parameters that follow from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "arch/layout/tensor_map.hpp"
#include "kernels/common/attention_params.hpp"

namespace pagoda::kernels {

// Maps that the launch does not use keep rank 0.
struct LaunchArguments {
  AttentionArguments arguments;
  arch::TensorMapSpec q{.rank = 0}, k{.rank = 0}, v{.rank = 0}, out{.rank = 0};
  const std::byte* functor = nullptr;  // the value of the call's functor, for kernels that have one
  int32_t most_ctas_per_sm = 0;        // CUDA; 0: as many as fit
};

#if !PAGODA_ON_AMD  // where the arguments are the parameters
// `make_map`: from a specification to the tensor map of the machine at hand.
template <class MakeMap>
void set_params(AttentionParams& params, const LaunchArguments& from, const MakeMap& make_map) {
  static_cast<AttentionArguments&>(params) = from.arguments;
  if (from.q.rank != 0) params.q = make_map(from.q);
  if (from.k.rank != 0) params.k = make_map(from.k);
  if (from.v.rank != 0) params.v = make_map(from.v);
  if (from.out.rank != 0) params.out = make_map(from.out);
}
template <class Params, class MakeMap>
Params make_params(const LaunchArguments& from, const MakeMap& make_map) {
  Params params;
  set_params(params, from, make_map);
  if constexpr (requires { params.functor; }) {
    std::memcpy(&params.functor, from.functor, sizeof params.functor);
  }
  return params;
}
#endif

}  // namespace pagoda::kernels
