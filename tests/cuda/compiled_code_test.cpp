// Which GPUs the code of a build runs on, for builds with other architectures than this one:
// compiled once for each PAGODA_HELD_ARCHS (tests/cuda/CMakeLists.txt).
#include "backends/cuda/compiled_code.hpp"

#include <gtest/gtest.h>
#include <map>
#include <vector>

#include "kernels/families.hpp"

namespace pagoda::cuda {
namespace {

struct Build {
  std::string held_code;
  std::string missing_of_sm80;             // of mha_sm80
  std::vector<int32_t> sm80, sm90, sm100;  // the GPUs that the family runs on
};

const std::map<std::string, Build> kBuilds = {
    {"80.90.100.103",
     {"sm_80, sm_90a, sm_100a, sm_103a",
      "",
      {80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121, 200},
      {90},
      {100, 103}}},
    {"86", {"sm_86", "sm_80", {86, 88, 89}, {}, {}}},
    {"90", {"sm_90a", "sm_80", {90}, {90}, {}}},
    {"89.120", {"sm_89, sm_120", "sm_80", {89, 120, 121}, {}, {}}},
};

std::vector<int32_t> gpus_of(const kernels::Archs& archs) {
  std::vector<int32_t> gpus;
  for (const int32_t arch : {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121, 200}) {
    if (has_code(archs, arch)) gpus.push_back(arch);
  }
  return gpus;
}

TEST(CompiledCode, runs_where_the_programming_guide_says) {
  const Build& build = kBuilds.at(PAGODA_HELD_ARCHS);
  EXPECT_EQ(gpus_of(mha_sm80::Family::kArchs), build.sm80);
  EXPECT_EQ(gpus_of(mha_sm90::Family::kArchs), build.sm90);
  EXPECT_EQ(gpus_of(mha_sm90_decode::Family::kArchs), build.sm90);
  EXPECT_EQ(gpus_of(mha_sm100::Family::kArchs), build.sm100);
  EXPECT_EQ(gpus_of(mha_sm100_d512::Family::kArchs), build.sm100);
  for (const int32_t arch : {75, 80, 86, 90, 103, 120, 200}) {
    // Every GPU of the other families is one of mha_sm80.
    EXPECT_EQ(has_attention_code(arch), has_code(mha_sm80::Family::kArchs, arch)) << arch;
  }
}

TEST(CompiledCode, is_named) {
  const Build& build = kBuilds.at(PAGODA_HELD_ARCHS);
  EXPECT_EQ(held_code(), build.held_code);
  EXPECT_EQ(missing_code(mha_sm80::Family::kArchs), build.missing_of_sm80);
}

}  // namespace
}  // namespace pagoda::cuda
