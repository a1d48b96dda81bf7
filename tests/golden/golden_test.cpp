// The reference, and every kernel that serves fp32, against numbers that NumPy computed
// (make_golden.py, which also compares with PyTorch where PyTorch has the feature).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cpu/reference.hpp"
#include "engine/validate.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

// One file: lines of a name and numbers.
struct Golden {
  explicit Golden(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      std::string name, word;
      words >> name;
      while (words >> word) numbers[name].push_back(std::strtod(word.c_str(), nullptr));
    }
  }
  [[nodiscard]] bool has(const std::string& name) const { return numbers.contains(name); }
  [[nodiscard]] const std::vector<double>& doubles(const std::string& name) const {
    return numbers.at(name);
  }
  // Converted copies that live as long as this.
  const std::vector<float>& floats(const std::string& name) {
    return converted(float_copies[name], name);
  }
  const std::vector<int32_t>& ints(const std::string& name) {
    return converted(int_copies[name], name);
  }
  template <typename T>
  const std::vector<T>& converted(std::vector<T>& copy, const std::string& name) {
    copy.clear();
    for (const double x : numbers.at(name)) copy.push_back(static_cast<T>(x));
    return copy;
  }
  std::map<std::string, std::vector<double>> numbers;
  std::map<std::string, std::vector<float>> float_copies;
  std::map<std::string, std::vector<int32_t>> int_copies;
};

// The call that a file describes, over the file's memory.
struct Call {
  explicit Call(Golden& g) {
    const int64_t q_heads = g.ints("heads")[0], kv_heads = g.ints("heads")[1];
    const int64_t dim_qk = g.ints("dims")[0], dim_vo = g.ints("dims")[1];
    const std::vector<int32_t>& kv_lengths = g.ints("seqlens_kv");
    q_offsets = offsets(g.ints("seqlens_q"));
    kv_offsets = offsets(kv_lengths);
    const auto f32 = [&](const char* name, std::initializer_list<int64_t> shape) {
      return ConstTensor::contiguous(g.floats(name).data(), DType::kF32, shape);
    };
    attention.q = f32("q", {q_offsets.back(), q_heads, dim_qk});
    attention.cu_seqlens_q = q_offsets;
    if (g.has("page_size")) {
      const int64_t page = g.ints("page_size")[0];
      const auto pages = static_cast<int64_t>(g.doubles("k").size()) / (page * kv_heads * dim_qk);
      const int64_t batch = std::ssize(kv_lengths);
      const auto table = MatrixView<int32_t>::contiguous(g.ints("block_table").data(), batch,
                                                         std::ssize(g.ints("block_table")) / batch);
      attention.kv = PagedKV{.k = f32("k", {pages, page, kv_heads, dim_qk}),
                             .v = f32("v", {pages, page, kv_heads, dim_vo}),
                             .table = BlockTable{table, kv_lengths}};
    } else {
      attention.kv = RaggedKV{f32("k", {kv_offsets.back(), kv_heads, dim_qk}),
                              f32("v", {kv_offsets.back(), kv_heads, dim_vo}), kv_offsets};
    }
    attention.softmax_scale = g.floats("softmax_scale")[0];
    if (g.has("sinks")) attention.sinks = g.floats("sinks");
    if (g.has("softcap")) attention.score_mod.softcap = g.floats("softcap")[0];
    if (g.has("alibi_slopes")) attention.score_mod.alibi_slopes = g.floats("alibi_slopes");
    attention.mask = mask(g);
    out.resize(static_cast<size_t>(q_offsets.back() * q_heads * dim_vo), NAN);
    lse.resize(static_cast<size_t>(q_offsets.back() * q_heads), NAN);
    row_max = lse;
    attention.out =
        Tensor::contiguous(out.data(), DType::kF32, {q_offsets.back(), q_heads, dim_vo});
    attention.lse = Tensor::contiguous(lse.data(), DType::kF32, {q_offsets.back(), q_heads});
    attention.row_max =
        Tensor::contiguous(row_max.data(), DType::kF32, {q_offsets.back(), q_heads});
  }
  static std::vector<int32_t> offsets(const std::vector<int32_t>& lengths) {
    std::vector<int32_t> result{0};
    for (const int32_t length : lengths) result.push_back(result.back() + length);
    return result;
  }
  Mask mask(Golden& g) {
    Mask m = Mask::none();
    if (g.has("causal")) m = m & Mask::causal();
    if (g.has("window")) m = m & Mask::window(g.ints("window")[0], g.ints("window")[1]);
    if (g.has("chunk")) m = m & Mask::chunked(g.ints("chunk")[0]);
    if (g.has("prefix")) {
      prefix_lengths.assign(g.doubles("seqlens_kv").size(), g.ints("prefix")[0]);
      m = m | Mask::padding(prefix_lengths);
    }
    if (g.has("additive")) {
      const std::vector<int32_t>& s = g.ints("additive_shape");
      m = m & Mask::additive(ConstTensor::contiguous(g.floats("additive").data(), DType::kF32,
                                                     {s[0], s[1], s[2], s[3]}));
    }
    if (g.has("relative_bias")) {
      const std::vector<int32_t>& s = g.ints("relative_bias_shape");
      m = m & Mask::relative_bias(ConstTensor::contiguous(g.floats("relative_bias").data(),
                                                          DType::kF32, {s[0], s[1]}));
    }
    return m;
  }

