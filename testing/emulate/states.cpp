// Launches of append_kv and merge_states, checked against the CPU implementation.
#include "testing/emulate/states.hpp"

#include <algorithm>
#include <limits>

#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/append_kv/append_kv.hpp"
#include "kernels/merge_states/merge_states.hpp"
#include "pagoda/attention.hpp"
#include "testing/material/guarded_tensor.hpp"

namespace pagoda::emulate {

using emulator::input;
using emulator::launch;
using emulator::Options;
using emulator::output;
using emulator::shape_of;
using material::GuardedTensor;

namespace {

emulator::GlobalBuffer input_of(const char* name, GuardedTensor& tensor) {
  return input(name, tensor.bytes().data(), tensor.bytes().size());
}
emulator::GlobalBuffer output_of(const char* name, GuardedTensor& tensor) {
  return output(name, tensor.bytes().data(), tensor.bytes().size());
}

void check_bytes(Outcome& outcome, const char* what, GuardedTensor& got, GuardedTensor& expected) {
  for (size_t i = 0; i < got.bytes().size(); ++i) {
    outcome.check(what, i, static_cast<int>(got.bytes()[i]), static_cast<int>(expected.bytes()[i]));
  }
}

// Fills all rows (first indices of a rank-3 tensor) except those that `skips` selects: they stay
// poison.
template <class Skips>
void fill_rows(const Tensor& t, std::mt19937& random, Skips skips) {
  std::normal_distribution<float> normal(0, 3);
  for (int64_t i = 0; i < t.shape[0]; ++i) {
    for (int64_t j = 0; j < t.shape[1] * t.shape[2] && !skips(i); ++j) {
      const int64_t at =
          i * t.strides[0] + j / t.shape[2] * t.strides[1] + j % t.shape[2] * t.strides[2];
      core::store_element(t.data, t.dtype, at, normal(random));
    }
  }
}

}  // namespace

// bf16 to fp8 with a scale per head, HND pages of 5 rows; about a fourth of the tokens is skipped.
Outcome run_append_kv(const Options& options) {
  constexpr int64_t kTokens = 21, kHeads = 2, kPages = 5, kPageSize = 5, kDimK = 72, kDimV = 40;
  std::mt19937 random(static_cast<uint32_t>(options.seed));
  std::vector<int64_t> slots(kPages * kPageSize);
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int64_t>(i);
  std::shuffle(slots.begin(), slots.end(), random);
  slots.resize(kTokens);
  for (int64_t& slot : slots) slot = random() % 4 == 0 ? -1 : slot;
  const auto is_skipped = [&](int64_t token) { return slots[static_cast<size_t>(token)] < 0; };

  GuardedTensor k_new(DType::kBF16, {kTokens, kHeads, kDimK}, 8, 8);
  GuardedTensor v_new(DType::kBF16, {kTokens, kHeads, kDimV}, 2, 8);  // narrower accesses
  fill_rows(k_new.view(), random, is_skipped);
  fill_rows(v_new.view(), random, is_skipped);
  const auto make_cache = [](int64_t dim) {
    return GuardedTensor(DType::kF8E4M3, {kPages, kHeads, kPageSize, dim}, 16, 16);
  };
  const std::vector<float> scales{0.03F, 0.7F};
  GuardedTensor k = make_cache(kDimK), v = make_cache(kDimV);
  GuardedTensor k_expected = make_cache(kDimK), v_expected = make_cache(kDimV);
  AppendKV call{
      .k_new = k_new.view(),
      .v_new = v_new.view(),
      .slot_mapping = slots,
      .k_cache = k_expected.view(),
      .v_cache = v_expected.view(),
      .layout = PageLayout::kHND,
      .kv_scales = {.v = 0.02F,
                    .k_per_head = ConstTensor::contiguous(scales.data(), DType::kF32, {kHeads})}};
  Outcome outcome;
  outcome.check("status", 0,
                static_cast<int>(pagoda::append_kv(call, {.backend = "reference"}).code()), 0);
  call.k_cache = k.view();
  call.v_cache = v.view();
  const kernels::AppendKVParams params = kernels::make_params(call);
  outcome.result = launch<kernels::AppendKVKernel>(
      shape_of<kernels::AppendKVKernel>("states/append_kv", kernels::grid_of(params)), params,
      {input_of("k_new", k_new), input_of("v_new", v_new),
       input("slots", slots.data(), slots.size()), input("scales", scales.data(), scales.size()),
       output_of("k_cache", k), output_of("v_cache", v)},
      options);
  check_bytes(outcome, "k_cache", k, k_expected);
  check_bytes(outcome, "v_cache", v, v_expected);
  return outcome;
}

// More fp32 partial results than a warp has lanes, merged to bf16; a third of them has no key. The
// LSE replaces that of part 1.
Outcome run_merge_states(const Options& options) {
  constexpr int64_t kParts = 35, kTokens = 3, kHeads = 2, kDim = 72;
  std::mt19937 random(static_cast<uint32_t>(options.seed));
  GuardedTensor parts(DType::kF32, {kParts, kTokens * kHeads, kDim}, 0, 4);
  GuardedTensor lses(DType::kF32, {kParts, kTokens, kHeads}, 0, 4);
  const auto has_no_key = [&](int64_t part) {
    return (static_cast<uint64_t>(part) + options.seed) % 3 == 0;
  };
  fill_rows(parts.view(), random, has_no_key);  // the O of a part without keys is NaN
  fill_rows(lses.view(), random, [](int64_t) { return false; });
  const Tensor lse = lses.view();
  for (int64_t i = 0; i < kParts * kTokens * kHeads; ++i) {
    if (!has_no_key(i / kTokens / kHeads)) continue;
    core::store_element(lse.data, DType::kF32, i, -std::numeric_limits<float>::infinity());
  }
  const auto make_out = [] { return GuardedTensor(DType::kBF16, {kTokens, kHeads, kDim}, 4, 4); };
  GuardedTensor out = make_out(), out_expected = make_out();
  std::vector<float> lse_expected(kTokens * kHeads);
  MergeStates call{.partial_out = ConstTensor::contiguous(parts.view().data, DType::kF32,
                                                          {kParts, kTokens, kHeads, kDim}),
                   .partial_lse = lse,
                   .out = out_expected.view(),
                   .lse = Tensor::contiguous(lse_expected.data(), DType::kF32, {kTokens, kHeads})};
  Outcome outcome;
  outcome.check("status", 0,
                static_cast<int>(pagoda::merge_states(call, {.backend = "reference"}).code()), 0);
  call.out = out.view();
  float* const merged = static_cast<float*>(lse.data) + lse.strides[0];
  call.lse.data = merged;
  const kernels::MergeStatesParams params = kernels::make_params(call);
  outcome.result = launch<kernels::MergeStatesKernel>(
      shape_of<kernels::MergeStatesKernel>("states/merge_states", kernels::grid_of(params)), params,
      {input_of("partial_out", parts), output_of("out", out),
       emulator::inout("partial_lse", lses.bytes().data(), lses.bytes().size())},
      options);
  check_bytes(outcome, "out", out, out_expected);
  for (size_t i = 0; i < lse_expected.size(); ++i) {
    outcome.check("lse", i, merged[i], lse_expected[i]);
  }
  return outcome;
}

}  // namespace pagoda::emulate
