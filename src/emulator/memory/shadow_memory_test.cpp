// The history of bytes alone: which accesses race, and what was never written.
#include "emulator/memory/shadow_memory.hpp"

#include <gtest/gtest.h>

namespace pagoda::emulator {
namespace {

const Agent kA = make_agent(0, 0);
const Agent kB = make_agent(0, 1);

Access access(Agent agent, const Clocks& clocks, Proxy proxy = Proxy::kGeneric) {
  return {.stamp = {.agent = agent, .time = 1, .primitive = "test", .where = {}, .proxy = proxy},
          .clocks = &clocks};
}

// Clocks of an agent that knows of what `agent` did until time 1.
Clocks after(Agent agent) {
  Clocks clocks;
  clocks.generic.set(agent, 1);
  return clocks;
}

TEST(ShadowMemory, a_read_that_is_not_ordered_after_a_write_conflicts_with_it) {
  ShadowMemory memory(64);
  const Clocks none;
  EXPECT_FALSE(memory.write(8, 4, access(kA, none)));
  const auto conflict = memory.read(8, 4, access(kB, none));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->earlier.agent, kA);
  EXPECT_TRUE(conflict->earlier_is_write);
  EXPECT_EQ(conflict->offset, 8U);
  EXPECT_FALSE(memory.read(8, 4, access(kB, after(kA))));
  EXPECT_FALSE(memory.read(8, 4, access(kA, none))) << "its own write";
}

TEST(ShadowMemory, two_reads_do_not_race_and_a_write_must_follow_both) {
  ShadowMemory memory(64);
  const Clocks none;
  EXPECT_FALSE(memory.read(0, 16, access(kA, none)));
  EXPECT_FALSE(memory.read(0, 16, access(kB, none)));
  const Agent writer = make_agent(0, 2);
  Clocks one = after(kB);
  const auto conflict = memory.write(0, 16, access(writer, one));
  ASSERT_TRUE(conflict);
  EXPECT_FALSE(conflict->earlier_is_write);
  EXPECT_EQ(conflict->earlier.agent, kA);
}

TEST(ShadowMemory, neighbouring_bytes_are_apart) {
  ShadowMemory memory(64);
  const Clocks none;
  for (size_t i = 0; i < 16; ++i) {
    const Agent agent = make_agent(0, static_cast<uint32_t>(i));
    EXPECT_FALSE(memory.write(i, 1, access(agent, none)));
  }
  const auto conflict = memory.write(0, 16, access(make_agent(0, 3), none));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->offset, 0U);
}

TEST(ShadowMemory, the_asynchronous_proxy_sees_a_generic_write_after_a_proxy_fence_only) {
  ShadowMemory memory(64);
  const Clocks none;
  EXPECT_FALSE(memory.write(0, 16, access(kA, none)));
  Clocks known = after(kA);
  EXPECT_TRUE(memory.read(0, 16, access(kB, known, Proxy::kAsync)));
  known.async.set(kA, 1);  // fence_proxy_async
  EXPECT_FALSE(memory.read(0, 16, access(kB, known, Proxy::kAsync)));
}

TEST(ShadowMemory, atomics_race_where_a_scope_leaves_out_the_other_thread) {
  ShadowMemory memory(64);
  const Clocks none;
  const auto atomic = [&](uint32_t cta, Scope scope) {
    Access made = access(make_agent(cta, 0), none);
    made.stamp.is_atomic = true;
    made.stamp.scope = scope;
    return made;
  };
  EXPECT_FALSE(memory.write(0, 4, atomic(0, Scope::kGpu)));
  EXPECT_FALSE(memory.write(0, 4, atomic(1, Scope::kGpu)));
  EXPECT_TRUE(memory.write(0, 4, atomic(2, Scope::kCta)));
}

TEST(ShadowMemory, unwritten_bytes_are_found_and_forgotten_bytes_are_unwritten) {
  ShadowMemory memory(8192);
  const Clocks none;
  EXPECT_EQ(memory.first_unwritten(0, 4), 0U);
  memory.write(0, 20, access(kA, none));
  EXPECT_FALSE(memory.first_unwritten(0, 20));
  EXPECT_EQ(memory.first_unwritten(16, 8), 20U);
  memory.forget(4, 4);
  EXPECT_EQ(memory.first_unwritten(0, 20), 4U);
  EXPECT_EQ(memory.first_unwritten(5000, 1), 5000U) << "in a chunk that was never touched";
}

}  // namespace
}  // namespace pagoda::emulator
