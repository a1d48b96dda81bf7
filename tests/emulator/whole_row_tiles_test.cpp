// Which batches have partial results: Hopper's and Blackwell's kernels of packed rows split no row
// tile of a batch of equal lengths that fills the GPU (whole_row_tiles). Partial results go to the
// workspace past its zeroed part.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "pagoda/emulator.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

// 15 sequences: on four multiprocessors two row tiles each for eight CTAs, or four for four.
constexpr int64_t kBatch = 15, kTokens = 2, kHeads = 4, kKeys = 1024, kDim = 64;
constexpr std::byte kPoison{0xff};

std::vector<uint16_t> random_bf16(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (uint16_t& value : values) {  // 0.5 to 2 with either sign
    value = static_cast<uint16_t>((random() & 0x8000U) | 0x3f00U | (random() & 0xffU));
  }
  return values;
}

// Whether a run stores partial results; its O is compared with that of the CPU.
bool has_partial_results(const std::string& backend, const std::string& kernel, int32_t shortest) {
  const auto q = random_bf16(kBatch * kTokens * kHeads * kDim, 1);
  const auto k = random_bf16(kBatch * kKeys * kDim, 2), v = random_bf16(kBatch * kKeys * kDim, 3);
  std::vector<float> out(q.size(), NAN), expected(q.size(), NAN);
  std::vector<int32_t> lengths(kBatch, kKeys);
  lengths[3] = shortest;
  const auto tensor = [](const std::vector<uint16_t>& values, int64_t rows, int64_t heads) {
    return ConstTensor::contiguous(values.data(), DType::kBF16, {kBatch, rows, heads, kDim});
  };
  Attention attention;
  attention.q = tensor(q, kTokens, kHeads);
  attention.kv = DenseKV{.k = tensor(k, kKeys, 1), .v = tensor(v, kKeys, 1), .seqlens_kv = lengths};
  attention.mask = Mask::causal();
  attention.out = Tensor::contiguous(expected.data(), DType::kF32, {kBatch, kTokens, kHeads, kDim});
  EXPECT_EQ(run(attention, {.backend = "cpu"}).message(), "");
  attention.out.data = out.data();

  const EmulatorScope four({.num_sms = 4});
  const auto planned = plan(attention, {.backend = backend, .kernel = kernel});
  EXPECT_TRUE(planned) << planned.status().message();
  if (!planned) return false;
  std::vector<std::byte> memory(static_cast<size_t>(planned->workspace_bytes()) + 64, kPoison);
  const size_t offset = 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  const std::span<std::byte> workspace =
      std::span(memory).subspan(offset, static_cast<size_t>(planned->workspace_bytes()));
  const auto zeroed = static_cast<std::ptrdiff_t>(planned->zeroed_workspace_bytes());
  std::fill(workspace.begin(), workspace.begin() + zeroed, std::byte{0});
  EXPECT_EQ(run(*planned, attention, workspace).message(), "");
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_NEAR(out[i], expected[i], 0.01) << kernel << " at " << i;
    if (testing::Test::HasFailure()) break;
  }
  return std::any_of(workspace.begin() + zeroed, workspace.end(),
                     [](std::byte b) { return b != kPoison; });
}

class WholeRowTiles : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(register_emulator()); }
};

TEST_F(WholeRowTiles, no_partial_result_where_lengths_are_equal) {
  EXPECT_FALSE(has_partial_results("emu:sm90", "sm90.d64.bf16", kKeys));
  EXPECT_FALSE(has_partial_results("emu:sm100", "sm100.d64.bf16", kKeys));
}

TEST_F(WholeRowTiles, equal_shares_where_they_differ) {
  EXPECT_TRUE(has_partial_results("emu:sm90", "sm90.d64.bf16", 300));
  EXPECT_TRUE(has_partial_results("emu:sm100", "sm100.d64.bf16", 300));
}

}  // namespace
}  // namespace pagoda
