// Tests of the ceilings at the ISA levels of this machine.
#include "bench/ceilings/ceilings.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/ceilings/kernels.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::bench {
namespace {

bool has_level(const std::string& level) {
  const std::vector<std::string> levels = cpu_isa_levels();
  return std::find(levels.begin(), levels.end(), level) != levels.end();
}

TEST(Ceilings, every_read_loop_sees_every_byte) {
  std::vector<uint64_t> data(512, 0);
  const auto check = [&](uint64_t (*read)(const void*, int64_t), const char* name) {
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = 0x1234;
      ASSERT_EQ(read(data.data(), static_cast<int64_t>(data.size() * 8)), 0x1234U)
          << name << " at word " << i;
      data[i] = 0;
    }
  };
  check(read_scalar, "scalar");
  if (has_level("avx2")) check(read_avx2, "avx2");
  if (has_level("avx512")) check(read_avx512, "avx512");
}

TEST(Ceilings, one_for_every_level_of_this_machine_and_no_other) {
  const Ceilings ceilings = measure_ceilings(1);
  for (const ComputeCeiling& c : ceilings.compute) {
    EXPECT_TRUE(has_level(c.isa)) << c.isa;
    EXPECT_GT(c.flops.one_thread, 0) << c.isa;
  }
  EXPECT_EQ(ceilings.flops("fp32", "avx2").one_thread > 0, true);
  EXPECT_GT(ceilings.dram().one_thread, 0);
  EXPECT_GT(ceilings.clock_hz, 1e8);
}

}  // namespace
}  // namespace pagoda::bench
