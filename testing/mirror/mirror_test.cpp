// Mirrors of small calls on the fake device: bytes, overlaps, errors.
#include "testing/mirror/mirror.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

#include "testing/mirror/fake_device.hpp"
#include "testing/mirror/host_space.hpp"

namespace pagoda::mirror {
namespace {

const Options kOptions{.backend = kFakeDevice, .checks_indices = true};

// Two sequences over pages of one pool: K and V side by side, with arrays of every kind.
struct Call {
  Call() {
    EXPECT_TRUE(register_fake_device());
    std::iota(pool.begin(), pool.end(), 0.0F);
    for (float& x : pool) x = 0.01F * static_cast<float>(static_cast<int>(x) % 97) - 0.4F;
    a.q = ConstTensor::contiguous(q.data(), DType::kF32, {3, 2, 8});
    a.cu_seqlens_q = cu_q;
    ConstTensor k = ConstTensor::contiguous(pool.data(), DType::kF32, {4, 4, 1, 8});
    k.strides[0] = 64;
    ConstTensor v = k;
    v.data = pool.data() + 32;
    a.kv = PagedKV{.k = k, .v = v, .table = BlockTable{{table.data(), 2, 2, 3}, lengths}};
    a.mask = (Mask::causal() & Mask::padding(lengths)) &
             Mask::relative_bias(ConstTensor::contiguous(bias.data(), DType::kF32, {2, 5}));
    a.sinks = sinks;
    a.out = Tensor::contiguous(guarded.data() + 4, DType::kF32, {3, 2, 8});
    a.lse = Tensor::contiguous(lse.data(), DType::kF32, {3, 2});
  }
  [[nodiscard]] Surroundings surroundings() {
    return {.outputs = {Bytes(reinterpret_cast<std::byte*>(guarded.data()), sizeof(guarded))},
            .sparse = {},
            .touched = {}};
  }

