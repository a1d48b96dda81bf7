// The merge_states kernel on the emulator gives the same bits as the CPU implementation, reads no
// part without keys, and writes only its rows.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/merge_states/merge_states.hpp"
#include "pagoda/attention.hpp"
#include "testing/material/guarded_tensor.hpp"

namespace pagoda::kernels {
namespace {

using material::GuardedTensor;

using emulator::GlobalBuffer;
using emulator::input;
using emulator::output;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
struct Case {
  int64_t parts = 3, tokens = 2, heads = 2, dim = 64;
  DType partial = DType::kF32, merged = DType::kF32;
  int64_t gap = 0, guard = 16;
  bool has_lse = true;
};

std::string describe(const Case& c) {
  return std::to_string(c.parts) + " parts of " + std::to_string(c.tokens) + " x " +
         std::to_string(c.heads) + " x " + std::to_string(c.dim) + " " + name(c.partial) + " to " +
         name(c.merged) + " gap " + std::to_string(c.gap) + " guard " + std::to_string(c.guard);
}

// The data of a case. Parts without keys keep poison for their O.
struct States {
  States(const Case& c, uint32_t seed, double silent_share)
      : out(c.partial, {c.parts, c.tokens, c.heads, c.dim}, c.gap, c.guard),
        lse(DType::kF32, {c.parts, c.tokens, c.heads + 1}, c.gap, c.guard) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 3);
    const Tensor o = out.view(), l = lse_view();
    for (int64_t i = 0; i < c.parts * c.tokens * c.heads; ++i) {
      const int64_t part = i / c.heads / c.tokens, token = i / c.heads % c.tokens,
                    head = i % c.heads;
      const bool is_silent = std::generate_canonical<double, 32>(random) < silent_share;
      const float value = is_silent ? -kInfinity : normal(random);
      core::store_element(l.data, l.dtype,
                          part * l.strides[0] + token * l.strides[1] + head * l.strides[2], value);
      const int64_t at = part * o.strides[0] + token * o.strides[1] + head * o.strides[2];
      if (is_silent) continue;
      auto* const row = static_cast<std::byte*>(o.data) + at * size_bytes(o.dtype);
      live_rows.push_back(
          input("partial_out", row, static_cast<size_t>(c.dim * size_bytes(o.dtype))));
      for (int64_t column = 0; column < c.dim; ++column) {
        core::store_element(o.data, o.dtype, at + column, normal(random));
      }
    }
  }
  // One head fewer than in memory: the strides of the LSEs differ from the shape's.
  [[nodiscard]] Tensor lse_view() {
    Tensor tensor = lse.view();
    --tensor.shape[2];
    return tensor;
  }

  GuardedTensor out, lse;
  std::vector<GlobalBuffer> live_rows;  // all of `out` that the kernel may read
};

struct Outputs {
  explicit Outputs(const Case& c)
      : out(c.merged, {c.tokens, c.heads, c.dim}, c.gap, c.guard),
        lse(DType::kF32, {c.tokens, c.heads}, c.gap, c.guard) {}
  void attach(MergeStates& call, bool has_lse) {
    call.out = out.view();
    if (has_lse) call.lse = lse.view();
  }
  GuardedTensor out, lse;
};

void expect_the_cpu_s_bits(const Case& c, States& states, uint32_t seed,
                           int32_t largest_grid = INT32_MAX) {
  MergeStates call{.partial_out = states.out.view(), .partial_lse = states.lse_view()};
  Outputs expected(c);
  expected.attach(call, c.has_lse);
  const Status status = pagoda::merge_states(call, {.backend = "reference"});
  ASSERT_TRUE(status) << status.message();
  for (const emulator::Mode mode : emulator::kModes) {
    Outputs outputs(c);
    outputs.attach(call, c.has_lse);
    const MergeStatesParams params = make_params(call);
    std::vector<GlobalBuffer> buffers = states.live_rows;
    buffers.push_back(input("partial_lse", states.lse.bytes().data(), states.lse.bytes().size()));
    buffers.push_back(output("out", outputs.out.bytes().data(), outputs.out.bytes().size()));
    buffers.push_back(output("lse", outputs.lse.bytes().data(), outputs.lse.bytes().size()));
    const emulator::Result result = emulator::launch<MergeStatesKernel>(
        emulator::shape_of<MergeStatesKernel>("merge_states",
                                              {std::min(grid_of(params).x, largest_grid)}),
        params, std::move(buffers), {.mode = mode, .seed = seed});
    for (const emulator::Report& report : result.reports) ADD_FAILURE() << to_string(report);
    EXPECT_EQ(outputs.out.bytes(), expected.out.bytes()) << name(mode);
    EXPECT_EQ(outputs.lse.bytes(), expected.lse.bytes()) << name(mode);
  }
}

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

