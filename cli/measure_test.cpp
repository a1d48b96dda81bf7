// Tests of the random problems and of the comparison: every layout agrees with the reference, and
// a single wrong element, a NaN or a wrong LSE does not pass.
#include "cli/measure.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/device_bench.hpp"
#include "core/element.hpp"
#include "testing/mirror/fake_device.hpp"
#include "testing/mirror/host_space.hpp"

namespace pagoda::cli {
namespace {

const Options kCpu{.backend = "cpu"};

constexpr int64_t kAllRows = 64;  // random rows: enough to draw every row of these problems

nlohmann::json small_problem() {
  return {{"seqlen-q", {5, 0, 1, 3}},
          {"seqlen-kv", {37, 3, 70, 0}},
          {"q-heads", 4},
          {"kv-heads", 2},
          {"head-dim", 16},
          {"mask", "causal"},
          {"lse", true}};
}

TEST(Measure, every_layout_agrees_with_the_reference) {
  for (const char* kv : {"dense", "ragged", "paged"}) {
    for (const char* layout : {"nhd", "hnd"}) {
      for (const char* table : {"block", "csr"}) {
        for (const bool is_padded : {false, true}) {
          nlohmann::json json = small_problem();
          json.update({{"kv", kv}, {"padded", is_padded}});
          if (std::string_view(kv) == "paged") {
            json.update({{"page-size", 16}, {"layout", layout}, {"page-table", table}});
          }
          PlannedProblem problem(parse_problem_json(json), kCpu);
          problem.run_once();
          const ErrorReport report =
              compare_with_reference(problem.spec(), problem.buffers(), kAllRows);
          EXPECT_TRUE(report.passes()) << json << " " << report.message;
          EXPECT_EQ(report.rows, kAllRows);
        }
      }
    }
  }
}

TEST(Measure, unwritten_outputs_do_not_pass) {
  PlannedProblem problem(parse_problem_json(small_problem()), kCpu);
  EXPECT_FALSE(compare_with_reference(problem.spec(), problem.buffers(), kAllRows).passes());
}

TEST(Measure, one_wrong_element_or_lse_does_not_pass) {
  nlohmann::json json = small_problem();
  json["seqlen-q"] = json["seqlen-kv"] = 1;
  for (const float wrong :
       {1000.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    PlannedProblem problem(parse_problem_json(json), kCpu);
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

TEST(Measure, an_output_multiplied_by_1_02_does_not_pass) {
  for (const char* dtype : {"fp32", "fp16", "bf16"}) {
    nlohmann::json json = small_problem();
    json["dtype"] = dtype;
    PlannedProblem problem(parse_problem_json(json), kCpu);
    problem.run_once();
    ASSERT_TRUE(compare_with_reference(problem.spec(), problem.buffers(), kAllRows).passes());
    const Tensor& out = problem.buffers().attention().out;
    int64_t elements = 1;
    for (int32_t d = 0; d < out.rank; ++d) elements *= out.shape[static_cast<size_t>(d)];
    for (int64_t i = 0; i < elements; ++i) {
      core::store_element(out.data, out.dtype, i,
                          1.02F * core::load_element(out.data, out.dtype, i));
    }
    EXPECT_FALSE(compare_with_reference(problem.spec(), problem.buffers(), kAllRows).passes());
  }
}

TEST(Measure, unused_slots_hold_nan_and_pages_are_distinct) {
  nlohmann::json json = small_problem();
  json["kv"] = "paged";
  json["page-size"] = 16;
  const ProblemBuffers buffers(parse_problem_json(json), /*has_data=*/true);
  const auto& kv = std::get<PagedKV>(buffers.attention().kv);
  const auto& table = std::get<BlockTable>(kv.table);
  // Sequence 0 has 37 keys: the third page holds 5 of them.
  const int64_t row = 2 * 16;  // elements of one token, NHD
  const int32_t* pages = table.pages.data;
  const int64_t page = pages[2] * 16 * row;
  EXPECT_FALSE(std::isnan(core::load_element(kv.k.data, kv.k.dtype, page + 5 * row - 1)));
  EXPECT_TRUE(std::isnan(core::load_element(kv.k.data, kv.k.dtype, page + 5 * row)));
  EXPECT_TRUE(std::isnan(core::load_element(kv.v.data, kv.v.dtype, page + 16 * row - 1)));
  std::vector<bool> is_used(static_cast<size_t>(kv.k.shape[0]), false);
  for (const int64_t entry : {int64_t{0}, int64_t{1}, int64_t{2}}) {
    const auto id = static_cast<size_t>(pages[entry]);
    EXPECT_FALSE(is_used[id]);
    is_used[id] = true;
  }
}

TEST(Measure, checksum_follows_the_output) {
  PlannedProblem problem(parse_problem_json(small_problem()), kCpu);
  problem.run_once();
  const uint64_t first = problem.buffers().checksum();
  problem.buffers().poison_outputs();
  EXPECT_NE(problem.buffers().checksum(), first);
  problem.run_once();
  EXPECT_EQ(problem.buffers().checksum(), first);
}

TEST(Measure, a_problem_on_a_device_gives_what_the_host_gives) {
  ASSERT_TRUE(mirror::register_fake_device());
  for (const char* kv : {"dense", "paged"}) {
    nlohmann::json json = small_problem();
    json.update({{"kv", kv}, {"sinks", true}, {"alibi", true}});
    const ProblemSpec spec = parse_problem_json(json);
    PlannedProblem host(spec, {.backend = "reference"});
    PlannedProblem device(spec, {.backend = mirror::kFakeDevice, .checks_indices = true});
    host.run_once();
    device.run_once();
    EXPECT_EQ(device.buffers().checksum(), host.buffers().checksum());
    EXPECT_EQ(device.work().flops, host.work().flops);
    EXPECT_EQ(device.work().bytes, host.work().bytes);
    EXPECT_EQ(device.time_runs(3).size(), 3U);
    EXPECT_GT(device.time_back_to_back(2), 0);
    EXPECT_EQ(rejection_reason(spec, {.backend = mirror::kFakeDevice}), "");
    EXPECT_NE(rejection_reason(spec, {.backend = mirror::kFakeDevice, .kernel = "none"}), "");
  }
}

TEST(Measure, a_device_s_outputs_are_poisoned_there) {
  ASSERT_TRUE(mirror::register_fake_device());
  PlannedProblem problem(parse_problem_json(small_problem()), {.backend = mirror::kFakeDevice});
  problem.run_once();
  mirror::set_fake_fault([](const core::Problem& p, int64_t) {  // simulates an unwritten row
    core::store_element(p.out.data, p.out.dtype, 0, std::numeric_limits<float>::quiet_NaN());
  });
  problem.poison_outputs();
  problem.run_once();
  mirror::set_fake_fault({});
  EXPECT_FALSE(compare_with_reference(problem.spec(), problem.buffers(), kAllRows).passes());
}

TEST(DeviceBench, measures_a_case_and_records_a_rejection) {
  ASSERT_TRUE(mirror::register_fake_device());
  const BenchCase small{"small", "file", parse_problem_json(small_problem())};
  BenchSettings settings;
  settings.backend = mirror::kFakeDevice;
  settings.repeats = 4;
  const DeviceResult result = run_device_case(small, settings);
  EXPECT_TRUE(result.passes());
  EXPECT_EQ(result.seconds.size(), 4U);
  EXPECT_EQ(to_json(result, 1e9)["kernel"], "fake.reference");
  settings.kernel = "none";
  EXPECT_NE(to_json(run_device_case(small, settings), 1e9)["unsupported"], "");
  EXPECT_GT(measure_copy(mirror::host_space()), 0);
}

TEST(Measure, median_of_even_and_odd_counts) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace pagoda::cli
