// Tests of the random problems and of the comparison: every layout agrees with the reference, and
// a single wrong element, a NaN or a wrong LSE does not pass.
#include "cli/measure.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "core/element.hpp"

namespace pagoda::cli {
namespace {

constexpr int64_t kAllRows = 64;  // random rows: enough to meet each of the few there are

nlohmann::json small_problem() {
  return {{"seqlen-q", {5, 0, 1, 3}},
          {"seqlen-kv", {37, 3, 70, 0}},
          {"q-heads", 4},
          {"kv-heads", 2},
          {"head-dim", 16},
          {"mask", "causal"},
          {"page-size", 16},
          {"lse", true}};
}

TEST(Measure, every_layout_agrees_with_the_reference) {
  for (const char* kv : {"dense", "ragged", "paged"}) {
    for (const char* layout : {"nhd", "hnd"}) {
      for (const char* table : {"block", "csr"}) {
        for (const bool is_padded : {false, true}) {
          nlohmann::json json = small_problem();
          json.update(
              {{"kv", kv}, {"layout", layout}, {"page-table", table}, {"padded", is_padded}});
          PlannedProblem problem(parse_problem_json(json), Options{});
          problem.run_once();
          const ErrorReport report =
              compare_with_reference(problem.spec(), problem.buffers(), kAllRows);
          EXPECT_TRUE(report.passes()) << json << " " << report.max_relative;
          EXPECT_EQ(report.rows, kAllRows);
        }
      }
    }
  }
}

TEST(Measure, outputs_that_nobody_wrote_do_not_pass) {
  PlannedProblem problem(parse_problem_json(small_problem()), Options{});
  EXPECT_FALSE(compare_with_reference(problem.spec(), problem.buffers(), kAllRows).passes());
}

TEST(Measure, one_wrong_element_or_lse_does_not_pass) {
  nlohmann::json json = small_problem();
  json["seqlen-q"] = json["seqlen-kv"] = 1;
  for (const float wrong :
       {1000.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    PlannedProblem problem(parse_problem_json(json), Options{});
    problem.run_once();
    const Attention& attention = problem.buffers().attention();
    core::store_element(attention.out.data, attention.out.dtype, 17, wrong);
    EXPECT_FALSE(compare_with_reference(problem.spec(), problem.buffers(), 1).passes());
    problem.run_once();
    EXPECT_TRUE(compare_with_reference(problem.spec(), problem.buffers(), 1).passes());
    core::store_element(attention.lse.data, DType::kF32, 3, wrong);
    EXPECT_FALSE(compare_with_reference(problem.spec(), problem.buffers(), 1).passes());
  }
}

TEST(Measure, unused_slots_hold_nan_and_pages_are_distinct) {
  nlohmann::json json = small_problem();
  json["kv"] = "paged";
  const ProblemBuffers buffers(parse_problem_json(json), /*has_data=*/true);
  const auto& kv = std::get<PagedKV>(buffers.attention().kv);
  const auto& table = std::get<BlockTable>(kv.table);
  // Sequence 0 has 37 keys: the third page holds 5 of them.
  const int64_t row = 2 * 16;  // elements of one token, NHD
  const int64_t page = table.pages[2] * 16 * row;
  EXPECT_FALSE(std::isnan(core::load_element(kv.k.data, kv.k.dtype, page + 5 * row - 1)));
  EXPECT_TRUE(std::isnan(core::load_element(kv.k.data, kv.k.dtype, page + 5 * row)));
  EXPECT_TRUE(std::isnan(core::load_element(kv.v.data, kv.v.dtype, page + 16 * row - 1)));
  std::vector<bool> is_used(static_cast<size_t>(kv.k.shape[0]), false);
  for (const int64_t entry : {int64_t{0}, int64_t{1}, int64_t{2}}) {
    const auto id = static_cast<size_t>(table.pages[entry]);
    EXPECT_FALSE(is_used[id]);
    is_used[id] = true;
  }
}

TEST(Measure, checksum_follows_the_output) {
  PlannedProblem problem(parse_problem_json(small_problem()), Options{});
  problem.run_once();
  const uint64_t first = problem.buffers().checksum();
  problem.buffers().poison_outputs();
  EXPECT_NE(problem.buffers().checksum(), first);
  problem.run_once();
  EXPECT_EQ(problem.buffers().checksum(), first);
}

TEST(Measure, median_of_even_and_odd_counts) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace pagoda::cli
