// The emulator as a registered back end: it serves calls of the public API.
#include "backends/emulator/backend.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "backends/emulator/call_buffers.hpp"

namespace pagoda::emulator {
namespace {

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& x : values) x = normal(random);
  return values;
}

const core::Backend& backend() { return *backends()[0]; }
const core::RunContext kContext{};

// K and V are two views of one pool: [pages, 2, page_size, heads, dim].
TEST(EmulatedBackend, appends_to_interleaved_caches_what_the_cpu_appends) {
  constexpr int64_t kTokens = 5, kHeads = 2, kDim = 16, kPages = 3, kPageSize = 4;
  constexpr int64_t kSide = kPageSize * kHeads * kDim;
  const std::vector<float> fresh = random_floats(2 * kTokens * kHeads * kDim, 1);
  const std::vector<int64_t> slots{11, 0, -1, 5, 3};
  const auto append_to = [&](std::vector<float>& pool) {
    const auto new_rows = [&](int64_t first) {
      return ConstTensor::contiguous(fresh.data() + first, DType::kF32, {kTokens, kHeads, kDim});
    };
    const auto cache = [&](int64_t first) {
      Tensor t =
          Tensor::contiguous(pool.data() + first, DType::kF32, {kPages, kPageSize, kHeads, kDim});
      t.strides[0] = 2 * kSide;
      return t;
    };
    return AppendKV{.k_new = new_rows(0),
                    .v_new = new_rows(kTokens * kHeads * kDim),
                    .slot_mapping = slots,
                    .k_cache = cache(0),
                    .v_cache = cache(kSide)};
  };
  std::vector<float> want(kPages * 2 * kSide, 7), got = want;
  ASSERT_TRUE(pagoda::append_kv(append_to(want)));
  ASSERT_TRUE(backend().append_kv(append_to(got), kContext));
  EXPECT_EQ(got, want);
}

TEST(EmulatedBackend, merges_what_the_cpu_merges) {
  constexpr int64_t kParts = 3, kRows = 4, kHeads = 2, kDim = 16;
  const std::vector<float> parts = random_floats(kParts * kRows * kHeads * kDim, 2);
  const std::vector<float> lses = random_floats(kParts * kRows * kHeads, 3);
  const auto merge_to = [&](std::vector<float>& out) {
    return MergeStates{
        .partial_out =
            ConstTensor::contiguous(parts.data(), DType::kF32, {kParts, kRows, kHeads, kDim}),
        .partial_lse = ConstTensor::contiguous(lses.data(), DType::kF32, {kParts, kRows, kHeads}),
        .out = Tensor::contiguous(out.data(), DType::kF32, {kRows, kHeads, kDim})};
  };
  std::vector<float> want(kRows * kHeads * kDim, NAN), got = want;
  ASSERT_TRUE(pagoda::merge_states(merge_to(want)));
  ASSERT_TRUE(backend().merge_states(merge_to(got), kContext));
  EXPECT_EQ(got, want);
}

// In place: O into part 1, the LSE into part 2; with base 2, heads before rows, and a skipped row.
TEST(EmulatedBackend, merges_in_place_what_the_cpu_merges) {
  constexpr int64_t kParts = 3, kRows = 4, kHeads = 2, kDim = 16, kOut = kRows * kHeads * kDim;
  const std::vector<uint8_t> mask{1, 1, 0, 1};
  const auto merge_to = [&](std::vector<float>& parts, std::vector<float>& lses) {
    MergeStates merge{
        .partial_out =
            ConstTensor::contiguous(parts.data(), DType::kF32, {kParts, kRows, kHeads, kDim}),
        .partial_lse = ConstTensor::contiguous(lses.data(), DType::kF32, {kParts, kHeads, kRows})
                           .transposed(1, 2),
        .out = Tensor::contiguous(parts.data() + kOut, DType::kF32, {kRows, kHeads, kDim}),
        .lse = Tensor::contiguous(lses.data() + 2 * kHeads * kRows, DType::kF32, {kHeads, kRows})
                   .transposed(0, 1),
        .lse_base = LogBase::k2};
    merge.row_mask = mask;
    return merge;
  };
  std::vector<float> parts = random_floats(kParts * kOut, 2), got = parts;
  std::vector<float> lses = random_floats(kParts * kRows * kHeads, 3), got_lses = lses;
  const std::vector<float> before = parts, lses_before = lses;
  ASSERT_TRUE(pagoda::merge_states(merge_to(parts, lses)));
  ASSERT_TRUE(backend().merge_states(merge_to(got, got_lses), kContext));
  EXPECT_EQ(got, parts);
  EXPECT_EQ(got_lses, lses);
  EXPECT_NE(got, before);
  EXPECT_NE(lses, lses_before);
}

TEST(EmulatedBackend, a_finding_fails_the_call) {
  emulator::Result result;
  EXPECT_NO_THROW(expect_clean(result));
  result.reports.emplace_back().message = "two writes that nothing orders";
  EXPECT_THROW(expect_clean(result), std::runtime_error);
}

TEST(CallBuffers, that_overlap_become_one) {
  std::vector<float> pool(64);
  const auto view = [&](int64_t first, int64_t count) {
    return Tensor::contiguous(pool.data() + first, DType::kF32, {count});
  };
  Tensor backwards = view(15, 8);
  backwards.strides[0] = -1;  // 8..15
  CallBuffers buffers;
  buffers.reads("c", view(40, 8))
      .reads("a", backwards)
      .updates("b", view(12, 10))
      .reads("absent", ConstTensor{})
      .reads("empty", view(30, 0));
  const std::vector<emulator::GlobalBuffer> merged = buffers.merged();
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].begin, reinterpret_cast<std::byte*>(pool.data() + 8));
  EXPECT_EQ(merged[0].bytes, 14 * sizeof(float));
  EXPECT_EQ(merged[0].name, "a and b");
  EXPECT_EQ(merged[0].permission, emulator::Permission::kReadWrite);
  EXPECT_EQ(merged[1].name, "c");
  EXPECT_EQ(merged[1].permission, emulator::Permission::kRead);
}

TEST(CallBuffers, a_workspace_is_known_as_far_as_it_is_zero) {
  std::vector<std::byte> memory(192);
  const std::vector<emulator::GlobalBuffer> parts = CallBuffers().workspace(memory, 64).merged();
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_TRUE(parts[0].is_written);
  EXPECT_EQ(parts[0].bytes, 64U);
  EXPECT_FALSE(parts[1].is_written);
  EXPECT_EQ(CallBuffers().workspace(memory, 0).merged().size(), 1U);
}

}  // namespace
}  // namespace pagoda::emulator
