// share_bytes() against two sets of addresses, and the views that it has to decide.
#include "engine/overlap.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

namespace pagoda::engine {
namespace {

alignas(64) std::byte buffer[1 << 16];

Tensor view(int64_t offset, std::vector<int64_t> shape, std::vector<int64_t> strides,
            DType dtype = DType::kF32) {
  Tensor t{.data = buffer + offset * size_bytes(dtype), .dtype = dtype};
  t.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), t.shape.begin());
  std::copy(strides.begin(), strides.end(), t.strides.begin());
  return t;
}

std::set<const std::byte*> addresses(const Tensor& t) {
  std::set<const std::byte*> starts{static_cast<const std::byte*>(t.data)}, bytes;
  for (size_t d = 0; d < static_cast<size_t>(t.rank); ++d) {
    std::set<const std::byte*> next;
    for (const std::byte* start : starts) {
      for (int64_t i = 0; i < t.shape[d]; ++i) {
        next.insert(start + i * t.strides[d] * size_bytes(t.dtype));
      }
    }
    starts = std::move(next);
  }
  for (const std::byte* start : starts) {
    for (int64_t i = 0; i < size_bytes(t.dtype); ++i) bytes.insert(start + i);
  }
  return bytes;
}

bool have_common(const Tensor& a, const Tensor& b) {
  const std::set<const std::byte*> of_a = addresses(a), of_b = addresses(b);
  return std::any_of(of_a.begin(), of_a.end(),
                     [&](const std::byte* x) { return of_b.contains(x); });
}

TEST(Overlap, agrees_with_the_sets_of_addresses) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kF8E4M3};
  const auto draw_view = [&] {
    std::vector<int64_t> shape, strides;
    for (int64_t d = draw(1, 4); d > 0; --d) {
      shape.push_back(draw(0, 12) == 0 ? 0 : draw(1, 4));
      strides.push_back(draw(-1, 1) == 0 ? draw(0, 5) : draw(-60, 60));
    }
    return view(4096 + draw(-30, 30), shape, strides, kTypes[draw(0, 2)]);
  };
  int shared = 0, apart = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Tensor a = draw_view(), b = draw_view();
    const std::optional<bool> found = share_bytes(bytes_of(a), bytes_of(b));
    if (!found) continue;
    ASSERT_EQ(*found, have_common(a, b)) << "pair " << i;
    ++(*found ? shared : apart);
  }
  EXPECT_GT(shared, 1'000);
  EXPECT_GT(apart, 10'000);
}

TEST(Overlap, slices_of_one_buffer_are_decided) {
  // [tokens, heads, 3, 64]: q, k and v of each head together. O may take the columns of one, but
  // not those of a token that another one has.
  const std::vector<int64_t> shape{8, 4, 64}, strides{4 * 192, 192, 1};
  const auto of = [&](int64_t offset) { return bytes_of(view(offset, shape, strides)); };
  EXPECT_EQ(share_bytes(of(0), of(64)), false);
  EXPECT_EQ(share_bytes(of(64), of(128)), false);
  EXPECT_EQ(share_bytes(of(0), of(0)), true);
  EXPECT_EQ(share_bytes(of(0), of(4 * 192)), true);        // a token further
  EXPECT_EQ(share_bytes(of(64), of(64 + 3 * 192)), true);  // three heads further, of two tokens
  EXPECT_EQ(share_bytes(of(64), of(3 * 192)), false);
  EXPECT_EQ(share_bytes(of(0), of(63)), true);
  EXPECT_EQ(share_bytes(of(0), of(8 * 4 * 192)), false);
  // The same with dimensions in another order, and backwards.
  const Tensor turned = view(64 + 192 * 3, {64, 4, 8}, {1, -192, 4 * 192});
  EXPECT_EQ(share_bytes(bytes_of(turned), of(64)), true);
  EXPECT_EQ(share_bytes(bytes_of(turned), of(0)), false);
}

TEST(Overlap, element_sizes_may_differ) {
  const Tensor floats = view(0, {8, 3}, {4, 1});  // a gap of 4 bytes a row
  const auto halves = [](int64_t offset) {
    return bytes_of(view(offset, {8, 2}, {8, 1}, DType::kF16));
  };
  EXPECT_EQ(share_bytes(bytes_of(floats), halves(6)), false);
  EXPECT_EQ(share_bytes(bytes_of(floats), halves(5)), true);
  EXPECT_EQ(share_bytes(bytes_of(floats), halves(7)), true);
}

TEST(Overlap, rows_and_empty_arrays) {
  const auto of_rows = [](int64_t offset, int64_t rows, int64_t bytes, int64_t stride) {
    return bytes_of_rows(buffer + offset, rows, bytes, stride);
  };
  EXPECT_EQ(share_bytes(of_rows(0, 4, 12, 32), of_rows(12, 4, 20, 32)), false);
  EXPECT_EQ(share_bytes(of_rows(0, 4, 12, 32), of_rows(11, 4, 20, 32)), true);
  EXPECT_EQ(share_bytes(of_rows(0, 4, 12, 32), {}), false);
  EXPECT_EQ(share_bytes(bytes_of(Tensor{}), of_rows(0, 4, 12, 32)), false);
  EXPECT_EQ(share_bytes(bytes_of(view(0, {4, 0, 2}, {0, 0, 0})), of_rows(0, 4, 12, 32)), false);
}

TEST(Overlap, a_search_that_would_take_long_decides_nothing) {
  // Even addresses and odd ones.
  const Tensor a = view(0, {7, 7, 7, 7}, {1998, 330, 54, 6}, DType::kF8E4M3);
  const Tensor b = view(1, {7, 7, 7, 7}, {1662, 282, 46, 4}, DType::kF8E4M3);
  EXPECT_EQ(share_bytes(bytes_of(a), bytes_of(b)), std::nullopt);
  const Tensor far = view(0, {2, 2}, {int64_t{1} << 61, 1}, DType::kF8E4M3);
  EXPECT_EQ(share_bytes(bytes_of(far), bytes_of(a)), std::nullopt);
}

}  // namespace
}  // namespace pagoda::engine
