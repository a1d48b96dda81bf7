// Registration and settings: plans follow the number of multiprocessors.
#include "pagoda/emulator.hpp"

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

// At least 64 row tiles of one head: the grid shows every number of multiprocessors up to 64, where
// each has one CTA. Hopper's have two at head dim 64.
int64_t planned_ctas(const char* backend, int32_t dim = 64) {
  const int64_t rows = 64 * 256;
  std::vector<uint16_t> q(static_cast<size_t>(rows * dim)), out(q.size()),
      k(static_cast<size_t>(8 * dim)), v(k.size());
  Attention a;
  a.q = ConstTensor::contiguous(q.data(), DType::kBF16, {1, rows, 1, dim});
  a.out = Tensor::contiguous(out.data(), DType::kBF16, {1, rows, 1, dim});
  a.kv = DenseKV{.k = ConstTensor::contiguous(k.data(), DType::kBF16, {1, 8, 1, dim}),
                 .v = ConstTensor::contiguous(v.data(), DType::kBF16, {1, 8, 1, dim})};
  const Result<Plan> planned = plan(a, Options{.backend = backend});
  return planned ? planned->num_work_items() : -1;
}

class Emulator : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(register_emulator()); }
};

TEST_F(Emulator, is_registered_once_by_several_calls) {
  ASSERT_TRUE(register_emulator());
  ASSERT_TRUE(register_emulator({.num_sms = 7}));
  int found = 0;
  for (const BackendInfo& info : backends()) found += info.name.starts_with("emu:") ? 1 : 0;
  EXPECT_EQ(found, 4);
  EXPECT_EQ(kernels("emu:sm80").size(), 13U);
  EXPECT_EQ(kernels("emu:sm90").size(), 39U);
  EXPECT_EQ(kernels("emu:sm100").size(), 28U);
  EXPECT_EQ(kernels("emu:gfx942").size(), 13U);
}

struct Selected {
  std::string kernel, reason;
};
Selected selected(const char* backend, DType q, DType kv, int32_t dim) {
  std::vector<float> memory(static_cast<size_t>(64 * dim));
  Attention a;
  a.q = ConstTensor::contiguous(memory.data(), q, {1, 4, 1, dim});
  a.out = Tensor::contiguous(memory.data() + 32 * dim, DType::kBF16, {1, 4, 1, dim});
  const auto keys = ConstTensor::contiguous(memory.data() + 8 * dim, kv, {1, 8, 1, dim});
  a.kv = DenseKV{.k = keys, .v = keys};
  const Options options{.backend = backend};
  const auto infos = explain(a, options);
  const Result<Plan> planned = plan(a, options);
  if (!infos || !planned) return {planned.status().message(), infos.status().message()};
  for (const KernelInfo& info : *infos) {
    if (info.is_selected) return {planned->kernel(), info.reason};
  }
  return {planned->kernel(), "no row is selected"};
}

// What no kernel with matrix cores serves takes the one without, which says why.
TEST_F(Emulator, serves_every_type_and_says_why_by_a_slow_kernel) {
  for (const char* backend : {"emu:sm80", "emu:sm90", "emu:sm100", "emu:gfx942"}) {
    SCOPED_TRACE(backend);
    Selected fp32 = selected(backend, DType::kF32, DType::kF32, 128);
    EXPECT_EQ(fp32.kernel, "simt.d128");
    EXPECT_NE(fp32.reason.find("queries are fp32"), std::string::npos) << fp32.reason;
    EXPECT_NE(fp32.reason.find("; with Q, K and V in bf16, "), std::string::npos) << fp32.reason;
    EXPECT_NE(fp32.reason.find(".d128.bf16 does"), std::string::npos) << fp32.reason;
    EXPECT_EQ(selected(backend, DType::kF32, DType::kF32, 136).kernel, "simt.d256");
    EXPECT_EQ(selected(backend, DType::kF32, DType::kF32, 576).kernel, "simt.d576");
    EXPECT_EQ(selected(backend, DType::kBF16, DType::kBF16, 128).reason, "");
  }
  const Selected fp8 = selected("emu:sm80", DType::kF8E4M3, DType::kF8E4M3, 64);
  EXPECT_EQ(fp8.kernel, "simt.d128");
  EXPECT_NE(fp8.reason.find("; with Q in bf16, sm80.d64.bf16 does"), std::string::npos)
      << fp8.reason;
  const Selected hopper = selected("emu:sm90", DType::kF8E4M3, DType::kF8E4M3, 64);
  EXPECT_EQ(hopper.kernel, "sm90_decode.d64.f8e4m3");
  EXPECT_EQ(hopper.reason, "");
  const Selected hopper_cache = selected("emu:sm90", DType::kBF16, DType::kF8E4M3, 128);
  EXPECT_EQ(hopper_cache.kernel, "sm90_decode.d128.bf16");
  EXPECT_EQ(selected("emu:sm90", DType::kF8E4M3, DType::kF8E4M3, 512).kernel, "simt.d576");
}

TEST_F(Emulator, grids_follow_the_settings_of_the_process) {
  EXPECT_EQ(planned_ctas("emu:sm90", 96), 3);
  EXPECT_EQ(planned_ctas("emu:sm100"), 3);
  EXPECT_EQ(planned_ctas("emu:sm100", 128), 2);  // a pair: every row sees all keys
  EXPECT_EQ(planned_ctas("emu:sm100", 256), 4);  // two pairs
  ASSERT_TRUE(register_emulator({.num_sms = 40}));
  EXPECT_EQ(planned_ctas("emu:sm90", 96), 40);
  EXPECT_EQ(planned_ctas("emu:sm100"), 40);
  EXPECT_EQ(planned_ctas("emu:sm100", 256), 40);
}

TEST_F(Emulator, a_scope_holds_for_its_own_thread_and_scopes_nest) {
  const EmulatorScope outer({.num_sms = 20});
  EXPECT_EQ(planned_ctas("emu:sm90", 96), 20);
  {
    const EmulatorScope inner({.num_sms = 11});
    EXPECT_EQ(planned_ctas("emu:sm90", 96), 11);
    int64_t elsewhere = 0;
    std::thread([&] { elsewhere = planned_ctas("emu:sm90", 96); }).join();
    EXPECT_EQ(elsewhere, 3);
  }
  EXPECT_EQ(planned_ctas("emu:sm90", 96), 20);
}

TEST_F(Emulator, numbers_out_of_range_change_nothing) {
  ASSERT_TRUE(register_emulator({.num_sms = 5}));
  for (const int32_t number : {-1, kMaxEmulatedSms + 1}) {
    const Status status = register_emulator({.num_sms = number});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.field(), "num_sms");
  }
  EXPECT_EQ(planned_ctas("emu:sm90", 96), 5);
}

}  // namespace
}  // namespace pagoda
