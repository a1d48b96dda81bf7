// Tests of the roofline on made-up ceilings.
#include "bench/roofline.hpp"

#include <gtest/gtest.h>
#include <string>

namespace pagoda::bench {
namespace {

Ceilings made_up() {
  Ceilings c;
  c.threads = 2;
  c.compute = {{"fp32", "avx2", "", {50, 100}},
               {"fp32", "avx512", "", {100, 200}},
               {"bf16", "avx512_bf16", "", {80, 160}},  // slower than fp32, as on some cores
               {"bf16", "amx", "", {1000, 2000}},
               {"exp", "avx2", "", {5, 10}}};
  c.memory = {{.level = "L2",
               .working_set_bytes = 0,
               .capacity_bytes = 1000,
               .is_shared = false,
               .bytes = {100, 200}},
              {.level = "L3",
               .working_set_bytes = 0,
               .capacity_bytes = 10000,
               .is_shared = true,
               .bytes = {20, 40}},
              {.level = "DRAM",
               .working_set_bytes = 0,
               .capacity_bytes = 0,
               .is_shared = true,
               .bytes = {10, 15}}};
  return c;
}

TEST(Roofline, compute_ceiling_is_the_best_at_or_below_the_level) {
  const Ceilings c = made_up();
  EXPECT_EQ(c.flops("fp32", "avx2").one_thread, 50);
  EXPECT_EQ(c.flops("fp32", "amx").one_thread, 100);
  EXPECT_EQ(c.flops("bf16", "avx512_bf16").one_thread, 100);  // fp32 instructions win
  EXPECT_EQ(c.flops("bf16", "amx").all_threads, 2000);
  EXPECT_EQ(c.flops("fp32", "scalar").one_thread, 0);
}

TEST(Roofline, the_slowest_of_three_bounds) {
  const Ceilings c = made_up();
  const Bound compute =
      roofline(c, {.flops = 1000, .exponentials = 1, .bytes = 1, .dtype = "fp32"}, "avx512", 1);
  EXPECT_STREQ(compute.limit, "compute");
  EXPECT_DOUBLE_EQ(compute.seconds, 10);
  const Bound exp =
      roofline(c, {.flops = 1000, .exponentials = 100, .bytes = 1, .dtype = "bf16"}, "amx", 2);
  EXPECT_STREQ(exp.limit, "exp");
  EXPECT_DOUBLE_EQ(exp.seconds, 10);
  const Bound memory =
      roofline(c, {.flops = 1, .exponentials = 1, .bytes = 30000, .dtype = "bf16"}, "amx", 2);
  EXPECT_STREQ(memory.limit, "DRAM");
  EXPECT_DOUBLE_EQ(memory.seconds, 2000);
}

TEST(Roofline, the_nearest_level_that_holds_the_working_set) {
  const Ceilings c = made_up();
  const auto level = [&](double bytes, int32_t threads) {
    return roofline(c, {.flops = 0, .exponentials = 0, .bytes = bytes, .dtype = "fp32"}, "avx2",
                    threads)
        .memory_level;
  };
  EXPECT_EQ(level(1000, 1), "L2");
  EXPECT_EQ(level(1500, 1), "L3");
  EXPECT_EQ(level(1500, 2), "L2");     // each thread has its own
  EXPECT_EQ(level(15000, 2), "DRAM");  // the last cache is shared
}

}  // namespace
}  // namespace pagoda::bench
