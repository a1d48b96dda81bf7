// Vector clocks alone: agents of one CTA and of several.
#include "emulator/sync/vector_clock.hpp"

#include <gtest/gtest.h>

namespace pagoda::emulator {
namespace {

TEST(VectorClock, an_agent_names_its_cta_and_its_index) {
  const Agent agent = make_agent(7, 4095);
  EXPECT_EQ(agent_cta(agent), 7U);
  EXPECT_EQ(agent_index(agent), 4095U);
  EXPECT_NE(make_agent(0, 0), kNoAgent);
}

TEST(VectorClock, an_agent_that_was_never_set_is_at_zero) {
  VectorClock clock;
  EXPECT_EQ(clock.get(make_agent(3, 5)), 0U);
  clock.set(make_agent(3, 9), 4);
  EXPECT_EQ(clock.get(make_agent(3, 5)), 0U);
  EXPECT_EQ(clock.get(make_agent(3, 9)), 4U);
  EXPECT_EQ(clock.get(make_agent(2, 9)), 0U);
}

TEST(VectorClock, join_takes_the_later_time_of_each_agent) {
  VectorClock a, b;
  a.set(make_agent(0, 1), 5);
  a.set(make_agent(0, 2), 1);
  b.set(make_agent(0, 2), 3);
  b.set(make_agent(6, 40), 8);
  a.join(b);
  EXPECT_EQ(a.get(make_agent(0, 1)), 5U);
  EXPECT_EQ(a.get(make_agent(0, 2)), 3U);
  EXPECT_EQ(a.get(make_agent(6, 40)), 8U);
  a.join(a);
  EXPECT_EQ(a.get(make_agent(0, 1)), 5U);
}

TEST(VectorClock, meet_takes_the_earlier_time_and_drops_what_one_lacks) {
  VectorClock a, b;
  a.set(make_agent(0, 1), 5);
  a.set(make_agent(0, 30), 2);
  a.set(make_agent(1, 0), 9);
  b.set(make_agent(0, 1), 3);
  a.meet(b);
  EXPECT_EQ(a.get(make_agent(0, 1)), 3U);
  EXPECT_EQ(a.get(make_agent(0, 30)), 0U);
  EXPECT_EQ(a.get(make_agent(1, 0)), 0U);
}

TEST(Clocks, join_leaves_the_view_of_tensor_memory_alone) {
  const Agent agent = make_agent(0, 1);
  Clocks a, b;
  b.generic.set(agent, 2);
  b.async.set(agent, 3);
  b.tensor.set(agent, 4);
  a.join(b);
  EXPECT_EQ(a.generic.get(agent), 2U);
  EXPECT_EQ(a.async.get(agent), 3U);
  EXPECT_EQ(a.tensor.get(agent), 0U) << "only a tcgen05 fence adds to it";
}

}  // namespace
}  // namespace pagoda::emulator
