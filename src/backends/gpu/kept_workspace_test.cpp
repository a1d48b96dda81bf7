// Kept workspaces over a runtime of the test's own: what is allocated, zeroed, bounded and freed.
#include "backends/gpu/kept_workspace.hpp"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <stdexcept>
#include <vector>

namespace pagoda::gpu {
namespace {

// A stream is its id.
struct FakeStream {
  unsigned long long id = 0;
  bool is_captured = false;
};

struct FakeApi {
  struct Guard {
    explicit Guard(int32_t /*index*/) {}
  };
  using Stream = FakeStream*;
  static inline std::set<void*> allocated;
  static inline bool clear_fails = false;

  static bool is_captured(Stream stream) { return stream->is_captured; }
  static unsigned long long stream_id(Stream stream) { return stream->id; }
  static void* allocate(size_t bytes) {
    void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(memory, 0xff, bytes);
    return *allocated.insert(memory).first;
  }
  static void free(void* memory) noexcept {
    EXPECT_EQ(allocated.erase(memory), 1U);
    std::free(memory);
  }
  static void clear(void* memory, size_t bytes, Stream /*stream*/) {
    if (clear_fails) throw std::runtime_error("clearing a workspace");
    std::memset(memory, 0, bytes);
  }
};

class KeptWorkspacesTest : public testing::Test {
 protected:
  using All = KeptWorkspaces<FakeApi>;
  void TearDown() override {
    All::release();
    EXPECT_TRUE(FakeApi::allocated.empty());
  }
  static std::span<std::byte> keep(core::WorkspaceSize size, FakeStream& stream) {
    return All::keep(size, {DeviceType::kCuda, 0}, Stream{&stream}).value();
  }
  static constexpr core::WorkspaceSize kSmall{.bytes = 4096, .zeroed = 64};
  static constexpr core::WorkspaceSize kLarge{.bytes = 1 << 16, .zeroed = 64};
};

TEST_F(KeptWorkspacesTest, zeros_survive_the_scratch_of_other_plans) {
  FakeStream stream{1};
  for (const core::WorkspaceSize size : {core::WorkspaceSize{.bytes = 1024, .zeroed = 512},
                                         {.bytes = 576, .zeroed = 64},
                                         {.bytes = 640, .zeroed = 512},
                                         {.bytes = 1 << 20, .zeroed = 1024},
                                         {.bytes = 3000, .zeroed = 64}}) {
    const std::span<std::byte> all = keep(size, stream);
    ASSERT_EQ(all.size(), static_cast<size_t>(size.bytes));
    const auto zeroed = static_cast<size_t>(size.zeroed);
    for (const std::byte b : all.first(zeroed)) ASSERT_EQ(b, std::byte{0});
    std::memset(all.data() + zeroed, 0xff, all.size() - zeroed);
  }
  EXPECT_EQ(FakeApi::allocated.size(), 1U) << "outgrown memory is freed";
}

TEST_F(KeptWorkspacesTest, are_those_of_the_streams_that_ran_last) {
  std::vector<FakeStream> streams;
  for (unsigned long long id = 1; id <= 64; ++id) streams.push_back({id});
  std::byte* const first = keep(kSmall, streams[0]).data();
  for (FakeStream& stream : streams) {
    static_cast<void>(keep(kSmall, stream));
    EXPECT_EQ(keep(kSmall, streams[0]).data(), first) << "in use";
  }
  EXPECT_EQ(FakeApi::allocated.size(), kMaxKeptStreams);
}

TEST_F(KeptWorkspacesTest, of_a_destroyed_stream_are_freed_when_its_handle_returns) {
  FakeStream stream{1};
  static_cast<void>(keep(kSmall, stream));
  stream.id = 2;
  static_cast<void>(keep(kSmall, stream));
  EXPECT_EQ(FakeApi::allocated.size(), 1U);
}

TEST_F(KeptWorkspacesTest, are_not_allocated_by_a_capture) {
  FakeStream stream{1}, unknown{2, true};
  std::byte* const kept = keep(kSmall, stream).data();
  stream.is_captured = true;
  EXPECT_EQ(keep(kSmall, stream).data(), kept);
  for (auto [size, captured] : {std::pair(kLarge, &stream), std::pair(kSmall, &unknown)}) {
    const auto refused = All::keep(size, {DeviceType::kCuda, 0}, Stream{captured});
    EXPECT_EQ(refused.status().code(), StatusCode::kStreamCapturing);
  }
}

TEST_F(KeptWorkspacesTest, that_a_capture_has_used_stay_until_released) {
  FakeStream stream{1};
  static_cast<void>(keep(kSmall, stream));
  stream.is_captured = true;
  std::byte* const in_graph = keep(kSmall, stream).data() - 192;  // before it: alignment
  stream.is_captured = false;
  static_cast<void>(keep(kLarge, stream));
  EXPECT_EQ(FakeApi::allocated.size(), 2U);
  EXPECT_TRUE(FakeApi::allocated.contains(in_graph));
}

TEST_F(KeptWorkspacesTest, that_can_not_be_cleared_are_freed) {
  FakeStream stream{1};
  FakeApi::clear_fails = true;
  EXPECT_THROW(static_cast<void>(keep(kSmall, stream)), std::runtime_error);
  FakeApi::clear_fails = false;
  EXPECT_TRUE(FakeApi::allocated.empty());
  EXPECT_EQ(keep(kSmall, stream).size(), 4096U);
}

TEST_F(KeptWorkspacesTest, of_no_bytes_are_not_allocated) {
  FakeStream stream{1};
  EXPECT_TRUE(keep({}, stream).empty());
  EXPECT_TRUE(FakeApi::allocated.empty());
}

}  // namespace
}  // namespace pagoda::gpu
