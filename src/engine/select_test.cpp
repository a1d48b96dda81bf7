// Selection, forcing by name and explain() over the CPU back end's real kernels.
#include "engine/select.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

// One query on eight keys in fp32, which no bf16 kernel supports.
struct Call {
  Call() {
    attention.q = ConstTensor::contiguous(q.data(), DType::kF32, {1, 1, 1, 8});
    attention.out = Tensor::contiguous(out.data(), DType::kF32, {1, 1, 1, 8});
    attention.kv = DenseKV{.k = ConstTensor::contiguous(k.data(), DType::kF32, {1, 8, 1, 8}),
                           .v = ConstTensor::contiguous(k.data(), DType::kF32, {1, 8, 1, 8})};
  }
  std::array<float, 8> q{}, out{};
  std::array<float, 64> k{};
  Attention attention;
};

TEST(Select, the_first_supported_kernel_is_planned) {
  const Call call;
  const auto infos = explain(call.attention);
  ASSERT_TRUE(infos);
  const auto first = std::find_if(infos->begin(), infos->end(),
                                  [](const KernelInfo& info) { return info.can_run; });
  ASSERT_NE(first, infos->end());
  EXPECT_TRUE(first->is_selected);
  EXPECT_EQ(plan(call.attention)->kernel(), first->name);
}

TEST(Select, explain_gives_every_kernel_one_verdict) {
  const Call call;
  const auto infos = explain(call.attention);
  ASSERT_TRUE(infos);
  const std::vector<std::string> names = kernels("cpu");
  ASSERT_EQ(infos->size(), names.size());
  int selected = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const KernelInfo& info = (*infos)[i];
    EXPECT_EQ(info.name, names[i]);
    EXPECT_EQ(info.backend, "cpu");
    EXPECT_EQ(info.reason.empty(), info.is_selected) << info.name;
    selected += info.is_selected ? 1 : 0;
  }
  EXPECT_EQ(selected, 1);
}

TEST(Select, a_kernel_forced_by_name_is_planned) {
  const Call call;
  const auto infos = explain(call.attention);
  ASSERT_TRUE(infos);
  for (const KernelInfo& info : *infos) {
    Options options;
    options.kernel = info.name;
    const Result<Plan> planned = plan(call.attention, options);
    ASSERT_EQ(planned.ok(), info.can_run) << info.name;
    if (planned) {
      EXPECT_EQ(planned->kernel(), info.name);
    } else {
      EXPECT_EQ(planned.status().code(), StatusCode::kUnsupported);
      EXPECT_EQ(planned.status().field(), "kernel");
      EXPECT_NE(planned.status().message().find(info.name + ": " + info.reason), std::string::npos)
          << planned.status().message();
    }
    const auto forced = explain(call.attention, options);
    ASSERT_TRUE(forced);
    for (const KernelInfo& other : *forced) {
      EXPECT_EQ(other.is_selected, info.can_run && other.name == info.name);
      if (other.can_run && !other.is_selected) {
        EXPECT_EQ(other.reason, "not selected: the call requests " + info.name);
      }
    }
  }
}

TEST(Select, the_first_supported_kernel_whose_name_begins_so_is_planned) {
  const Call call;
  Options options;
  options.kernel = "cpu.f32.*";
  const Result<Plan> planned = plan(call.attention, options);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->kernel(), plan(call.attention)->kernel());
  options.kernel = "cpu.bf16.*";
  EXPECT_EQ(plan(call.attention, options).status().code(), StatusCode::kUnsupported);
  options.kernel = "gpu.*";
  EXPECT_EQ(plan(call.attention, options).status().code(), StatusCode::kNotFound);
}

TEST(Select, a_bf16_kernel_does_not_support_fp32) {
  Call call;
  Options options;
  for (const std::string& name : kernels("cpu")) {
    if (name.find("bf16") == std::string::npos) continue;
    options.kernel = name;
    EXPECT_EQ(plan(call.attention, options).status().code(), StatusCode::kUnsupported) << name;
  }
}

// A kernel that may be ranked lower is followed by one that is not.
TEST(Select, a_kernel_that_may_be_ranked_lower_has_a_successor) {
  const auto kernels = engine::find_backend("cpu")->kernels();
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].is_ranked_lower == nullptr) continue;
    ASSERT_LT(i + 1, kernels.size());
    EXPECT_EQ(kernels[i + 1].is_ranked_lower, nullptr);
  }
}

