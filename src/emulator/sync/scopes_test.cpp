// Release and acquire at scopes, between threads that no machine runs.
#include "emulator/sync/scopes.hpp"

#include <gtest/gtest.h>
#include <memory>

#include "emulator/machine/hierarchy.hpp"

namespace pagoda::emulator {
namespace {

// Thread 0 of CTA `index`, in clusters of two.
struct Actor {
  Cta cta;
  Thread thread;
  explicit Actor(uint32_t index) {
    cta.index = index;
    thread.cta = &cta;
    thread.agent = make_agent(index, 0);
    thread.clocks = std::make_shared<Clocks>();
    thread.clocks->generic.set(thread.agent, thread.time);
  }
  // Has it learnt of what `other` did at time 1?
  [[nodiscard]] bool knows(const Actor& other) const {
    return thread.clocks->generic.get(other.thread.agent) >= 1;
  }
};

constexpr Scopes::AtomicUse store(Scope scope, bool releases) {
  return {.scope = scope, .reads = false, .writes = true, .acquires = false, .releases = releases};
}
constexpr Scopes::AtomicUse load(Scope scope, bool acquires) {
  return {.scope = scope, .reads = true, .writes = false, .acquires = acquires, .releases = false};
}

class ScopesTest : public testing::Test {
 protected:
  void synchronise(Actor& actor, Scopes::AtomicUse use) {
    scopes_.synchronise(actor.thread, &word_, use, "atomic", Where::current());
  }
  Scopes scopes_{2};
  int word_ = 0;
};

TEST_F(ScopesTest, an_acquire_learns_what_was_released_at_the_same_word) {
  Actor a(0), b(1);
  synchronise(a, store(Scope::kGpu, true));
  EXPECT_FALSE(b.knows(a));
  synchronise(b, load(Scope::kGpu, true));
  EXPECT_TRUE(b.knows(a));
}

TEST_F(ScopesTest, both_scopes_must_include_the_other_thread) {
  Actor a(0), peer(1), far(2);
  synchronise(a, store(Scope::kCluster, true));
  synchronise(peer, load(Scope::kCluster, true));
  EXPECT_TRUE(peer.knows(a));
  synchronise(far, load(Scope::kGpu, true));
  EXPECT_FALSE(far.knows(a));
  const std::string link = scopes_.narrow_link({.agent = a.thread.agent, .time = 1, .where = {}});
  EXPECT_NE(link.find("scope .cluster"), link.npos) << link;
  EXPECT_NE(link.find(".gpu is needed"), link.npos) << link;
  EXPECT_EQ(scopes_.narrow_link({.agent = far.thread.agent, .time = 1, .where = {}}), "");
}

TEST_F(ScopesTest, fences_order_relaxed_atomics) {
  Actor a(0), b(1);
  synchronise(a, store(Scope::kGpu, false));
  synchronise(b, load(Scope::kGpu, false));
  scopes_.thread_fence(b.thread, Scope::kGpu, Where::current());
  EXPECT_FALSE(b.knows(a)) << "nothing released";
  scopes_.thread_fence(a.thread, Scope::kGpu, Where::current());
  synchronise(a, store(Scope::kGpu, false));
  synchronise(b, load(Scope::kGpu, false));
  EXPECT_FALSE(b.knows(a)) << "no fence after the load";
  scopes_.thread_fence(b.thread, Scope::kGpu, Where::current());
  EXPECT_TRUE(b.knows(a));
}

}  // namespace
}  // namespace pagoda::emulator
