// Sites and kinds of mutants alone: which calls are one site, and which the mutant changes.
#include "emulator/machine/mutation.hpp"

#include <gtest/gtest.h>

#include "emulator/machine/mutation_points.hpp"

namespace pagoda::emulator {
namespace {

constexpr Mutations kWait = Mutation::kDrop | Mutation::kParity;

TEST(Mutations, a_set_has_its_kinds_and_never_the_kind_none) {
  EXPECT_TRUE(kWait.has(Mutation::kDrop));
  EXPECT_TRUE(kWait.has(Mutation::kParity));
  EXPECT_FALSE(kWait.has(Mutation::kMore));
  EXPECT_FALSE(kWait.has(Mutation::kNone));
  EXPECT_TRUE(Mutations(Mutation::kNone).is_empty());
}

TEST(MutationSites, a_site_is_a_call_in_a_role) {
  MutationSites sites;
  const Where here = Where::current();
  const Where next = Where::current();
  for (int lane = 0; lane < 32; ++lane) sites.at("wait", here, "load", kWait);
  sites.at("wait", here, "store", kWait);
  sites.at("wait", next, "load", kWait);
  sites.at("arrive", here, "load", Mutation::kDrop);
  ASSERT_EQ(sites.sites().size(), 4U);
  EXPECT_EQ(sites.sites()[0].executions, 32U);
  EXPECT_EQ(sites.sites()[0].file, "mutation_test.cpp");
  EXPECT_EQ(sites.sites()[0].line, here.line());
  EXPECT_EQ(sites.sites()[1].role, "store");
}

TEST(MutationSites, only_the_site_and_the_kind_under_test_are_changed) {
  MutationSites sites;
  const Where here = Where::current();
  const auto wait = [&] { return sites.at("wait", here, "load", kWait); };
  const auto arrive = [&] { return sites.at("arrive", here, "load", Mutation::kDrop); };
  EXPECT_EQ(wait(), Mutation::kNone);
  EXPECT_EQ(arrive(), Mutation::kNone);
  sites.apply(0, Mutation::kParity);
  EXPECT_EQ(wait(), Mutation::kParity);
  EXPECT_EQ(arrive(), Mutation::kNone);
  sites.apply(1, Mutation::kParity);
  EXPECT_EQ(arrive(), Mutation::kNone) << "an arrival has no parity";
  sites.drop(1);
  EXPECT_EQ(arrive(), Mutation::kDrop);
  sites.apply_none();
  EXPECT_EQ(arrive(), Mutation::kNone);
}

TEST(MutationSites, a_call_that_cannot_go_wrong_is_no_site) {
  MutationSites sites;
  EXPECT_EQ(sites.at("init", Where::current(), "", Mutations()), Mutation::kNone);
  EXPECT_TRUE(sites.sites().empty());
}

TEST(MutationSites, all_lines_that_name_a_fault_are_one_site) {
  MutationSites sites;
  sites.at_name("stages share memory", Where::current(), Mutation::kShared);
  sites.at_name("stages share memory", Where::current(), Mutation::kShared);
  ASSERT_EQ(sites.sites().size(), 1U);
  sites.apply(0, Mutation::kShared);
  EXPECT_EQ(sites.at_name("stages share memory", Where::current(), Mutation::kShared),
            Mutation::kShared);
}

TEST(MutationPoints, a_scope_is_narrowed_to_one_that_excludes_a_thread_of_the_launch) {
  const auto narrowed = [](int ctas, int cluster_size, Scope scope) {
    LaunchShape shape;
    shape.grid = {ctas};
    shape.cluster_size = cluster_size;
    Scheduler scheduler(Mode::kRandom, 1);
    Reporter reporter("k", {}, scheduler);
    return MutationPoints(shape, {}, scheduler, reporter).narrowed(scope);
  };
  EXPECT_EQ(narrowed(1, 1, Scope::kGpu), Scope::kGpu) << "one CTA: no thread is outside";
  EXPECT_EQ(narrowed(4, 1, Scope::kGpu), Scope::kCta);
  EXPECT_EQ(narrowed(4, 2, Scope::kGpu), Scope::kCluster);
  EXPECT_EQ(narrowed(4, 2, Scope::kCluster), Scope::kCta);
  EXPECT_EQ(narrowed(2, 2, Scope::kGpu), Scope::kCta) << "the cluster is the grid";
  EXPECT_EQ(narrowed(4, 2, Scope::kCta), Scope::kCta);
}

}  // namespace
}  // namespace pagoda::emulator
