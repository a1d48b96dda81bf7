// RegistryRows: the registry rows of one folder of attention kernels on one machine, a GPU or the emulator.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/kernel.hpp"

namespace pagoda::kernels {

// `Kernels`: what a folder does with a shape, as struct RowFunctions there.
// `Machine`: struct with
//   Launcher                          the machine of Family
//   kBackend                          the name of its back end
//   unsupported_reason(archs, problem)  why it does not run kernels of these architectures; empty = it does
//   num_sms(problem, fewest)          multiprocessors; `fewest` show everything that the kernels do
//   make_context(row, plan, problem, workspace, context), finish(context)   around a launch
template <class Kernels, class Machine>
class RegistryRows {
 public:
  using Family = typename Kernels::template Family<typename Machine::Launcher>;

  // A row for each of Kernels::kShapes, in their order. `families`: one for each, in any order; or none
  // where the build has no code, and Machine::unsupported_reason says so.
  explicit RegistryRows(std::span<const Family> families) {
    if (!families.empty() && families.size() != std::size(Kernels::kShapes)) {
      throw std::logic_error("not one family of instances for each shape");
    }
    families_.reserve(std::size(Kernels::kShapes));  // rows point to them
    for (const auto& shape : Kernels::kShapes) {
      Family family{};
      family.shape = shape;
      if (!families.empty()) family = find(families, shape.name);
      families_.push_back(family);
      kernels_.push_back({.name = shape.name,
                          .backend = Machine::kBackend,
                          .unsupported_reason = unsupported_reason,
                          .plan = plan,
                          .run = run,
                          .ranked_lower_reason = ranked_lower_reason,
                          .data = &families_.back()});
    }
  }
  RegistryRows(const RegistryRows&) = delete;
  RegistryRows& operator=(const RegistryRows&) = delete;

  [[nodiscard]] std::span<const core::Kernel> kernels() const { return kernels_; }
  // In the order of the rows.
  [[nodiscard]] std::span<const Family> families() const { return families_; }

 private:
  using Plan = typename Kernels::Plan;

  static const Family& find(std::span<const Family> families, std::string_view name) {
    for (const Family& family : families) {
      if (family.shape.name == name) return family;
    }
    throw std::logic_error("no family of instances for shape " + std::string(name));
  }

  static const Family& family_of(const core::Kernel& kernel) {
    return *static_cast<const Family*>(kernel.data);
  }
  static int32_t num_sms(const core::Problem& problem) {
    return Machine::num_sms(problem, Kernels::kFewestSms);
  }

  static std::string unsupported_reason(const core::Kernel& self, const core::Problem& problem,
                                        const Options& /*options*/) {
    std::string reason = Machine::unsupported_reason(Kernels::kArchs, problem);
    if (!reason.empty()) return reason;
    return Kernels::unsupported_reason(family_of(self).shape, problem);
  }

  static std::string ranked_lower_reason(const core::Kernel& self, const core::Problem& problem) {
    return Kernels::ranked_lower_reason(family_of(self).shape, problem, num_sms(problem));
  }

  static Result<std::unique_ptr<core::KernelPlan>> plan(const core::Kernel& self,
                                                        const core::Problem& problem,
                                                        const Options& options) {
    return std::unique_ptr<core::KernelPlan>(
        Kernels::plan(family_of(self).shape, problem, num_sms(problem), options));
  }

  static void run(const core::Kernel& self, const core::KernelPlan& kernel_plan,
                  const core::Problem& problem, std::span<std::byte> workspace,
                  const core::RunContext& context) {
    const auto& plan = static_cast<const Plan&>(kernel_plan);
    const auto launch = [&](auto function, int32_t ctas, const auto& arguments) {
      auto launch_context = Machine::make_context(self, plan, problem, workspace, context);
      function(ctas, arguments, launch_context);
      Machine::finish(launch_context);
    };
    Kernels::run(family_of(self), plan, problem, workspace, launch);
  }

  std::vector<Family> families_;
  std::vector<core::Kernel> kernels_;
};

}  // namespace pagoda::kernels