TEST(MergeStatesKernel, gives_the_cpu_s_bits_for_every_pair_of_types) {
  uint32_t seed = 1;
  for (const DType partial : kTypes) {
    for (const DType merged : kTypes) {
      for (const int64_t gap : {0, 3}) {  // accesses of 4 elements, and of one
        const Case c{.dim = 136, .partial = partial, .merged = merged, .gap = gap};
        SCOPED_TRACE(describe(c));
        States states(c, seed, 0.2);
        expect_the_cpu_s_bits(c, states, seed++);
      }
    }
  }
}

TEST(MergeStatesKernel, gives_the_cpu_s_bits_for_random_shapes_and_strides) {
  std::mt19937 random(11);
  const auto among = [&](auto... values) {
    const int64_t list[] = {values...};
    return list[random() % sizeof...(values)];
  };
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const Case c{.parts = among(1, 2, 7, 8, 9, 31, 32, 33, 70),
                 .tokens = among(1, 2, 5),
                 .heads = among(1, 3),
                 .dim = among(1, 7, 32, 36, 64, 128, 130, 192, 256),
                 .partial = kTypes[random() % 3],
                 .merged = kTypes[random() % 3],
                 .gap = among(0, 0, 1, 4, 8),
                 .guard = among(16, 4, 1),
                 .has_lse = random() % 4 != 0};
    SCOPED_TRACE(describe(c));
    States states(c, seed,
                  static_cast<double>(seed % 5) / 4);  // from none to all of the parts without keys
    expect_the_cpu_s_bits(c, states, seed);
  }
}

TEST(MergeStatesKernel, a_smaller_grid_merges_all_rows) {
  const Case c{.tokens = 7, .heads = 3, .dim = 16};
  States states(c, 3, 0.3);
  expect_the_cpu_s_bits(c, states, 3, 1);
  expect_the_cpu_s_bits(c, states, 4, 2);
}

TEST(MergeStatesKernel, rows_whose_parts_saw_no_key_give_zero_and_minus_infinity) {
  const Case c{.parts = 40, .dim = 24};
  States states(c, 5, 1);
  ASSERT_TRUE(states.live_rows.empty());
  MergeStates call{.partial_out = states.out.view(), .partial_lse = states.lse_view()};
  std::vector<float> out(size_t{4} * 24, NAN), lse(4, NAN);
  call.out = Tensor::contiguous(out.data(), DType::kF32, {2, 2, 24});
  call.lse = Tensor::contiguous(lse.data(), DType::kF32, {2, 2});
  const MergeStatesParams params = make_params(call);
  const emulator::Result result = emulator::launch<MergeStatesKernel>(
      emulator::shape_of<MergeStatesKernel>("merge_states", grid_of(params)), params,
      {input("partial_lse", states.lse.bytes().data(), states.lse.bytes().size()),
       output("out", out.data(), out.size()), output("lse", lse.data(), lse.size())});
  for (const emulator::Report& report : result.reports) ADD_FAILURE() << to_string(report);
  EXPECT_EQ(out, std::vector<float>(out.size(), 0));
  EXPECT_EQ(lse, std::vector<float>(lse.size(), -kInfinity));
}