// A back end whose kernels serve nothing, and that counts the texts that are made.
struct Picky {
  static inline int texts = 0;
  static inline bool serves = false;
  template <core::Fit fit>
  static constexpr core::Kernel row(const char* name) {
    return {.name = name,
            .backend = "test:picky",
            .fit =
                [](const core::Kernel& self, const core::Problem&, const Options&,
                   std::string* reason) {
                  if (fit == core::Fit::kTypes && serves) return core::Fit::kServes;
                  return core::unfit(fit, reason, [&] {
                    ++texts;
                    return std::string("why not ") + self.name;
                  });
                },
            .plan = [](const core::Kernel&, const core::Problem&,
                       const Options&) -> Result<std::unique_ptr<core::KernelPlan>> {
              return std::make_unique<core::KernelPlan>();
            },
            .run = nullptr};
  }
  static inline const core::Kernel kRows[] = {
      row<core::Fit::kElsewhere>("elsewhere"), row<core::Fit::kShapes>("small"),
      row<core::Fit::kShapes>("large"), row<core::Fit::kTypes>("types")};
  static inline const core::Backend kBackend{
      .name = "test:picky", .kernels = [] { return std::span<const core::Kernel>(kRows); }};
};

TEST(Select, a_refusal_names_the_closest_kernel_alone) {
  ASSERT_TRUE(engine::register_backend(Picky::kBackend));
  const Call call;
  Picky::texts = 0;
  EXPECT_EQ(plan(call.attention, {.backend = "test:picky"}).status().message(),
            "no kernel can serve this call: large: why not large (the closest of 4 kernels; "
            "explain() lists all)");
  EXPECT_EQ(Picky::texts, 1);
  EXPECT_EQ(plan(call.attention, {.backend = "test:picky", .kernel = "types"}).status().message(),
            "no kernel can serve this call: types: why not types");
}

TEST(Select, no_reason_is_made_where_a_kernel_serves) {
  ASSERT_TRUE(engine::register_backend(Picky::kBackend));
  const Call call;
  Picky::texts = 0;
  Picky::serves = true;
  EXPECT_EQ(plan(call.attention, {.backend = "test:picky"})->kernel(), "types");
  EXPECT_EQ(Picky::texts, 0);
  EXPECT_EQ((*explain(call.attention, {.backend = "test:picky"}))[2].reason, "why not large");
  Picky::serves = false;
}

// A row for bf16, and a fallback for all types.
struct Slow {
  template <bool serves_all>
  static constexpr core::Kernel row(const char* name) {
    return {.name = name,
            .backend = "test:slow",
            .fit =
                [](const core::Kernel& /*self*/, const core::Problem& problem, const Options&,
                   std::string* reason) {
                  if (serves_all || problem.q.dtype == DType::kBF16) return core::Fit::kServes;
                  return core::unfit(core::Fit::kTypes, reason, [] { return "not bf16"; });
                },
            .plan = [](const core::Kernel&, const core::Problem&,
                       const Options&) -> Result<std::unique_ptr<core::KernelPlan>> {
              return std::make_unique<core::KernelPlan>();
            },
            .run = nullptr,
            .is_fallback = serves_all};
  }
  static inline const core::Kernel kRows[] = {row<false>("fast"), row<true>("slow")};
  static inline const core::Backend kBackend{
      .name = "test:slow", .kernels = [] { return std::span<const core::Kernel>(kRows); }};
};

TEST(Select, a_fallback_says_why_no_faster_kernel_serves_the_call) {
  ASSERT_TRUE(engine::register_backend(Slow::kBackend));
  const Call call;
  const auto infos = explain(call.attention, {.backend = "test:slow"});
  ASSERT_TRUE(infos) << infos.status().message();
  EXPECT_TRUE((*infos)[1].is_selected);
  EXPECT_EQ((*infos)[1].reason,
            "slow, but no faster kernel serves this call: fast: not bf16; with Q, K and V in bf16, "
            "fast does");
}

TEST(Select, names_are_unique) {
  std::vector<std::string> names;
  for (const core::Backend* backend : engine::registry()) {
    for (const core::Kernel& kernel : backend->kernels()) {
      EXPECT_EQ(kernel.backend, std::string(backend->name));
      names.emplace_back(std::string(backend->name) + "/" + kernel.name);
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace pagoda
