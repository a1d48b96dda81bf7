// Unusual but valid calls: empty, shared, transposed, sparse.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "pagoda/backend.hpp"
#include "valid_call.hpp"

namespace pagoda::test {
namespace {

void expect_runs(ValidCall& call) {
  const Status status = run(call.a, call.options);
  EXPECT_TRUE(status) << status.message();
}

TEST(UnusualCalls, an_empty_batch_does_nothing) {
  ValidCall padded(Base::kDense);
  padded.a.q.shape[0] = padded.a.out.shape[0] = 0;
  padded.dense().k.shape[0] = padded.dense().v.shape[0] = 0;
  padded.dense().seqlens_kv = {};
  padded.a.lse = padded.a.row_max = {};
  padded.a.q.data = padded.a.out.data = nullptr;  // no elements, no memory
  expect_runs(padded);

  ValidCall ragged(Base::kRagged);
  ragged.cu_seqlens_q = ragged.cu_seqlens_kv = {0};
  ragged.a.cu_seqlens_q = ragged.cu_seqlens_q;
  ragged.ragged().cu_seqlens_kv = ragged.cu_seqlens_kv;
  ragged.a.q.shape[0] = ragged.a.out.shape[0] = 0;
  ragged.a.lse = ragged.a.row_max = {};
  expect_runs(ragged);
  EXPECT_TRUE(padded.outputs_are_untouched());
  EXPECT_TRUE(ragged.outputs_are_untouched());
}

TEST(UnusualCalls, strides_of_empty_tensors_may_be_anything) {
  ValidCall call(Base::kDense);  // no keys
  call.seqlens_kv = {0, 0};
  for (ConstTensor* t : {&call.dense().k, &call.dense().v}) {
    t->shape[1] = 0;
    t->strides = {};
    t->data = nullptr;
  }
  expect_runs(call);
  for (int64_t i = 0; i < 2 * 3 * 4 * 8; ++i) {
    ASSERT_EQ(static_cast<const float*>(call.a.out.data)[i], 0.0F);
  }

  ValidCall nothing(Base::kDense);  // no sequence
  for (Tensor* t : {&nothing.a.out, &nothing.a.lse, &nothing.a.row_max}) t->shape[0] = 0;
  for (ConstTensor* t : {&nothing.a.q, &nothing.dense().k, &nothing.dense().v}) t->shape[0] = 0;
  nothing.a.q.strides = nothing.a.out.strides = {INT64_MAX, -1, 0, 2};
  nothing.dense().k.strides = nothing.dense().v.strides = {};
  nothing.dense().seqlens_kv = {};
  expect_runs(nothing);
  EXPECT_TRUE(nothing.outputs_are_untouched());
}

TEST(UnusualCalls, a_block_table_without_pages_gives_zeros) {
  ValidCall call(Base::kBlockTable);
  call.seqlens_kv = {0, 0};
  call.paged().k.shape[0] = call.paged().v.shape[0] = 0;
  call.paged().k.data = call.paged().v.data = nullptr;
  call.block_table() = BlockTable{{nullptr, 2}, call.seqlens_kv};
  expect_runs(call);
  const auto* out = static_cast<const float*>(call.a.out.data);
  const auto* lse = static_cast<const float*>(call.a.lse.data);
  for (int64_t i = 0; i < 5 * 4 * 8; ++i) ASSERT_EQ(out[i], 0.0F);
  for (int64_t i = 0; i < 5 * 4; ++i) ASSERT_EQ(lse[i], -INFINITY);
}

TEST(UnusualCalls, inputs_may_overlap_broadcast_and_run_backwards) {
  ValidCall call(Base::kDense);
  call.a.q.strides[0] = 0;          // one sequence's rows for all
  call.dense().v = call.dense().k;  // K is V, the first 8 columns of it
  call.dense().v.shape[3] = ValidCall::kDimVo;
  call.dense().k.strides[2] = 0;                  // one key head for all
  const int64_t row = call.dense().v.strides[1];  // values backwards
  call.dense().v.data = static_cast<const float*>(call.dense().v.data) + 9 * row;
  call.dense().v.strides[1] = -row;
  call.dense().v.strides[0] = 10 * row;
  expect_runs(call);
  EXPECT_FALSE(call.outputs_are_untouched());
}

TEST(UnusualCalls, strides_beyond_32_bits_are_accepted) {
  ValidCall call(Base::kBlockTable);
  call.paged().k.strides[0] = call.paged().v.strides[0] = int64_t{1} << 33;
  EXPECT_TRUE(plan(call.a, call.options));
}

TEST(UnusualCalls, outputs_may_be_transposed_or_interleaved) {
  ValidCall call(Base::kRagged);
  call.a.out.strides[0] = ValidCall::kDimVo;
  call.a.out.strides[1] = ValidCall::kDimVo * ValidCall::kTotalQ;
  expect_runs(call);

  // O and the LSE as columns of one buffer, [total_q, 4, 8 + 1 + 7]: gaps, overlapping address
  // ranges.
  ValidCall columns(Base::kRagged);
  std::vector<float> memory(5 * 4 * 16, NAN);
  columns.a.out = Tensor{.data = memory.data(), .rank = 3};
  columns.a.out.shape = {5, 4, 8};
  columns.a.out.strides = {64, 16, 1};
  columns.a.row_max = {};
  columns.a.lse = Tensor{.data = memory.data() + 8, .rank = 2};
  columns.a.lse.shape = {5, 4};
  columns.a.lse.strides = {64, 1};
  expect_runs(columns);

  // Q, K, V and O as columns of one buffer, [batch, rows, heads, 16 + 16 + 8 + 8].
  ValidCall fused(Base::kDense);
  std::vector<float> packed(2 * 3 * 4 * 48, 0.5F);
  const auto slice = [&](auto& tensor, int64_t column, int64_t heads, int64_t dim) {
    tensor.data = packed.data() + column;
    tensor.shape = {2, 3, heads, dim};
    tensor.strides = {3 * 4 * 48, 4 * 48, 48, 1};
  };
  slice(fused.a.q, 0, 4, 16);
  slice(fused.dense().k, 16, 2, 16);
  slice(fused.dense().v, 32, 2, 8);
  slice(fused.a.out, 40, 4, 8);
  fused.dense().seqlens_kv = {};
  expect_runs(fused);
  EXPECT_EQ(packed[0], 0.5F);
  EXPECT_NEAR(packed[40], 0.5F, 1e-6F);
}

TEST(UnusualCalls, plan_reads_nothing_through_tensors) {
  for (const Base base : {Base::kDense, Base::kRagged, Base::kBlockTable, Base::kCsr, Base::kFp8}) {
    ValidCall call(base);
    const auto nowhere = [](uintptr_t page) { return reinterpret_cast<void*>(page << 12); };
    call.a.q.data = nowhere(16);  // below vm.mmap_min_addr's usual 64 KiB or unmapped: a fault
    call.a.out.data = nowhere(20);
    call.a.lse.data = nowhere(24);
    call.a.row_max.data = nowhere(28);
    std::visit([&](auto& kv) { kv.k.data = nowhere(32), kv.v.data = nowhere(36); }, call.a.kv);
    const Result<Plan> planned = plan(call.a, call.options);
    EXPECT_TRUE(planned) << planned.status().message();
    EXPECT_TRUE(explain(call.a, call.options));
  }
}

TEST(UnusualCalls, page_ids_are_read_only_in_checked_mode) {
  ValidCall call(Base::kBlockTable);
  call.pages[1] = 1 << 30;
  EXPECT_FALSE(plan(call.a, call.options));
  call.options.checks_indices = false;
  EXPECT_TRUE(plan(call.a, call.options));
}

TEST(UnusualCalls, table_entries_past_the_length_may_hold_anything) {
  ValidCall call(Base::kBlockTable);
  call.pages[5] = -77;  // sequence 1 has 7 keys: 2 of its 3 entries are used
  expect_runs(call);
}

TEST(UnusualCalls, the_largest_windows_and_chunks_are_accepted) {
  ValidCall wide(Base::kDense), open(Base::kDense);
  wide.a.mask = Mask::window(INT32_MAX, INT32_MAX) & Mask::chunked(INT32_MAX);
  open.a.mask = Mask::window(-1, -1);
  expect_runs(wide);
  expect_runs(open);
  EXPECT_EQ(std::memcmp(wide.a.out.data, open.a.out.data, 2 * 3 * 4 * 8 * 4), 0);
}

TEST(Backends, are_those_of_the_registry) {
  const std::vector<BackendInfo> infos = backends();
  ASSERT_FALSE(infos.empty());
  for (const BackendInfo& info : infos) {
    EXPECT_EQ(info.memory == DeviceType::kCuda, info.name == "cuda");
    if (info.is_available) {
      EXPECT_FALSE(kernels(info.name).empty()) << info.name;
    }
    EXPECT_FALSE(info.description.empty()) << info.name;
  }
  EXPECT_TRUE(kernels("abacus").empty());
}

}  // namespace
}  // namespace pagoda::test
