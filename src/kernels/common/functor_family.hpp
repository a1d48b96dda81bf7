// FunctorFamily: one shape of a family of attention kernels, compiled for a functor, as
// kernels::KernelTable asks for it. The plan is that of the family's plain kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "kernels/common/call_arguments.hpp"
#include "kernels/common/instance.hpp"

namespace pagoda::kernels {

// Why the kernels of a functor can't serve a call that the family's plain kernels would be planned
// for; empty = they can. `needs_aligned_kv`: they have cp.async alone.
[[nodiscard]] std::string unsupported_functor_reason(const core::Problem& problem,
                                                     bool needs_aligned_kv);

// What the kernels of a functor serve, and their launches.
template <class Base>
struct FunctorLaunches : Base {
  // Only the families on KVBuffer, whose plain kernels have cp.async alone.
  static constexpr bool kNeedsAlignedKV = requires { Base::kPlainNeedsAlignedKV; };

  static core::Fit fit(const typename Base::Shape& of_row, const core::Problem& problem,
                       const Options& options, std::string* reason) {
    const core::Fit fit = Base::fit(of_row, problem, options, reason);
    if (fit != core::Fit::kServes) return fit;
    std::string unsupported = unsupported_functor_reason(problem, kNeedsAlignedKV);
    if (unsupported.empty()) return fit;
    return core::unfit(core::Fit::kFeatures, reason, [&] { return unsupported; });
  }

  template <class LaunchVariant>
  static void run(const typename Base::Plan& plan, const core::Problem& problem,
                  std::span<std::byte> workspace, const LaunchVariant& launch_variant) {
    Base::run(plan, problem, workspace, [&](size_t variant, int32_t ctas, LaunchArguments from) {
      from.functor = static_cast<const std::byte*>(problem.functor.value);
      launch_variant(variant, ctas, from);
    });
  }
};

// Rows of smaller head dims come first, and a GPU's own family before the one for every GPU.
template <class Base>
constexpr int32_t functor_rank(const typename Base::Shape& shape) {
  const int32_t of_family = Base::kArchs.has_ptx ? 1 << 16 : 0;
  if constexpr (requires { shape.depth_qk; }) {
    return of_family + shape.depth_qk + shape.depth_vo;
  } else {
    return of_family + 2 * shape.depth;
  }
}

// `Named`: struct with Functor and kName. Base::kShapes[shape] has the tiles.
template <class Base, size_t shape, class Named>
struct FunctorFamily : FunctorLaunches<Base> {
  using Functor = typename Named::Functor;
  using Shape = typename Base::Shape;

 private:
  // "sm90.d128.bf16+documents"
  static constexpr auto kText = [] {
    constexpr std::string_view plain = Base::kShapes[shape].name, functor = Named::kName;
    std::array<char, plain.size() + functor.size() + 2> text{};
    std::copy(plain.begin(), plain.end(), text.begin());
    text[plain.size()] = '+';
    std::copy(functor.begin(), functor.end(), text.begin() + plain.size() + 1);
    return text;
  }();
  static constexpr Shape renamed() {
    Shape result = Base::kShapes[shape];
    result.name = kText.data();
    return result;
  }

 public:
  static constexpr Shape kShapes[] = {renamed()};
};

}  // namespace pagoda::kernels
