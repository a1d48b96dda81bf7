// Back ends that other libraries register, and back ends that can't run here.
#include "engine/registry.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <gtest/gtest.h>

#include "engine/host_workspace.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

constexpr auto kNoKernels = [] { return std::span<const core::Kernel>(); };
constexpr auto kNothing = [] { return std::string("nothing"); };

constexpr core::Backend kBare{.name = "test:bare", .kernels = kNoKernels, .description = kNothing};
constexpr core::Backend kTaken{.name = "cpu", .kernels = kNoKernels, .description = kNothing};
constexpr core::Backend kBroken{
    .name = "test:broken",
    .kernels = kNoKernels,
    .description = kNothing,
    .unavailable_reason = [] { return std::string("its wheels are missing"); }};

const BackendInfo* find(const std::vector<BackendInfo>& infos, const std::string& name) {
  const auto at = std::find_if(infos.begin(), infos.end(),
                               [&](const BackendInfo& info) { return info.name == name; });
  return at == infos.end() ? nullptr : &*at;
}

TEST(Registry, takes_back_ends_from_outside_once) {
  const size_t before = engine::registry().size();
  ASSERT_TRUE(engine::register_backend(kBare));
  ASSERT_TRUE(engine::register_backend(kBare));
  EXPECT_EQ(engine::registry().size(), before + 1);
  EXPECT_EQ(engine::find_backend("test:bare"), &kBare);
  const std::vector<BackendInfo> infos = backends();
  ASSERT_NE(find(infos, "test:bare"), nullptr);
  EXPECT_EQ(find(infos, "test:bare")->description, "nothing");
  EXPECT_TRUE(kernels("test:bare").empty());
}

TEST(Registry, rejects_a_name_that_is_taken) {
  const Status status = engine::register_backend(kTaken);
  EXPECT_EQ(status.message(), "backend is \"cpu\"; another back end has that name");
  EXPECT_NE(engine::find_backend("cpu"), &kTaken);
}

TEST(Registry, lists_cuda_in_every_build_and_says_why_it_can_not_run) {
  const std::vector<BackendInfo> infos = backends();
  const BackendInfo* cuda = find(infos, "cuda");
  ASSERT_NE(cuda, nullptr);
  EXPECT_EQ(cuda->memory, DeviceType::kCuda);
  EXPECT_FALSE(cuda->description.empty());
  if (cuda->is_available) return;
  const Status status = run(Attention{}, Options{.backend = "cuda"});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), "backend \"cuda\" can't run here: " + cuda->description);
}

TEST(Registry, an_unavailable_back_end_rejects_every_call) {
  ASSERT_TRUE(engine::register_backend(kBroken));
  const Options options{.backend = "test:broken"};
  for (const Status& status :
       {plan(Attention{}, options).status(), explain(Attention{}, options).status(),
        run(Attention{}, options), append_kv(AppendKV{}, options),
        merge_states(MergeStates{}, options)}) {
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_EQ(status.field(), "backend");
    EXPECT_NE(status.message().find("its wheels are missing"), std::string::npos);
  }
}

TEST(Registry, a_back_end_without_kernels_or_states_says_so) {
  ASSERT_TRUE(engine::register_backend(kBare));
  std::array<float, 8> q{}, k{}, out{};
  Attention a;
  a.q = ConstTensor::contiguous(q.data(), DType::kF32, {1, 1, 1, 8});
  a.out = Tensor::contiguous(out.data(), DType::kF32, {1, 1, 1, 8});
  a.kv = DenseKV{.k = ConstTensor::contiguous(k.data(), DType::kF32, {1, 1, 1, 8}),
                 .v = ConstTensor::contiguous(k.data(), DType::kF32, {1, 1, 1, 8})};
  const Status status = run(a, Options{.backend = "test:bare"});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("has no kernels"), std::string::npos) << status.message();
  MergeStates merge;
  merge.partial_out = ConstTensor::contiguous(q.data(), DType::kF32, {1, 1, 1, 8});
  merge.partial_lse = ConstTensor::contiguous(k.data(), DType::kF32, {1, 1, 1});
  merge.out = Tensor::contiguous(out.data(), DType::kF32, {1, 1, 8});
  EXPECT_EQ(merge_states(merge, Options{.backend = "test:bare"}).message(),
            "back end test:bare does not support merge_states");
}

// A plan with splits needs a workspace, which the thread keeps.
TEST(HostWorkspace, of_the_calling_thread_is_released) {
  {
    engine::HostWorkspaceLease lease({.bytes = 4096, .zeroed = 64});
    lease.give_back();
  }
  EXPECT_GE(engine::kept_host_bytes(), 4096U);
  ASSERT_TRUE(release_workspaces());
  EXPECT_EQ(engine::kept_host_bytes(), 0U);
}

// The scratch of one plan must not overlap the zeroed bytes of another.
TEST(HostWorkspace, zeros_survive_the_scratch_of_other_plans) {
  engine::HostWorkspace workspace;
  const auto dirty = [&](core::WorkspaceSize size) {
    const std::span<std::byte> all = workspace.at_least(size);
    EXPECT_EQ(all.size(), static_cast<size_t>(size.bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(all.data()) % 64, 0U);
    const auto zeroed = static_cast<size_t>(size.zeroed);
    for (const std::byte b : all.first(zeroed)) ASSERT_EQ(b, std::byte{0});
    std::memset(all.data() + zeroed, 0xff, all.size() - zeroed);
  };
  dirty({.bytes = 1024, .zeroed = 512});
  dirty({.bytes = 512, .zeroed = 0});
  dirty({.bytes = 576, .zeroed = 64});
  dirty({.bytes = 640, .zeroed = 512});
  dirty({.bytes = 5000, .zeroed = 1024});
  dirty({.bytes = 3000, .zeroed = 64});
  dirty({.bytes = 2000, .zeroed = 1024});
}

}  // namespace
}  // namespace pagoda
