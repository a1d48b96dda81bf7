// Tests of the problem description: defaults, lists, files, and that every error names the flag.
#include "cli/problem_spec.hpp"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <variant>

#include <CLI/CLI.hpp>

#include "cli/problem_buffers.hpp"

namespace pagoda::cli {
namespace {

// What the command would print before it ends with exit code 2.
std::string error_of(const RawProblem& raw) {
  testing::internal::CaptureStderr();
  int code = 0;
  try {
    static_cast<void>(parse_problem(raw));
  } catch (const CLI::RuntimeError& error) {
    code = error.get_exit_code();
  }
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 2) << text;
  return text;
}

TEST(ProblemSpec, keys_default_to_queries_and_batch_to_the_longer_list) {
  const ProblemSpec spec = parse_problem({{"seqlen-q", "3,1,0"}});
  EXPECT_EQ(spec.batch, 3);
  EXPECT_EQ(spec.seqlen_kv(1), 1);
  EXPECT_EQ(spec.seqlen_q(2), 0);
  const ProblemSpec repeated = parse_problem({{"batch", "5"}, {"seqlen-q", "1"}});
  EXPECT_EQ(repeated.batch, 5);
  EXPECT_EQ(repeated.seqlen_q(4), 1);
}

TEST(ProblemSpec, every_error_names_the_flag) {
  const RawProblem bad[] = {{{"batch", "0"}},
                            {{"batch", "x"}},
                            {{"seqlen-q", "1,,2"}},
                            {{"seqlen-q", "-1"}},
                            {{"q-heads", "2.5"}},
                            {{"head-dim", "99999999999"}},
                            {{"dtype", "int8"}},
                            {{"kv-dtype", ""}},
                            {{"kv", "sparse"}},
                            {{"page-size", "0"}},
                            {{"layout", "NHD"}},
                            {{"page-table", "tree"}},
                            {{"mask", "causl"}},
                            {{"softcap", "nan"}},
                            {{"softcap", "-1"}},
                            {{"seed", "-1"}},
                            {{"problem", "/nonexistent.json"}}};
  for (const RawProblem& raw : bad) {
    const std::string flag = "--" + raw.begin()->first + ": ";
    EXPECT_NE(error_of(raw).find("pagoda: error: " + flag), std::string::npos)
        << raw.begin()->first << "=" << raw.begin()->second << ": " << error_of(raw);
  }
  EXPECT_NE(error_of({{"batch", "3"}, {"seqlen-kv", "1,2"}}).find("--seqlen-kv"),
            std::string::npos);
}

TEST(ProblemSpec, json_and_back) {
  const nlohmann::json json = {{"batch", 2},      {"seqlen_q", {4, 1}}, {"seqlen-kv", 7},
                               {"dtype", "bf16"}, {"kv-dtype", "fp8"},  {"kv", "paged"},
                               {"page-size", 16}, {"layout", "hnd"},    {"page-table", "csr"},
                               {"padded", true},  {"mask", "causal"},   {"sinks", true},
                               {"softcap", 30.5}, {"seed", 9}};
  const ProblemSpec spec = parse_problem_json(json);
  EXPECT_EQ(spec.seqlen_q(0), 4);
  EXPECT_EQ(spec.kv(), DType::kF8E4M3);
  EXPECT_EQ(spec.layout, PageLayout::kHND);
  EXPECT_TRUE(spec.is_padded && spec.has_sinks && spec.has_csr_table);
  EXPECT_FLOAT_EQ(spec.softcap, 30.5F);
  EXPECT_EQ(to_json(parse_problem_json(to_json(spec))), to_json(spec));
}

TEST(ProblemSpec, v_inside_k_has_the_first_columns_of_k) {
  EXPECT_FALSE(parse_problem({}).is_v_inside_k);
  EXPECT_TRUE(parse_problem({{"v-inside-k", "true"}, {"v-head-dim", "64"}}).is_v_inside_k);
  const std::string error = error_of({{"v-inside-k", "true"}, {"v-head-dim", "136"}});
  EXPECT_NE(error.find("--v-inside-k: K has 128 columns, V 136"), std::string::npos) << error;
  for (const char* kv : {"dense", "ragged", "paged"}) {
    const ProblemSpec spec = parse_problem(
        {{"v-inside-k", "true"}, {"v-head-dim", "64"}, {"kv", kv}, {"seqlen-q", "3"}});
    const ProblemBuffers buffers(spec, true);
    std::visit(
        [&](const auto& cache) {
          EXPECT_EQ(cache.v.data, cache.k.data) << kv;
          EXPECT_EQ(cache.v.strides, cache.k.strides) << kv;
          EXPECT_EQ(cache.v.shape[static_cast<size_t>(cache.v.rank - 1)], 64) << kv;
        },
        buffers.attention().kv);
  }
}

TEST(ProblemSpec, flags_win_over_the_file) {
  const std::string path = testing::TempDir() + "pagoda_problem_spec_test.json";
  std::ofstream(path) << R"({"q-heads": 4, "kv-heads": 2})";
  const ProblemSpec spec = parse_problem({{"problem", path}, {"kv-heads", "1"}});
  EXPECT_EQ(spec.num_q_heads, 4);
  EXPECT_EQ(spec.num_kv_heads, 1);
  std::ofstream(path) << R"({"q-heads": 4, "heads": 2})";
  EXPECT_NE(error_of({{"problem", path}}).find("problem.heads"), std::string::npos);
  std::ofstream(path) << R"({"q-heads": )";
  EXPECT_NE(error_of({{"problem", path}}).find("--problem"), std::string::npos);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace pagoda::cli
