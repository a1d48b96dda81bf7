// append_kv() against a plain loop, over layouts, dtypes, strides and scales.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "core/array_elements.hpp"
#include "core/element.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

constexpr int64_t kPages = 5, kPageSize = 3, kHeads = 3, kTokens = 11, kDimK = 72, kDimV = 40;
constexpr int64_t kPad = 5;  // elements between rows: views with strides of their own

// A buffer with a view whose rows are `kPad` further apart than they need to be.
struct Buffer {
  Buffer(DType dtype, std::initializer_list<int64_t> extents, std::mt19937& random) {
    tensor.dtype = dtype;
    for (const int64_t extent : extents) tensor.shape[static_cast<size_t>(tensor.rank++)] = extent;
    int64_t stride = 1;
    for (int32_t d = tensor.rank - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      tensor.strides[i] = stride;
      stride = stride * tensor.shape[i] + kPad;
    }
    bytes.resize(static_cast<size_t>(stride * size_bytes(dtype)));
    std::normal_distribution<float> normal(0, 100);
    for (int64_t i = 0; i < stride; ++i) {
      core::store_element(bytes.data(), dtype, i, normal(random));
    }
    tensor.data = bytes.data();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::vector<std::byte> bytes;
  Tensor tensor{};
};

struct Case {
  DType from, to;
  PageLayout layout;
  bool per_head;
};

void plain_append(const AppendKV& a, const ConstTensor& from, const Tensor& to, float scale,
                  std::span<const float> per_head, std::vector<std::byte>& expected) {
  for (int64_t t = 0; t < from.shape[0]; ++t) {
    const int64_t slot = core::host_elements(a.slot_mapping)[static_cast<size_t>(t)];
    if (slot < 0) continue;
    for (int64_t h = 0; h < from.shape[1]; ++h) {
      for (int64_t c = 0; c < from.shape[2]; ++c) {
        float value = core::load_element(from.data, from.dtype,
                                         t * from.strides[0] + h * from.strides[1] + c);
        const int64_t page = slot / kPageSize, row = slot % kPageSize;
        const bool is_nhd = a.layout == PageLayout::kNHD;
        const int64_t index = page * to.strides[0] + (is_nhd ? row : h) * to.strides[1] +
                              (is_nhd ? h : row) * to.strides[2] + c;
        if (to.dtype == DType::kF8E4M3) {
          value /= per_head.empty() ? scale : per_head[static_cast<size_t>(h)];
        }
        core::store_element(expected.data(), to.dtype, index, value);
      }
    }
  }
}

class AppendKv : public testing::TestWithParam<Case> {};

TEST_P(AppendKv, equals_a_plain_loop_and_touches_nothing_else) {
  const Case& c = GetParam();
  std::mt19937 random(3);
  Buffer k_new(c.from, {kTokens, kHeads, kDimK}, random);
  Buffer v_new(c.from, {kTokens, kHeads, kDimV}, random);
  const bool is_nhd = c.layout == PageLayout::kNHD;
  const int64_t second = is_nhd ? kPageSize : kHeads, third = is_nhd ? kHeads : kPageSize;
  Buffer k_cache(c.to, {kPages, second, third, kDimK}, random);
  Buffer v_cache(c.to, {kPages, second, third, kDimV}, random);
  const std::vector<int64_t> slots{14, 0, -1, 7, 3, 4, 5, -9, 13, 1, 9};
  const std::vector<float> k_scales{0.5F, 3.0F, 0.37F}, v_scales{7.0F, 1.0F, 0.01F};
  const std::vector<float> no_scales;

  AppendKV append{.k_new = k_new.tensor,
                  .v_new = v_new.tensor,
                  .slot_mapping = slots,
                  .k_cache = k_cache.tensor,
                  .v_cache = v_cache.tensor,
                  .layout = c.layout};
  if (c.to == DType::kF8E4M3) {
    append.kv_scales.k = 0.3F;
    append.kv_scales.v = 1.7F;
    if (c.per_head) {
      append.kv_scales.k_per_head = ConstTensor::contiguous(k_scales.data(), DType::kF32, {kHeads});
      append.kv_scales.v_per_head = ConstTensor::contiguous(v_scales.data(), DType::kF32, {kHeads});
    }
  }
  std::vector<std::byte> k_expected = k_cache.bytes, v_expected = v_cache.bytes;
  plain_append(append, append.k_new, append.k_cache, append.kv_scales.k,
               c.per_head ? k_scales : no_scales, k_expected);
  plain_append(append, append.v_new, append.v_cache, append.kv_scales.v,
               c.per_head ? v_scales : no_scales, v_expected);
  ASSERT_NE(k_expected, k_cache.bytes);

  const Status status = append_kv(append, {.backend = "reference", .checks_indices = true});
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(k_cache.bytes, k_expected);
  EXPECT_EQ(v_cache.bytes, v_expected);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const DType from : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType to : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
      for (const PageLayout layout : {PageLayout::kNHD, PageLayout::kHND}) {
        cases.push_back({from, to, layout, false});
        if (to == DType::kF8E4M3) cases.push_back({from, to, layout, true});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, AppendKv, testing::ValuesIn(all_cases()), [](const auto& test) {
  const Case& c = test.param;
  return std::string(name(c.from)) + "_to_" + name(c.to) +
         (c.layout == PageLayout::kNHD ? "_nhd" : "_hnd") + (c.per_head ? "_per_head" : "");
});

TEST(AppendKv, fp8_saturates_and_keeps_nan) {
  const std::vector<float> values{1e9F, -1e9F, NAN, 448, 0.75F, 464, -464, 0x1p-10F};
  std::vector<uint8_t> k_cache(8, 0x55), v_cache(8, 0x55);
  const std::vector<int64_t> slots{0};
  const auto from = ConstTensor::contiguous(values.data(), DType::kF32, {1, 1, 8});
  AppendKV append{.k_new = from,
                  .v_new = from,
                  .slot_mapping = slots,
                  .k_cache = Tensor::contiguous(k_cache.data(), DType::kF8E4M3, {1, 1, 1, 8}),
                  .v_cache = Tensor::contiguous(v_cache.data(), DType::kF8E4M3, {1, 1, 1, 8})};
  append.kv_scales.v = 2;
  ASSERT_TRUE(append_kv(append, {.backend = "reference"}));
  EXPECT_EQ(k_cache, (std::vector<uint8_t>{0x7e, 0xfe, 0x7f, 0x7e, 0x34, 0x7e, 0xfe, 0x00}));
  EXPECT_EQ(v_cache, (std::vector<uint8_t>{0x7e, 0xfe, 0x7f, 0x76, 0x2c, 0x76, 0xf6, 0x00}));
}

TEST(AppendKv, many_tokens_are_shared_out_completely) {
  constexpr int64_t kMany = 4001;
  std::mt19937 random(5);
  std::vector<float> k(kMany * 16), v(kMany * 8), k_cache(k.size(), NAN), v_cache(v.size(), NAN);
  std::normal_distribution<float> normal;
  for (float& x : k) x = normal(random);
  for (float& x : v) x = normal(random);
  std::vector<int64_t> slots(kMany);
  for (int64_t i = 0; i < kMany; ++i) slots[static_cast<size_t>(i)] = kMany - 1 - i;
  const AppendKV append{
      .k_new = ConstTensor::contiguous(k.data(), DType::kF32, {kMany, 1, 16}),
      .v_new = ConstTensor::contiguous(v.data(), DType::kF32, {kMany, 1, 8}),
      .slot_mapping = slots,
      .k_cache = Tensor::contiguous(k_cache.data(), DType::kF32, {kMany, 1, 1, 16}),
      .v_cache = Tensor::contiguous(v_cache.data(), DType::kF32, {kMany, 1, 1, 8})};
  ASSERT_TRUE(append_kv(append, {.backend = "reference"}));
  for (int64_t t = 0; t < kMany; ++t) {
    const int64_t slot = kMany - 1 - t;
    ASSERT_EQ(
        std::memcmp(&k[static_cast<size_t>(t * 16)], &k_cache[static_cast<size_t>(slot * 16)], 64),
        0);
    ASSERT_EQ(
        std::memcmp(&v[static_cast<size_t>(t * 8)], &v_cache[static_cast<size_t>(slot * 8)], 32),
        0);
  }
}

}  // namespace
}  // namespace pagoda
