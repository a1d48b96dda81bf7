// The rows of the table: the CPU back end's own, and the reference.
#include "engine/registry.hpp"

#include <vector>

#include "cpu/kernels.hpp"
#include "cpu/reference.hpp"

namespace pagoda::engine {
namespace {

constexpr core::Kernel kReference{
    .name = "reference",
    .backend = "reference",
    .refuses = [](const core::Problem&, const Options&) { return std::string(); },
    .plan = [](const core::Problem&, const Options&) -> Result<std::unique_ptr<core::KernelPlan>> {
      auto plan = std::make_unique<core::KernelPlan>();
      plan->num_work_items = 1;
      return plan;
    },
    .run = [](const core::KernelPlan&, const core::Problem& problem, std::span<std::byte>,
              Executor&) { cpu::reference_attention(problem); }};

}  // namespace

std::span<const core::Kernel> registry() {
  static const std::vector<core::Kernel> kKernels = [] {
    const auto cpu_kernels = cpu::kernels();
    std::vector<core::Kernel> all(cpu_kernels.begin(), cpu_kernels.end());
    all.push_back(kReference);
    return all;
  }();
  return kKernels;
}

}  // namespace pagoda::engine