  std::vector<int32_t> q_offsets, kv_offsets, prefix_lengths;
  std::vector<float> out, lse, row_max;
  Attention attention;
};

template <typename T>
void expect_near(const std::vector<T>& got, const std::vector<double>& want, double tolerance,
                 const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    const auto value = static_cast<double>(got[i]);
    if (value == want[i]) continue;  // infinities
    EXPECT_NEAR(value, want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << i;
  }
}

class GoldenFile : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenFile, reference_agrees_in_double) {
  Golden golden(GetParam());
  Call call(golden);
  const Result<core::Problem> problem =
      engine::validate(call.attention, Options{.backend = "reference"});
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  std::vector<double> out(call.out.size()), lse(call.lse.size()), row_max(call.lse.size());
  size_t row = 0;
  const auto heads = static_cast<size_t>(problem->num_q_heads);
  for (int32_t b = 0; b < problem->batch; ++b) {
    for (int32_t i = 0; i < problem->seqlen_q(b); ++i, ++row) {
      cpu::reference_row(*problem, b, i,
                         &out[row * heads * static_cast<size_t>(problem->head_dim_vo)],
                         &lse[row * heads], &row_max[row * heads]);
    }
  }
  expect_near(out, golden.doubles("out"), 1e-13, "out ");
  expect_near(lse, golden.doubles("lse"), 1e-13, "lse ");
  expect_near(row_max, golden.doubles("row_max"), 1e-13, "row_max ");
}

TEST_P(GoldenFile, every_fp32_kernel_agrees) {
  Golden golden(GetParam());
  int32_t kernels_run = 0;
  for (const BackendInfo& backend : backends()) {
    if (backend.memory != DeviceType::kCpu) continue;  // the call's data is on the host
    for (const std::string& kernel : kernels(backend.name)) {
      Call call(golden);
      const Status status = run(call.attention, Options{.backend = backend.name, .kernel = kernel});
      if (status.code() == StatusCode::kUnsupported) continue;  // another type or machine
      ASSERT_TRUE(status.ok()) << kernel << ": " << status.message();
      ++kernels_run;
      expect_near(call.out, golden.doubles("out"), 2e-6, (kernel + " out ").c_str());
      expect_near(call.lse, golden.doubles("lse"), 2e-6, (kernel + " lse ").c_str());
      expect_near(call.row_max, golden.doubles("row_max"), 2e-6, (kernel + " row_max ").c_str());
    }
  }
  EXPECT_GE(kernels_run, 1);
}

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(PAGODA_GOLDEN_DIR)) {
    if (entry.path().extension() == ".txt" && entry.path().stem() != "CMakeLists") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(GoldenFiles, are_all_there) { EXPECT_EQ(golden_files().size(), 12U); }

INSTANTIATE_TEST_SUITE_P(All, GoldenFile, testing::ValuesIn(golden_files()),
                         [](const testing::TestParamInfo<std::filesystem::path>& file) {
                           return file.param.stem().string();
                         });

}  // namespace
}  // namespace pagoda
