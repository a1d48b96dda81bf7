// KernelTable: the registry rows of all attention families on one machine, a GPU or the emulator.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/kernel.hpp"
#include "kernels/common/archs.hpp"
#include "kernels/common/instance.hpp"

namespace pagoda::kernels {

// A family describes itself to this table by struct Family in its family.hpp:
//   kShapes         what is compiled, a row each; a Shape has a `name`
//   Functor         optional: the functor that its kernels are compiled for (functor_family.hpp)
//   kArchs          the GPUs that it is for, an Archs
//   kFewestSms      SM count that the emulator plans with by default: the least at which every code
//                   path of the kernels runs
//   kNumVariants    kernels of one shape; each launch of a plan runs one of them
//   Plan            a core::KernelPlan
//   fit(shape, problem, options, reason)          core::Kernel::fit of a shape
//   is_ranked_lower(shape, problem, num_sms, options, reason)
//                   optional: whether a later row is preferred
//   kIsFallback     optional: core::Kernel::is_fallback
//   plan(shape, problem, num_sms, options)
//   run(plan, problem, workspace, launch)         calls launch(variant, ctas, arguments)
template <class... Families>
struct FamilyList {};

// `Machine`: struct with
//   Launcher                            OnGpu, OnHip or OnEmulator
//   kBackend                            the name of its back end
//   serves(archs), has_code(archs)      constexpr: whether its table has rows for these
//                                       architectures; whether the program holds their instances
//   can_run(archs, problem)             whether kernels of these architectures can run
//   unsupported_reason(archs, problem)  why they cannot
//   num_sms(problem, fewest)            multiprocessors that a plan counts on
//   make_context(row, plan, problem, workspace, context), finish(context)   around a launch
template <class Machine>
class KernelTable {
 public:
  // Rows in the order of the families, and of the shapes in each.
  template <class... Families>
  explicit KernelTable(FamilyList<Families...> /*families*/) {
    (add<Families>(), ...);
  }

  [[nodiscard]] std::span<const core::Kernel> kernels() const { return kernels_; }

 private:
  using Launcher = typename Machine::Launcher;

  template <class Family>
  struct Row {
    typename Family::Shape shape;
    LaunchFunctions<Launcher, Family> functions;
  };

  template <class Family>
  void add() {
    if constexpr (Machine::serves(Family::kArchs)) {
      for (const Row<Family>& row : rows<Family>()) {
        kernels_.push_back({.name = row.shape.name,
                            .backend = Machine::kBackend,
                            .fit = fit<Family>,
                            .plan = plan<Family>,
                            .run = run<Family>,
                            .is_ranked_lower = ranking<Family>(),
                            .data = &row,
                            .is_fallback = is_fallback<Family>()});
      }
    }
  }

  // Without code the functions are null, and Machine::can_run is false.
  template <class Family, size_t... shape>
  static auto make_rows(std::index_sequence<shape...> /*shapes*/) {
    if constexpr (Machine::has_code(Family::kArchs)) {
      return std::array{
          Row<Family>{Family::kShapes[shape], instance<Launcher, Family, shape>()}...};
    } else {
      return std::array{Row<Family>{Family::kShapes[shape], {}}...};
    }
  }
  template <class Family>
  static const auto& rows() {
    static const auto kRows =
        make_rows<Family>(std::make_index_sequence<std::size(Family::kShapes)>());
    return kRows;
  }

  template <class Family>
  static const Row<Family>& row_of(const core::Kernel& kernel) {
    return *static_cast<const Row<Family>*>(kernel.data);
  }
  template <class Family>
  static int32_t num_sms(const core::Problem& problem) {
    return Machine::num_sms(problem, Family::kFewestSms);
  }

  template <class Family>
  static core::Fit fit(const core::Kernel& self, const core::Problem& problem,
                       const Options& options, std::string* reason) {
    if (!Machine::can_run(Family::kArchs, problem)) {
      return core::unfit(core::Fit::kElsewhere, reason,
                         [&] { return Machine::unsupported_reason(Family::kArchs, problem); });
    }
    if constexpr (!requires { typename Family::Functor; }) {
      if (problem.functor.type != nullptr) {
        return core::unfit(core::Fit::kElsewhere, reason, [&] {
          return "it is compiled without functor \"" + problem.functor.type->name + "\"";
        });
      }
    }
    return Family::fit(row_of<Family>(self).shape, problem, options, reason);
  }

  // core::Kernel::is_ranked_lower of a family; null where it ranks no row lower.
  template <class Family>
  static constexpr decltype(core::Kernel::is_ranked_lower) ranking() {
    if constexpr (requires { Family::is_ranked_lower; }) {
      return [](const core::Kernel& self, const core::Problem& problem, const Options& options,
                std::string* reason) {
        return Family::is_ranked_lower(row_of<Family>(self).shape, problem,
                                       num_sms<Family>(problem), options, reason);
      };
    } else {
      return nullptr;
    }
  }

  template <class Family>
  static constexpr bool is_fallback() {
    if constexpr (requires { Family::kIsFallback; }) return Family::kIsFallback;
    return false;
  }

  template <class Family>
  static Result<std::unique_ptr<core::KernelPlan>> plan(const core::Kernel& self,
                                                        const core::Problem& problem,
                                                        const Options& options) {
    return std::unique_ptr<core::KernelPlan>(
        Family::plan(row_of<Family>(self).shape, problem, num_sms<Family>(problem), options));
  }

  template <class Family>
  static void run(const core::Kernel& self, const core::KernelPlan& kernel_plan,
                  const core::Problem& problem, std::span<std::byte> workspace,
                  const core::RunContext& context) {
    const auto& plan = static_cast<const typename Family::Plan&>(kernel_plan);
    const auto launch = [&](size_t variant, int32_t ctas, const LaunchArguments& arguments) {
      auto launch_context = Machine::make_context(self, plan, problem, workspace, context);
      row_of<Family>(self).functions[variant](ctas, arguments, launch_context);
      Machine::finish(launch_context);
    };
    Family::run(plan, problem, workspace, launch);
  }

  std::vector<core::Kernel> kernels_;
};

}  // namespace pagoda::kernels
