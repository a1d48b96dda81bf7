// The append_kv kernel on the emulator stores the same bytes as the CPU implementation:
// random shapes, strides with gaps, poison in every slot that is not written and around the
// tensors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/append_kv/append_kv.hpp"
#include "pagoda/attention.hpp"
#include "testing/material/guarded_tensor.hpp"

namespace pagoda::kernels {
namespace {

using material::GuardedTensor;

using emulator::input;
using emulator::output;

struct Case {
  DType from = DType::kF32, to = DType::kF32;
  PageLayout layout = PageLayout::kNHD;
  bool has_head_scales = false;
  int64_t tokens = 5, heads = 2, dim_k = 64, dim_v = 64, pages = 4, page_size = 3;
  int64_t gap = 0, guard = 16;
};

// Normally distributed numbers; one in 16 is special: NaN, infinity, subnormal, a tie of fp8, ...
void fill_tokens(const Tensor& t, std::span<const int64_t> slots, std::mt19937& random) {
  const float odd[] = {NAN,      -NAN,   INFINITY, -INFINITY, 0.0F,     -0.0F,    1e9F,
                       -3.4e38F, 1e-40F, 448.0F,   -464.0F,   65520.0F, 0x1p-25F, -0x1.8p-10F};
  std::normal_distribution<float> normal(0, 100);
  for (int64_t i = 0; i < t.shape[0]; ++i) {
    if (slots[static_cast<size_t>(i)] < 0) continue;  // stays NaN
    for (int64_t h = 0; h < t.shape[1]; ++h) {
      for (int64_t c = 0; c < t.shape[2]; ++c) {
        const int64_t at = i * t.strides[0] + h * t.strides[1] + c;
        const bool is_odd = random() % 16 == 0;
        core::store_element(t.data, t.dtype, at,
                            is_odd ? odd[random() % std::size(odd)] : normal(random));
        if (is_odd && random() % 4 == 0) {  // any bits: signalling NaNs, subnormals
          const auto word = static_cast<uint32_t>(random());
          std::memcpy(static_cast<std::byte*>(t.data) + at * size_bytes(t.dtype), &word,
                      static_cast<size_t>(size_bytes(t.dtype)));
        }
      }
    }
  }
}

// Random slots, some negative, no slot twice.
std::vector<int64_t> random_slots(const Case& c, std::mt19937& random) {
  std::vector<int64_t> all(static_cast<size_t>(c.pages * c.page_size));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(static_cast<size_t>(c.tokens));
  for (int64_t& slot : all) {
    if (random() % 4 == 0) slot = -1 - static_cast<int64_t>(random() % 5);
  }
  return all;
}

emulator::Result run_kernel(const AppendKVParams& params, arch::Dim3 grid,
                            std::vector<emulator::GlobalBuffer> buffers,
                            emulator::Options options) {
  return emulator::launch<AppendKVKernel>(emulator::shape_of<AppendKVKernel>("append_kv", grid),
                                          params, std::move(buffers), options);
}

void expect_the_cpu_s_bytes(const Case& c, uint32_t seed, int32_t largest_grid = INT32_MAX) {
  std::mt19937 random(seed);
  const bool is_nhd = c.layout == PageLayout::kNHD;
  const int64_t second = is_nhd ? c.page_size : c.heads, third = is_nhd ? c.heads : c.page_size;
  GuardedTensor k_new(c.from, {c.tokens, c.heads, c.dim_k}, c.gap, c.guard);
  GuardedTensor v_new(c.from, {c.tokens, c.heads, c.dim_v}, c.gap, c.guard);
  const std::vector<int64_t> slots = random_slots(c, random);
  fill_tokens(k_new.view(), slots, random);
  fill_tokens(v_new.view(), slots, random);
  std::vector<float> k_scales, v_scales;
  for (int64_t h = 0; h < c.heads && c.has_head_scales; ++h) {
    k_scales.push_back(0.01F + static_cast<float>(random() % 1000) / 300.0F);
    v_scales.push_back(0.01F + static_cast<float>(random() % 1000) / 300.0F);
  }
  AppendKV call{
      .k_new = k_new.view(), .v_new = v_new.view(), .slot_mapping = slots, .layout = c.layout};
  if (c.to == DType::kF8E4M3) {
    call.kv_scales = {.k = 0.37F, .v = 1.9F};
    if (c.has_head_scales) {
      call.kv_scales.k_per_head = ConstTensor::contiguous(k_scales.data(), DType::kF32, {c.heads});
      call.kv_scales.v_per_head = ConstTensor::contiguous(v_scales.data(), DType::kF32, {c.heads});
    }
  }
  GuardedTensor k_expected(c.to, {c.pages, second, third, c.dim_k}, c.gap, c.guard);
  GuardedTensor v_expected(c.to, {c.pages, second, third, c.dim_v}, c.gap, c.guard);
  AppendKV cpu_call = call;
  cpu_call.k_cache = k_expected.view();
  cpu_call.v_cache = v_expected.view();
  const Status status = pagoda::append_kv(cpu_call, {.backend = "reference"});
  ASSERT_TRUE(status) << status.message();

  for (const emulator::Mode mode : emulator::kModes) {
    GuardedTensor k(c.to, {c.pages, second, third, c.dim_k}, c.gap, c.guard);
    GuardedTensor v(c.to, {c.pages, second, third, c.dim_v}, c.gap, c.guard);
    call.k_cache = k.view();
    call.v_cache = v.view();
    const AppendKVParams params = make_params(call);
    const arch::Dim3 grid{std::min(grid_of(params).x, largest_grid)};
    const emulator::Result result =
        run_kernel(params, grid,
                   {input("k_new", k_new.bytes().data(), k_new.bytes().size()),
                    input("v_new", v_new.bytes().data(), v_new.bytes().size()),
                    input("slots", slots.data(), slots.size()),
                    input("k_scales", k_scales.data(), k_scales.size()),
                    input("v_scales", v_scales.data(), v_scales.size()),
                    output("k_cache", k.bytes().data(), k.bytes().size()),
                    output("v_cache", v.bytes().data(), v.bytes().size())},
                   {.mode = mode, .seed = seed});
    for (const emulator::Report& report : result.reports) ADD_FAILURE() << to_string(report);
    EXPECT_EQ(k.bytes(), k_expected.bytes()) << name(mode);
    EXPECT_EQ(v.bytes(), v_expected.bytes()) << name(mode);
  }
}

std::string describe(const Case& c) {
  return std::string(name(c.from)) + " to " + name(c.to) +
         (c.layout == PageLayout::kNHD ? " nhd" : " hnd") + " tokens " + std::to_string(c.tokens) +
         " heads " + std::to_string(c.heads) + " dims " + std::to_string(c.dim_k) + " " +
         std::to_string(c.dim_v) + " pages " + std::to_string(c.pages) + " of " +
         std::to_string(c.page_size) + " gap " + std::to_string(c.gap) + " guard " +
         std::to_string(c.guard);
}

constexpr DType kSources[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr DType kTargets[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3};

TEST(AppendKVKernel, stores_the_cpu_s_bytes_for_every_pair_of_types) {
  uint32_t seed = 1;
  for (const DType from : kSources) {
    for (const DType to : kTargets) {
      for (const PageLayout layout : {PageLayout::kNHD, PageLayout::kHND}) {
        const Case c{.from = from, .to = to, .layout = layout, .has_head_scales = seed % 2 == 0};
        SCOPED_TRACE(describe(c));
        expect_the_cpu_s_bytes(c, seed++);
        if (to != DType::kF8E4M3) continue;
        Case other = c;
        other.has_head_scales = !c.has_head_scales;
        expect_the_cpu_s_bytes(other, seed++);
      }
    }
  }
}

TEST(AppendKVKernel, stores_the_cpu_s_bytes_for_random_shapes_and_strides) {
  std::mt19937 random(7);
  const auto among = [&](auto... values) {
    const int64_t list[] = {values...};
    return list[random() % sizeof...(values)];
  };
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    Case c{.from = kSources[random() % 3],
           .to = kTargets[random() % 4],
           .layout = random() % 2 == 0 ? PageLayout::kNHD : PageLayout::kHND,
           .has_head_scales = random() % 2 == 0,
           .tokens = among(1, 2, 7, 19),
           .heads = among(1, 2, 3),
           .dim_k = among(8, 40, 72, 128, 192, 264, 576),
           .dim_v = among(8, 24, 64, 72, 128, 520),
           .page_size = among(1, 3, 16, 20),
           .gap = among(0, 0, 1, 2, 4, 8, 24),
           .guard = among(16, 16, 1, 2, 4, 8)};
    c.pages = (c.tokens + c.page_size - 1) / c.page_size + 1;
    SCOPED_TRACE(describe(c));
    expect_the_cpu_s_bytes(c, seed);
  }
}

TEST(AppendKVKernel, a_smaller_grid_does_all_blocks) {
  const Case c{.from = DType::kBF16, .to = DType::kF8E4M3, .tokens = 70, .heads = 3, .pages = 30};
  expect_the_cpu_s_bytes(c, 5, 1);
  expect_the_cpu_s_bytes(c, 6, 4);
}

// Contiguous fp32 rows of 2 tokens and 2 heads, to a bf16 NHD cache of 2 pages of 2 rows.
AppendKV small_call(int64_t dim, float* from, uint16_t* to, std::span<const int64_t> slots) {
  const auto rows = ConstTensor::contiguous(from, DType::kF32, {2, 2, dim});
  const auto cache = Tensor::contiguous(to, DType::kBF16, {2, 2, 2, dim});
  return {.k_new = rows, .v_new = rows, .slot_mapping = slots, .k_cache = cache, .v_cache = cache};
}

TEST(AppendKVKernel, chunks_are_as_wide_as_pointers_strides_and_dims_allow) {
  std::vector<float> floats(4096);
  std::vector<uint16_t> halves(4096);
  const std::vector<int64_t> slots{0, 1};
  const auto chunk = [&](int64_t dim, int64_t from_offset = 0, int64_t to_offset = 0) {
    return make_params(
               small_call(dim, floats.data() + from_offset, halves.data() + to_offset, slots))
        .sides[1]
        .chunk;
  };
  EXPECT_EQ(chunk(128), 8);
  EXPECT_EQ(chunk(128, 4, 8), 8);  // 16 bytes
  EXPECT_EQ(chunk(20), 4);
  EXPECT_EQ(chunk(128, 0, 4), 4);
  EXPECT_EQ(chunk(128, 2, 0), 2);
  EXPECT_EQ(chunk(128, 1, 0), 1);
  EXPECT_EQ(chunk(63), 1);
  for (const size_t dimension : {0, 1, 2}) {
    for (const int64_t more : {8, 4, 2, 1}) {
      AppendKV call = small_call(128, floats.data(), halves.data(), slots);
      call.k_cache.strides[dimension] += more;
      EXPECT_EQ(make_params(call).sides[0].chunk, more) << dimension;
      EXPECT_EQ(make_params(call).sides[1].chunk, 8) << "of V";
      if (dimension == 2) continue;
      call = small_call(128, floats.data(), halves.data(), slots);
      call.v_new.strides[dimension] += more;
      EXPECT_EQ(make_params(call).sides[1].chunk, more >= 4 ? 8 : more) << dimension;
      call.v_new.shape[dimension] = 1;  // its stride is never used
      EXPECT_EQ(make_params(call).sides[1].chunk, 8) << dimension;
    }
  }
}

TEST(AppendKVKernel, moves_16_bytes_an_access) {
  GuardedTensor from(DType::kBF16, {8, 1, 128}, 0, 8), k(DType::kBF16, {1, 8, 1, 128}, 0, 8),
      v(DType::kBF16, {1, 8, 1, 128}, 0, 8);
  const std::vector<int64_t> slots{3, 1, 2, 0, 7, 6, 5, 4};
  const AppendKVParams params = make_params({.k_new = from.view(),
                                             .v_new = from.view(),
                                             .slot_mapping = slots,
                                             .k_cache = k.view(),
                                             .v_cache = v.view()});
  const emulator::Result result =
      run_kernel(params, grid_of(params),
                 {input("new", from.bytes().data(), from.bytes().size()),
                  input("slots", slots.data(), slots.size()),
                  output("k_cache", k.bytes().data(), k.bytes().size()),
                  output("v_cache", v.bytes().data(), v.bytes().size())},
                 {});
  EXPECT_TRUE(result.is_clean());
  EXPECT_EQ(grid_of(params).x, 1);
  EXPECT_EQ(result.statistics.accesses, 2U * 128 * 3) << "a thread: slot, 16 bytes in, 16 out";
}

// Values half-way between two fp8 numbers once divided: a product with 1 / scale rounds some of
// them to the other side.
TEST(AppendKVKernel, fp8_is_a_division) {
  std::vector<float> rows;
  int reciprocal_differs = 0;
  const std::vector<float> scales{0.37F, 1.9F, 0.0123F};
  for (const float scale : scales) {
    for (int i = 0; i < 64; ++i) {
      const float middle =
          (1 + static_cast<float>(i % 8) / 8 + 1.0F / 16) * static_cast<float>(1 << (i / 8));
      rows.push_back(middle * scale);
      const bool differs = core::float_to_f8e4m3(rows.back() / scale) !=
                           core::float_to_f8e4m3(rows.back() * (1 / scale));
      reciprocal_differs += differs ? 1 : 0;
    }
  }
  ASSERT_GT(reciprocal_differs, 0);
  std::vector<uint8_t> k(rows.size(), 0xff), v(rows.size(), 0xff);
  const std::vector<int64_t> slots{0};
  const auto from = ConstTensor::contiguous(rows.data(), DType::kF32, {1, 3, 64});
  const AppendKVParams params =
      make_params({.k_new = from,
                   .v_new = from,
                   .slot_mapping = slots,
                   .k_cache = Tensor::contiguous(k.data(), DType::kF8E4M3, {1, 1, 3, 64}),
                   .v_cache = Tensor::contiguous(v.data(), DType::kF8E4M3, {1, 1, 3, 64}),
                   .kv_scales = {.v = 0.37F,
                                 .k_per_head = ConstTensor::contiguous(scales.data(), DType::kF32,
                                                                       {std::ssize(scales)})}});
  ASSERT_TRUE(
      run_kernel(
          params, grid_of(params),
          {input("rows", rows.data(), rows.size()), input("slots", slots.data(), slots.size()),
           input("scales", scales.data(), scales.size()), output("k_cache", k.data(), k.size()),
           output("v_cache", v.data(), v.size())},
          {})
          .is_clean());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(k[i], core::float_to_f8e4m3(rows[i] / scales[i / 64])) << i;
    EXPECT_EQ(v[i], core::float_to_f8e4m3(rows[i] / 0.37F)) << i;
  }
}

TEST(AppendKVKernel, no_tokens_give_an_empty_grid) {
  std::vector<uint16_t> data(16);
  const auto from = ConstTensor::contiguous(data.data(), DType::kF16, {0, 2, 8});
  const auto to = Tensor::contiguous(data.data(), DType::kF16, {1, 1, 2, 8});
  EXPECT_EQ(grid_of(make_params({.k_new = from, .v_new = from, .k_cache = to, .v_cache = to})).x,
            0);
}

// Two pages of K more than 4 GiB apart, in reserved memory that is not touched in between.
TEST(AppendKVKernel, offsets_have_64_bits) {
  constexpr int64_t kPageStride = (int64_t{1} << 32) + 4096;
  constexpr size_t kBytes = kPageStride + 4096;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 4 GiB of addresses";
  std::vector<float> rows(16);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i + 1);
  const std::vector<int64_t> slots{1, 0};
  const auto from = ConstTensor::contiguous(rows.data(), DType::kF32, {2, 1, 8});
  Tensor k = Tensor::contiguous(memory, DType::kF8E4M3, {2, 1, 1, 8});
  k.strides[0] = kPageStride;
  std::vector<uint8_t> v(16, 0xff);
  const AppendKVParams params =
      make_params({.k_new = from,
                   .v_new = from,
                   .slot_mapping = slots,
                   .k_cache = k,
                   .v_cache = Tensor::contiguous(v.data(), DType::kF8E4M3, {2, 1, 1, 8})});
  auto* const bytes = static_cast<uint8_t*>(memory);
  const emulator::Result result = run_kernel(
      params, grid_of(params),
      {input("rows", rows.data(), rows.size()), input("slots", slots.data(), slots.size()),
       output("k_cache", bytes, kBytes), output("v_cache", v.data(), v.size())},
      {});
  for (const emulator::Report& report : result.reports) ADD_FAILURE() << to_string(report);
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(bytes[kPageStride + i], core::float_to_f8e4m3(rows[static_cast<size_t>(i)]));
    EXPECT_EQ(bytes[i], core::float_to_f8e4m3(rows[static_cast<size_t>(8 + i)]));
  }
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace pagoda::kernels