  std::vector<float> q = std::vector<float>(48, 0.5F), pool = std::vector<float>(256);
  std::vector<int32_t> cu_q{0, 1, 3}, lengths{7, 4}, table{2, 0, -1, 3, -1, -1};
  std::vector<float> sinks{0.1F, -0.2F}, bias = std::vector<float>(10, 0.25F);
  std::array<float, 56> guarded{};
  std::vector<float> lse = std::vector<float>(6);
  Attention a;
};

TEST(Mirror, a_mirrored_call_gives_what_the_call_gives) {
  Call want, got;
  ASSERT_TRUE(run(want.a, Options{.backend = "reference"}));
  Mirror mirror(space_of(kFakeDevice), got.a, got.surroundings());
  const Status status = run(mirror.attention(), kOptions);
  ASSERT_TRUE(status) << status.message();
  EXPECT_NE(got.lse, want.lse);
  mirror.fetch_outputs();
  EXPECT_EQ(got.lse, want.lse);
  EXPECT_EQ(got.guarded, want.guarded);  // which the mirror copied unchanged
  EXPECT_EQ(mirror.changed_input(), "");
}

TEST(Mirror, shared_memory_stays_shared_and_alignment_stays) {
  Call call;
  Mirror mirror(space_of(kFakeDevice), call.a, call.surroundings());
  const auto& host = std::get<PagedKV>(call.a.kv);
  const auto& device = std::get<PagedKV>(mirror.attention().kv);
  const auto apart = [](const PagedKV& kv) {
    return static_cast<const std::byte*>(kv.v.data) - static_cast<const std::byte*>(kv.k.data);
  };
  EXPECT_EQ(apart(device), apart(host));
  const auto alignment = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 256; };
  EXPECT_EQ(alignment(device.k.data), alignment(host.k.data));
  EXPECT_EQ(alignment(mirror.attention().out.data), alignment(call.a.out.data));
  EXPECT_NE(device.k.data, host.k.data);
}

TEST(Mirror, a_write_into_an_input_or_a_guard_is_seen) {
  Call call;
  core::MemorySpace& space = space_of(kFakeDevice);
  Mirror mirror(space, call.a, call.surroundings());
  auto* out = static_cast<std::byte*>(mirror.attention().out.data);
  space.fill(out - 4, std::byte{1}, 1);
  mirror.fetch_outputs();
  EXPECT_NE(call.guarded[3], 0.0F);
  EXPECT_EQ(mirror.changed_input(), "");
  auto* sinks = reinterpret_cast<const std::byte*>(mirror.attention().sinks.data());
  space.fill(const_cast<std::byte*>(sinks), std::byte{1}, 1);
  EXPECT_EQ(mirror.changed_input(), "sinks: an input was written");
}

TEST(Mirror, outputs_are_sent_as_they_are) {
  Call call;
  Mirror mirror(space_of(kFakeDevice), call.a);
  std::fill(call.lse.begin(), call.lse.end(), 3.0F);
  mirror.send_outputs();
  std::fill(call.lse.begin(), call.lse.end(), 0.0F);
  mirror.fetch_outputs();
  EXPECT_EQ(call.lse, std::vector<float>(6, 3.0F));
}

TEST(Mirror, of_sparse_memory_only_what_was_touched_is_copied) {
  Call call;
  auto* pool = reinterpret_cast<std::byte*>(call.pool.data());
  Surroundings surroundings{.outputs = {},
                            .sparse = {Bytes(pool, call.pool.size() * 4)},
                            .touched = {Bytes(pool + 64, 32)}};
  core::MemorySpace& space = space_of(kFakeDevice);
  Mirror mirror(space, call.a, surroundings);
  std::vector<std::byte> got(128);
  space.copy_out(got.data(),
                 static_cast<const std::byte*>(std::get<PagedKV>(mirror.attention().kv).k.data),
                 128);
  EXPECT_EQ(std::memcmp(got.data() + 64, pool + 64, 32), 0);
  for (const size_t i : {0U, 63U, 96U, 127U}) EXPECT_EQ(got[i], std::byte{0xff}) << i;
  EXPECT_EQ(mirror.changed_input(), "");
}

TEST(Mirror, arrays_without_elements_and_masks_of_every_kind_survive) {
  Call call;
  call.a.seqlens_q = {call.lengths.data(), 0};
  const auto bits = std::vector<uint32_t>(8, ~0U);
  const std::vector<int64_t> offsets{0, 1, 3};
  call.a.mask = (Mask::window(3, 0) | Mask::chunked(4)) &
                (Mask::bits(bits, offsets) & (Mask::none() | Mask::causal()));
  Mirror mirror(space_of(kFakeDevice), call.a);
  const auto& nodes = mirror.attention().mask.nodes();
  ASSERT_EQ(nodes.size(), call.a.mask.nodes().size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].kind, call.a.mask.nodes()[i].kind);
    EXPECT_EQ(nodes[i].lhs, call.a.mask.nodes()[i].lhs);
    EXPECT_EQ(nodes[i].rhs, call.a.mask.nodes()[i].rhs);
    EXPECT_EQ(nodes[i].left, call.a.mask.nodes()[i].left);
    EXPECT_EQ(nodes[i].chunk, call.a.mask.nodes()[i].chunk);
  }
  EXPECT_TRUE(mirror.attention().seqlens_q.empty());
  EXPECT_TRUE(run(mirror.attention(), kOptions));
}

TEST(Mirror, a_device_without_room_says_so_and_nothing_leaks) {
  Call call;
  const int64_t before = fake_allocations();
  { const Mirror fits(space_of(kFakeDevice), call.a); }
  EXPECT_EQ(fake_allocations(), before);
  set_fake_memory_limit(1);
  EXPECT_THROW(Mirror(space_of(kFakeDevice), call.a), std::bad_alloc);
  set_fake_memory_limit(0);
  EXPECT_EQ(fake_allocations(), before);
}

TEST(SpaceOf, names_what_is_wrong) {
  EXPECT_TRUE(space_of("cpu").is_host());
  EXPECT_THROW(static_cast<void>(space_of("abacus")), std::runtime_error);
}

}  // namespace
}  // namespace pagoda::mirror
