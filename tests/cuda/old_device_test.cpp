// A machine whose only GPU, a T4, is older than all compiled code (tests/cuda/CMakeLists.txt).
#include <gtest/gtest.h>

#include "fake_cudart.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda::cuda_tests {
namespace {

TEST(OldDevice, the_back_end_cannot_run_and_says_what_it_needs) {
  ASSERT_EQ(described_devices().size(), 1U);
  for (const BackendInfo& info : backends()) {
    if (info.name != "cuda") continue;
    EXPECT_FALSE(info.is_available);
    EXPECT_NE(info.description.find("sm_80 or later"), std::string::npos) << info.description;
    EXPECT_NE(info.description.find("T4 (sm_75)"), std::string::npos) << info.description;
    return;
  }
  FAIL() << "no back end cuda";
}

}  // namespace
}  // namespace pagoda::cuda_tests