TEST(MergeStatesKernel, bad_lses_show_as_on_the_cpu_and_in_their_row_alone) {
  for (const float bad : {NAN, kInfinity}) {
    for (const int64_t part : {0, 1, 34}) {
      const Case c{.parts = 35, .dim = 8};
      States states(c, 9, 0);
      const Tensor lse = states.lse_view();
      core::store_element(lse.data, DType::kF32, part * lse.strides[0] + lse.strides[2], bad);
      MergeStates call{.partial_out = states.out.view(), .partial_lse = lse};
      Outputs expected(c), outputs(c);
      expected.attach(call, true);
      ASSERT_TRUE(pagoda::merge_states(call, {.backend = "reference"}));
      outputs.attach(call, true);
      const MergeStatesParams params = make_params(call);
      std::vector<GlobalBuffer> buffers = states.live_rows;
      buffers.push_back(input("partial_lse", states.lse.bytes().data(), states.lse.bytes().size()));
      buffers.push_back(output("out", outputs.out.bytes().data(), outputs.out.bytes().size()));
      buffers.push_back(output("lse", outputs.lse.bytes().data(), outputs.lse.bytes().size()));
      ASSERT_TRUE(emulator::launch<MergeStatesKernel>(
                      emulator::shape_of<MergeStatesKernel>("merge_states", grid_of(params)),
                      params, std::move(buffers))
                      .is_clean());
      const Tensor out = outputs.out.view(), want = expected.out.view();
      for (int64_t i = 0; i < int64_t{4} * 8; ++i) {
        const bool is_bad = i / 8 == 1;  // token 0, head 1
        const float got = core::load_element(out.data, DType::kF32, i);
        EXPECT_EQ(std::isnan(got), is_bad) << i;
        if (is_bad) continue;
        EXPECT_EQ(got, core::load_element(want.data, DType::kF32, i)) << i;
      }
      EXPECT_TRUE(std::isnan(core::load_element(outputs.lse.view().data, DType::kF32, 1)));
    }
  }
}

TEST(MergeStatesKernel, moves_16_bytes_an_access) {
  const Case c{.parts = 2, .tokens = 1, .heads = 1, .dim = 128};
  States states(c, 1, 0);
  Outputs outputs(c);
  MergeStates call{.partial_out = states.out.view(), .partial_lse = states.lse_view()};
  outputs.attach(call, true);
  std::vector<GlobalBuffer> buffers = states.live_rows;
  buffers.push_back(input("partial_lse", states.lse.bytes().data(), states.lse.bytes().size()));
  buffers.push_back(output("out", outputs.out.bytes().data(), outputs.out.bytes().size()));
  buffers.push_back(output("lse", outputs.lse.bytes().data(), outputs.lse.bytes().size()));
  const emulator::Result result = emulator::launch<MergeStatesKernel>(
      emulator::shape_of<MergeStatesKernel>("merge_states", {1}), make_params(call),
      std::move(buffers));
  EXPECT_TRUE(result.is_clean());
  // Two LSEs in three passes; a lane: 16 bytes of each part, 16 of the output; one LSE.
  EXPECT_EQ(result.statistics.accesses, 2U * 3 + 32 * 2 + 32 + 1);
}

TEST(MergeStatesKernel, chunks_are_as_wide_as_pointers_strides_and_dims_allow) {
  const auto chunk = [](int64_t dim, int64_t gap, int64_t guard) {
    const Case c{.dim = dim, .partial = DType::kBF16, .gap = gap, .guard = guard};
    States states(c, 1, 0);
    Outputs outputs(c);
    MergeStates call{.partial_out = states.out.view(), .partial_lse = states.lse_view()};
    outputs.attach(call, true);
    return make_params(call).chunk;
  };
  EXPECT_EQ(chunk(64, 0, 16), 4);
  EXPECT_EQ(chunk(20, 4, 4), 4);
  EXPECT_EQ(chunk(64, 2, 16), 1);
  EXPECT_EQ(chunk(64, 0, 2), 1);
  EXPECT_EQ(chunk(62, 2, 16), 1);
}

}  // namespace
}  // namespace pagoda::kernels
