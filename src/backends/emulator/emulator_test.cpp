// Registration and settings: plans follow the number of multiprocessors.
#include "pagoda/emulator.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

// At least 64 tiles of 128 rows of one head: the grid shows every number of multiprocessors up to
// 64.
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
  EXPECT_EQ(kernels("emu:sm80").size(), 10U);
  EXPECT_EQ(kernels("emu:sm90").size(), 20U);
  EXPECT_EQ(kernels("emu:sm100").size(), 25U);
  EXPECT_EQ(kernels("emu:gfx942").size(), 10U);
}

TEST_F(Emulator, grids_follow_the_settings_of_the_process) {
  EXPECT_EQ(planned_ctas("emu:sm90"), 3);
  EXPECT_EQ(planned_ctas("emu:sm100"), 3);
  EXPECT_EQ(planned_ctas("emu:sm100", 256), 4);  // two pairs
  ASSERT_TRUE(register_emulator({.num_sms = 40}));
  EXPECT_EQ(planned_ctas("emu:sm90"), 40);
  EXPECT_EQ(planned_ctas("emu:sm100"), 40);
  EXPECT_EQ(planned_ctas("emu:sm100", 256), 40);
}

TEST_F(Emulator, a_scope_holds_for_its_own_thread_and_scopes_nest) {
  const EmulatorScope outer({.num_sms = 20});
  EXPECT_EQ(planned_ctas("emu:sm90"), 20);
  {
    const EmulatorScope inner({.num_sms = 11});
    EXPECT_EQ(planned_ctas("emu:sm90"), 11);
    int64_t elsewhere = 0;
    std::thread([&] { elsewhere = planned_ctas("emu:sm90"); }).join();
    EXPECT_EQ(elsewhere, 3);
  }
  EXPECT_EQ(planned_ctas("emu:sm90"), 20);
}

TEST_F(Emulator, numbers_out_of_range_change_nothing) {
  ASSERT_TRUE(register_emulator({.num_sms = 5}));
  for (const int32_t number : {-1, kMaxEmulatedSms + 1}) {
    const Status status = register_emulator({.num_sms = number});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.field(), "num_sms");
  }
  EXPECT_EQ(planned_ctas("emu:sm90"), 5);
}

}  // namespace
}  // namespace pagoda
