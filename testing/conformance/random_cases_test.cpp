// Tests of the drawn cases: always the same, valid, and of every kind.
#include "testing/conformance/random_cases.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "testing/conformance/runner.hpp"

namespace pagoda::conformance {
namespace {

const std::vector<Case>& drawn() {
  static const std::vector<Case> cases = random_cases(1, 500);
  return cases;
}

template <class Property>
auto values_of(const Property& property) {
  std::set<decltype(property(drawn()[0]))> values;
  for (const Case& c : drawn()) values.insert(property(c));
  return values;
}

TEST(RandomCases, a_seed_and_a_number_are_always_the_same_case) {
  const std::vector<Case> few = random_cases(1, 20);
  for (size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i].name, drawn()[i].name);
  EXPECT_TRUE(few[7].name.ends_with("_random1_7"));
  EXPECT_EQ(few[7].seed, few[7].name);
  EXPECT_NE(random_cases(2, 1)[0].lengths.name, few[0].lengths.name);
}

TEST(RandomCases, every_case_is_a_valid_call) {
  std::vector<const Case*> cases;
  for (const Case& c : drawn()) cases.push_back(&c);
  std::vector<Target> targets = targets_of("reference");
  for (Target& target : targets) target.effort.plans_only = true;
  const RunSummary summary = run_cases(cases, targets);
  for (const CaseReport& report : summary.not_passed) {
    EXPECT_EQ(report.outcome.verdict, Verdict::kSkipped)  // it has no schedules and no splits
        << report.test_case->name << ": " << report.outcome.message;
  }
  EXPECT_GT(summary.served, 300);
}

TEST(RandomCases, draw_every_kind_of_call) {
  EXPECT_EQ(values_of([](const Case& c) { return c.q_dtype; }).size(), 4U);
  EXPECT_EQ(values_of([](const Case& c) { return c.kv_layout; }).size(), 4U);
  EXPECT_EQ(values_of([](const Case& c) { return c.storage; }).size(), 3U);
  EXPECT_EQ(values_of([](const Case& c) { return c.scales; }).size(), 4U);
  EXPECT_EQ(values_of([](const Case& c) { return c.q_scales; }).size(), 3U);
  EXPECT_EQ(values_of([](const Case& c) { return c.demand; }).size(), 3U);
  EXPECT_EQ(values_of([](const Case& c) { return c.schedule; }).size(), 5U);
  EXPECT_EQ(values_of([](const Case& c) { return c.out_dtype(); }).size(), 4U);
  EXPECT_GT(values_of([](const Case& c) { return c.mask.name; }).size(), 60U);
  EXPECT_GT(values_of([](const Case& c) { return c.lengths.name; }).size(), 480U);
  for (const auto& is_drawn :
       {+[](const Case& c) { return c.sinks.has_value(); },
        +[](const Case& c) { return c.has_alibi; }, +[](const Case& c) { return c.softcap != 0; },
        +[](const Case& c) { return c.leftpad != 0; },
        +[](const Case& c) { return c.zeroed_rows != 0; },
        +[](const Case& c) { return c.padding_rows != 0; },
        +[](const Case& c) { return c.padding_keys != 0; },
        +[](const Case& c) { return c.num_kv_splits != 0; },
        +[](const Case& c) { return c.outputs_have_gaps; },
        +[](const Case& c) { return c.is_q_ragged; }}) {
    EXPECT_EQ(values_of(is_drawn).size(), 2U);
  }
}

// The distribution of lengths: many tokens and few, many keys and few, one sequence and many.
TEST(RandomCases, draw_lengths_of_every_order_of_magnitude) {
  const auto magnitude = [](int32_t n) { return n == 0 ? -1 : std::ilogb(n); };
  std::set<int> rows, keys, batches;
  for (const Case& c : drawn()) {
    batches.insert(magnitude(static_cast<int32_t>(c.lengths.sequences.size())));
    for (const Sequence& s : c.lengths.sequences) {
      rows.insert(magnitude(s.q));
      keys.insert(magnitude(s.kv));
    }
  }
  EXPECT_EQ(rows.size(), 11U);    // 0 to 700
  EXPECT_EQ(keys.size(), 13U);    // 0 to 3,400
  EXPECT_EQ(batches.size(), 6U);  // 1 to 40
}

// Kernels that compute both at the same time are tested by such batches alone.
TEST(RandomCases, draw_prompts_beside_decoding) {
  const auto has_both = [](const Case& c) {
    const auto has = [&](auto&& is_of_kind) {
      return std::ranges::any_of(c.lengths.sequences, is_of_kind);
    };
    return c.is_q_ragged && has([](const Sequence& s) { return s.q == 1; }) &&
           has([](const Sequence& s) { return s.q > 64; });
  };
  EXPECT_GT(std::ranges::count_if(drawn(), has_both), 15);
}

}  // namespace
}  // namespace pagoda::conformance
