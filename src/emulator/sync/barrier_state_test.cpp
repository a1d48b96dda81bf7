// The state of an mbarrier, and the table of a CTA's mbarriers, without a launch.
#include "emulator/sync/barrier_state.hpp"

#include <gtest/gtest.h>

namespace pagoda::emulator {
namespace {

TEST(MBarrierState, a_phase_ends_with_its_last_arrival_and_its_last_byte) {
  MBarrierState barrier{.expected = 2, .pending = 2, .pending_bytes = 16};
  EXPECT_TRUE(barrier.is_in_phase(0));
  barrier.pending = 0;
  EXPECT_FALSE(barrier.is_complete());
  barrier.pending_bytes = 0;
  EXPECT_TRUE(barrier.is_complete());
  barrier.gathering.generic.set(make_agent(0, 3), 5);
  barrier.start_next_phase();
  EXPECT_TRUE(barrier.is_in_phase(1));
  EXPECT_EQ(barrier.pending, 2);
  EXPECT_EQ(barrier.completed.generic.get(make_agent(0, 3)), 5U);
  EXPECT_EQ(barrier.gathering.generic.get(make_agent(0, 3)), 0U);
}

TEST(MBarrierState, arrivals_are_counted_by_line_and_role_for_the_phase) {
  MBarrierState barrier;
  const Where here = Where::current();
  const char* const load = "load";
  const char* const arrive = "mbarrier_arrive";
  barrier.count_arrival(1, load, arrive, here, false);
  barrier.count_arrival(1, load, arrive, here, false);
  barrier.count_arrival(128, load, "tma_load", here, true);
  ASSERT_EQ(barrier.arrivals.size(), 2U);
  EXPECT_EQ(barrier.arrivals[0].count_in_phase, 2U);
  barrier.start_next_phase();
  barrier.count_arrival(1, load, arrive, here, false);
  EXPECT_EQ(barrier.arrivals[0].count_in_phase, 1U);
  EXPECT_EQ(barrier.arrivals[0].last_phase, 1U);
  EXPECT_EQ(barrier.arrivals[1].last_phase, 0U);
}

MBarrierTable table_of(std::initializer_list<uint32_t> offsets) {
  MBarrierTable table;
  for (const uint32_t offset : offsets) {
    table.at(offset).is_live = true;
    table.note_init(offset);
  }
  return table;
}

TEST(MBarrierTable, a_write_that_touches_a_live_barrier_is_found) {
  MBarrierTable table = table_of({64, 96});
  EXPECT_EQ(table.overlapped(0, 64), nullptr);
  EXPECT_EQ(table.overlapped(60, 5), &table.at(64));
  EXPECT_EQ(table.overlapped(71, 4), &table.at(64));
  EXPECT_EQ(table.overlapped(72, 24), nullptr) << "between the two";
  table.at(96).is_live = false;
  EXPECT_EQ(table.overlapped(96, 8), nullptr);
  EXPECT_EQ(table.find_live(96), nullptr);
  EXPECT_EQ(table.find_live(8), nullptr);
}

TEST(MBarrierTable, the_neighbour_is_the_barrier_before_or_the_last) {
  MBarrierTable table = table_of({64, 72, 80});
  EXPECT_EQ(table.neighbour(80), 72);
  EXPECT_EQ(table.neighbour(64), 80);
  EXPECT_EQ(table_of({64}).neighbour(64), -1);
}

TEST(MBarrierTable, a_fence_covers_the_inits_of_its_thread) {
  MBarrierTable table = table_of({64, 72});
  table.at(64).init.agent = make_agent(0, 0);
  table.at(72).init.agent = make_agent(0, 1);
  table.fence_inits(make_agent(0, 0));
  EXPECT_TRUE(table.at(64).is_fenced);
  EXPECT_FALSE(table.at(72).is_fenced);
}

}  // namespace
}  // namespace pagoda::emulator
