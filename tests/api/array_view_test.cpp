// ArrayView: what converts to it, what does not, and that host code can't iterate it.
#include "pagoda/array_view.hpp"

#include <array>
#include <gtest/gtest.h>
#include <span>
#include <type_traits>
#include <vector>

#include "core/array_elements.hpp"

namespace pagoda {
namespace {

using Ints = ArrayView<int32_t>;

template <typename View>
concept IsReadable = requires(const View& view) {
  *std::begin(view);
}
|| requires(const View& view) { view[0]; };

static_assert(!IsReadable<Ints>, "host code must not read an array of a GPU by mistake");
static_assert(IsReadable<std::span<const int32_t>>, "or the line above says nothing");
static_assert(std::is_convertible_v<std::vector<int32_t>&, Ints>);
static_assert(std::is_convertible_v<const std::array<int32_t, 3>&, Ints>);
static_assert(std::is_convertible_v<std::span<const int32_t>, Ints>);
static_assert(std::is_convertible_v<int32_t (&)[3], Ints>);
static_assert(!std::is_convertible_v<std::vector<int32_t>, Ints>, "it would dangle");
static_assert(!std::is_convertible_v<std::vector<int64_t>&, Ints>, "another element type");
static_assert(!std::is_convertible_v<std::vector<uint32_t>&, Ints>, "another element type");

TEST(ArrayViews, of_a_container_name_the_host_and_hold_its_elements) {
  const std::vector<int32_t> lengths{5, 7, 9};
  const Ints view = lengths;
  EXPECT_EQ(view.data(), lengths.data());
  EXPECT_EQ(view.size(), 3);
  EXPECT_EQ(view.device(), Device{});
  EXPECT_EQ(core::host_elements(view)[2], 9);
  EXPECT_EQ(view.first(2).size(), 2);
  EXPECT_TRUE(Ints().empty());
}

TEST(ArrayViews, of_a_gpu_are_not_read_by_the_host) {
  const std::vector<int32_t> lengths{5, 7, 9};
  const Ints view(lengths.data(), 3, {DeviceType::kCuda, 2});
  EXPECT_EQ(view.first(1).device(), (Device{DeviceType::kCuda, 2}));
  EXPECT_THROW(static_cast<void>(core::host_elements(view)), std::logic_error);
}

}  // namespace
}  // namespace pagoda
