// Latent attention (MLA with absorbed projections): V is the first columns of K, in its memory.
// Which calls its kernels serve, and their launch: packed rows, a stream-K partition. Host code.
#pragma once

#include <cstdint>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"

namespace pagoda::mha_sm90 {

// core::Kernel::fit of a shape with is_latent().
[[nodiscard]] core::Fit fit_latent(const Shape& shape, const core::Problem& problem,
                                   const Options& options, std::string* reason);

[[nodiscard]] Launch latent_launch(const core::Problem& problem, const Shape& shape,
                                   int32_t num_sms, bool may_split);

// Sets the arguments of LatentWork in calls whose work tiles it finds: one KV head, all keys up to
// a query's own or up to the last, no padding rows, positions or invariant batches, and lengths of
// dense keys or of pages, which in CSR lists hold a power of two of keys. `side_by_side`: as
// Launch's. `arguments` are those of the call.
void set_latent_work(int32_t ctas, int32_t side_by_side, kernels::AttentionArguments& arguments);

}  // namespace pagoda::mha_sm90
