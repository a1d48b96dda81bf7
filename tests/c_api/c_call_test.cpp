// The C ABI gives what the C++ API gives, bit for bit; executors, allocators and functors of the
// caller are used; exceptions end in a status.
#include "c_call.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <thread>

#include "api/valid_call.hpp"

namespace pagoda::test {
namespace {

constexpr Base kBases[] = {Base::kDense, Base::kRagged, Base::kBlockTable, Base::kCsr, Base::kFp8};

// pagoda_tensor is DLPack's DLTensor (dlpack.h, DLTensor, DLDevice, DLDataType).
static_assert(offsetof(pagoda_tensor, data) == 0 && offsetof(pagoda_tensor, device) == 8 &&
              offsetof(pagoda_device, device_id) == 4 && offsetof(pagoda_tensor, ndim) == 16 &&
              offsetof(pagoda_tensor, dtype) == 20 && offsetof(pagoda_dtype, bits) == 1 &&
              offsetof(pagoda_dtype, lanes) == 2 && offsetof(pagoda_tensor, shape) == 24 &&
              offsetof(pagoda_tensor, strides) == 32 &&
              offsetof(pagoda_tensor, byte_offset) == 40 && sizeof(pagoda_tensor) == 48);

// The sizes of version 0.1. A size may grow in a minor version; a field must not move.
static_assert(sizeof(pagoda_status) == 1024 && sizeof(pagoda_kv_cache) == 80 &&
              sizeof(pagoda_kv_scales) == 32 && sizeof(pagoda_mask_node) == 88 &&
              sizeof(pagoda_mask) == 24 && sizeof(pagoda_score_mod) == 40 &&
              sizeof(pagoda_attention) == 152 && sizeof(pagoda_executor) == 32 &&
              sizeof(pagoda_options) == 56 && sizeof(pagoda_plan_info) == 72 &&
              sizeof(pagoda_append_kv_args) == 64 && sizeof(pagoda_merge_states_args) == 56 &&
              sizeof(pagoda_backend_info) == 32 && sizeof(pagoda_kernel_info) == 40 &&
              sizeof(pagoda_host_allocator) == 32);

size_t bytes_of(const Tensor& t) {
  auto bytes = static_cast<size_t>(size_bytes(t.dtype));
  for (int32_t d = 0; d < t.rank; ++d)
    bytes *= static_cast<size_t>(t.shape[static_cast<size_t>(d)]);
  return bytes;
}

void expect_same_bits(const Attention& got, const Attention& want) {
  EXPECT_EQ(std::memcmp(got.out.data, want.out.data, bytes_of(want.out)), 0);
  EXPECT_EQ(std::memcmp(got.lse.data, want.lse.data, bytes_of(want.lse)), 0);
  EXPECT_EQ(std::memcmp(got.row_max.data, want.row_max.data, bytes_of(want.row_max)), 0);
}

// Runs `call` through C on back end cpu, and a call with the same changes through C++.
void expect_same_result(ValidCall& call, ValidCall& same,
                        const pagoda_executor* executor = nullptr) {
  same.options.backend = "cpu";
  ASSERT_TRUE(run(same.a, same.options));
  const CCall c(call.a);
  const pagoda_options options{
      .struct_size = sizeof options, .backend = "cpu", .executor = executor};
  pagoda_status status{.struct_size = sizeof status};
  ASSERT_EQ(pagoda_run(&c.attention, &options, &status), PAGODA_OK) << status.message;
  EXPECT_STREQ(status.message, "");
  expect_same_bits(call.a, same.a);
}

TEST(CCalls, give_the_bits_of_the_cpp_api) {
  for (const Base base : kBases) {
    ValidCall call(base), same(base);
    expect_same_result(call, same);
  }
}

TEST(CCalls, have_the_defaults_of_the_cpp_api) {
  // Nothing but the required fields; options are null.
  ValidCall call(Base::kBlockTable), same(Base::kBlockTable);
  same.a.mask = Mask::none();
  same.options = {};
  ASSERT_TRUE(run(same.a, same.options));
  CCall c(call.a);
  c.attention.kv_scales = nullptr;
  c.attention.mask = nullptr;
  c.attention.score_mod = nullptr;
  ASSERT_EQ(pagoda_run(&c.attention, nullptr, nullptr), PAGODA_OK);
  expect_same_bits(call.a, same.a);
}

TEST(CCalls, pass_masks_and_scores_on) {
  ValidCall call(Base::kDense), same(Base::kDense);
  for (ValidCall* c : {&call, &same}) {
    c->ints = {9, 5};
    c->floats = {0.1F, 0.2F, 0.3F, 0.4F};
    c->a.mask = (Mask::window(6, 1) | Mask::chunked(4)) & Mask::padding(c->ints) &
                Mask::functor([](void*, int32_t, int32_t head, int64_t, int64_t key) {
                  return (key + head) % 3 != 0;
                });
    c->a.score_mod = {.softcap = 20.0F,
                      .alibi_slopes = c->floats,
                      .functor =
                          [](void* context, float score, int32_t, int32_t, int64_t, int64_t key) {
                            return score * *static_cast<float*>(context) + static_cast<float>(key);
                          },
                      .context = c->floats.data()};
    c->a.sinks = c->floats;
    c->a.softmax_scale = 0.3F;
  }
  expect_same_result(call, same);
}

TEST(CCalls, pass_used_lengths_and_forms_of_the_lse_on) {
  ValidCall call(Base::kRagged), same(Base::kRagged);
  for (ValidCall* c : {&call, &same}) {
    c->ints = {2, 1, 7, 6};
    c->a.seqlens_q = {c->ints.data(), 2};
    c->ragged().seqlens_kv = {c->ints.data() + 2, 2};
    c->a.lse =
        Tensor::contiguous(c->a.lse.data, DType::kF32, {ValidCall::kQHeads, ValidCall::kTotalQ})
            .transposed(0, 1);
    c->a.lse_base = LogBase::k2;
  }
  expect_same_result(call, same);
}

TEST(CCalls, pass_scales_on) {
  ValidCall call(Base::kFp8), same(Base::kFp8);
  for (ValidCall* c : {&call, &same}) {
    c->floats = {0.5F, 2.0F, 3.0F, 0.75F};
    c->a.kv_scales = {.k = 0.25F, .v = 3.0F};
    c->a.kv_scales.v_per_head = c->floats_of({2, 2}).transposed(0, 1);
    c->ints = {1, 3};
    c->a.leftpad_kv = c->ints;
    c->a.out.dtype = DType::kF8E4M3;
    c->a.out_scale = 0.125F;
    c->paged().page_size = ValidCall::kPageSize;
  }
  expect_same_result(call, same);
}

TEST(CCalls, pass_scales_of_queries_and_padding_rows_on) {
  ValidCall call(Base::kFp8), same(Base::kFp8);
  for (ValidCall* c : {&call, &same}) {
    c->a.q.dtype = DType::kF8E4M3;
    c->floats = {0.5F, 2.0F, 3.0F, 0.75F};
    c->a.q_scale_per_head = c->floats_of({2, 2});
    c->cu_seqlens_q = {0, 3, 4};
    c->a.zero_padding_rows = true;
  }
  expect_same_result(call, same);
}

TEST(CCalls, accept_compact_views_without_strides_and_offsets_into_memory) {
  ValidCall call(Base::kRagged), same(Base::kRagged);
  ASSERT_TRUE(run(same.a, {}));
  CCall c(call.a);
  for (const pagoda_tensor* tensor : {c.attention.q, c.attention.out, c.kv.k, c.kv.v}) {
    edit(tensor).strides = nullptr;
    edit(tensor).data = static_cast<std::byte*>(tensor->data) - 1024;  // not an address of its own
    edit(tensor).byte_offset = 1024;
    edit(tensor).device = {PAGODA_CUDA_HOST, 3};
  }
  ASSERT_EQ(pagoda_run(&c.attention, nullptr, nullptr), PAGODA_OK);
  expect_same_bits(call.a, same.a);
}

TEST(CPlans, run_what_they_were_made_for) {
  ValidCall call(Base::kCsr), same(Base::kCsr);
  const CCall c(call.a);
  ASSERT_TRUE(run(same.a, {}));
  pagoda_plan* plan = nullptr;
  pagoda_status status{.struct_size = sizeof status};
  ASSERT_EQ(pagoda_plan_create(&c.attention, nullptr, &plan, &status), PAGODA_OK) << status.message;
  pagoda_plan_info info{.struct_size = sizeof info};
  ASSERT_EQ(pagoda_plan_get_info(plan, &info, &status), PAGODA_OK);
  const Result<Plan> cpp_plan = pagoda::plan(same.a);
  EXPECT_EQ(info.kernel, cpp_plan->kernel());
  EXPECT_EQ(info.workspace_bytes, cpp_plan->workspace_bytes());
  EXPECT_EQ(info.worker_scratch_bytes, cpp_plan->worker_scratch_bytes());
  EXPECT_EQ(info.num_work_items, cpp_plan->num_work_items());
  EXPECT_EQ(info.flops, cpp_plan->flops());
  EXPECT_EQ(info.kv_bytes, cpp_plan->kv_bytes());

  std::vector<std::byte> memory(static_cast<size_t>(info.workspace_bytes) + 64);
  void* workspace = memory.data();
  size_t space = memory.size();
  std::align(64, static_cast<size_t>(info.workspace_bytes), workspace, space);
  ASSERT_EQ(pagoda_plan_run(plan, &c.attention, workspace, info.workspace_bytes, nullptr, &status),
            PAGODA_OK)
      << status.message;
  expect_same_bits(call.a, same.a);

  ValidCall other(Base::kDense);
  const CCall differs(other.a);
  EXPECT_EQ(
      pagoda_plan_run(plan, &differs.attention, workspace, info.workspace_bytes, nullptr, &status),
      PAGODA_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(status.message, "the plan was made for"), nullptr) << status.message;
  EXPECT_TRUE(other.outputs_are_untouched());
  pagoda_plan_destroy(plan);
}

TEST(CStates, append_and_merge_give_the_bits_of_the_cpp_api) {
  std::vector<float> rows(2 * 3 * 8), cache(4 * 2 * 3 * 8, 7.0F), same_cache = cache;
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  const std::vector<int64_t> slots{5, -1};
  CViews views;
  const pagoda_tensor* new_rows = views.add(rows.data(), PAGODA_FLOAT32, {2, 3, 8}, {24, 8, 1});
  pagoda_append_kv_args append{.struct_size = sizeof append, .k_new = new_rows, .v_new = new_rows};
  append.slot_mapping = views.array(ArrayView<int64_t>(slots), PAGODA_INT64);
  // K and V are the halves of one allocation.
  append.k_cache = views.add(cache.data(), PAGODA_FLOAT32, {2, 4, 3, 8}, {96, 24, 8, 1});
  std::vector<float> v_cache = cache;
  append.v_cache = views.add(v_cache.data(), PAGODA_FLOAT32, {2, 4, 3, 8}, {96, 24, 8, 1});
  pagoda_status status{.struct_size = sizeof status};
  ASSERT_EQ(pagoda_append_kv(&append, nullptr, &status), PAGODA_OK) << status.message;
  std::copy_n(rows.begin(), 24, same_cache.begin() + 5 * 24);
  EXPECT_EQ(cache, same_cache);
  EXPECT_EQ(v_cache, same_cache);
  append.layout = 9;
  EXPECT_EQ(pagoda_append_kv(&append, nullptr, &status), PAGODA_INVALID_ARGUMENT);
  EXPECT_STREQ(status.field, "layout");

  const std::vector<float> lse{0.0F, 1.0F, 2.0F, 0.5F, 0.5F, -1.0F};
  std::vector<float> out(24), lse_out(3);
  pagoda_merge_states_args merge{.struct_size = sizeof merge};
  merge.partial_out = views.add(rows.data(), PAGODA_FLOAT32, {2, 1, 3, 8}, {24, 24, 8, 1});
  merge.partial_lse = views.add(lse.data(), PAGODA_FLOAT32, {2, 1, 3}, {3, 3, 1});
  merge.out = views.add(out.data(), PAGODA_FLOAT32, {1, 3, 8}, {24, 8, 1});
  merge.lse = views.add(lse_out.data(), PAGODA_FLOAT32, {1, 3}, {3, 1});
  ASSERT_EQ(pagoda_merge_states(&merge, nullptr, &status), PAGODA_OK) << status.message;
  std::vector<float> same_out(24), same_lse(3);
  ASSERT_TRUE(
      merge_states({.partial_out = ConstTensor::contiguous(rows.data(), DType::kF32, {2, 1, 3, 8}),
                    .partial_lse = ConstTensor::contiguous(lse.data(), DType::kF32, {2, 1, 3}),
                    .out = Tensor::contiguous(same_out.data(), DType::kF32, {1, 3, 8}),
                    .lse = Tensor::contiguous(same_lse.data(), DType::kF32, {1, 3})}));
  EXPECT_EQ(out, same_out);
  EXPECT_EQ(lse_out, same_lse);

  // A row that the mask skips keeps what it holds.
  const std::vector<uint8_t> row_mask{0};
  for (const pagoda_dtype dtype : {PAGODA_UINT8, PAGODA_BOOL}) {
    merge.row_mask = views.array(ArrayView<uint8_t>(row_mask), dtype);
    out.assign(24, 9.0F);
    ASSERT_EQ(pagoda_merge_states(&merge, nullptr, &status), PAGODA_OK) << status.message;
    EXPECT_EQ(out, std::vector<float>(24, 9.0F));
  }
  merge.lse_base = 7;
  EXPECT_EQ(pagoda_merge_states(&merge, nullptr, &status), PAGODA_INVALID_ARGUMENT);
  EXPECT_STREQ(status.field, "lse_base");
}

TEST(CLists, are_those_of_the_cpp_api) {
  const std::vector<BackendInfo> infos = backends();
  pagoda_backend_list* list = nullptr;
  ASSERT_EQ(pagoda_backends(&list, nullptr), PAGODA_OK);
  ASSERT_EQ(pagoda_backend_list_size(list), static_cast<int64_t>(infos.size()));
  for (size_t i = 0; i < infos.size(); ++i) {
    pagoda_backend_info info{.struct_size = sizeof info};
    ASSERT_EQ(pagoda_backend_list_get(list, static_cast<int64_t>(i), &info, nullptr), PAGODA_OK);
    EXPECT_EQ(info.name, infos[i].name);
    EXPECT_EQ(info.description, infos[i].description);
    EXPECT_EQ(info.is_available != 0, infos[i].is_available);
    EXPECT_EQ(info.memory == PAGODA_CPU, infos[i].memory == DeviceType::kCpu);
  }
  pagoda_backend_list_destroy(list);

  ValidCall call(Base::kFp8);
  const CCall c(call.a);
  const auto kernels = *explain(call.a);
  pagoda_kernel_list* explained = nullptr;
  ASSERT_EQ(pagoda_explain(&c.attention, nullptr, &explained, nullptr), PAGODA_OK);
  ASSERT_EQ(pagoda_kernel_list_size(explained), static_cast<int64_t>(kernels.size()));
  for (size_t i = 0; i < kernels.size(); ++i) {
    pagoda_kernel_info info{.struct_size = sizeof info};
    ASSERT_EQ(pagoda_kernel_list_get(explained, static_cast<int64_t>(i), &info, nullptr),
              PAGODA_OK);
    EXPECT_EQ(info.name, kernels[i].name);
    EXPECT_EQ(info.backend, kernels[i].backend);
    EXPECT_EQ(info.reason, kernels[i].reason);
    EXPECT_EQ(info.is_selected != 0, kernels[i].is_selected);
    EXPECT_EQ(info.can_run != 0, kernels[i].can_run);
  }
  pagoda_kernel_list_destroy(explained);
}

TEST(CExecutors, run_the_workers) {
  struct Counter {
    int regions = 0, bodies = 0;
  } counter;
  const pagoda_executor executor{
      .struct_size = sizeof executor,
      .context = &counter,
      .parallel =
          [](void* context, int32_t n, void (*body)(void*, int32_t), void* body_context) {
            auto* c = static_cast<Counter*>(context);
            ++c->regions;
            for (int32_t i = 0; i < n; ++i, ++c->bodies) body(body_context, i);
          },
      .workers = 3,
      .reserved = 0};
  ValidCall call(Base::kRagged), same(Base::kRagged);
  expect_same_result(call, same, &executor);
  EXPECT_EQ(counter.regions, 1);
  EXPECT_GE(counter.bodies, 1);

  // A plan copies the struct.
  pagoda_plan* plan = nullptr;
  {
    const pagoda_executor copy = executor;
    const pagoda_options options{.struct_size = sizeof options, .executor = &copy};
    const CCall c(call.a);
    ASSERT_EQ(pagoda_plan_create(&c.attention, &options, &plan, nullptr), PAGODA_OK);
  }
  pagoda_plan_info info{.struct_size = sizeof info};
  ASSERT_EQ(pagoda_plan_get_info(plan, &info, nullptr), PAGODA_OK);
  ASSERT_EQ(info.workspace_bytes, 0);
  const CCall c(call.a);
  ASSERT_EQ(pagoda_plan_run(plan, &c.attention, nullptr, 0, nullptr, nullptr), PAGODA_OK);
  EXPECT_EQ(counter.regions, 2);
  pagoda_plan_destroy(plan);
}

TEST(CFunctors, that_throw_end_in_a_status_and_not_in_the_executor) {
  ValidCall call(Base::kDense);
  call.a.mask = Mask::functor([](void*, int32_t, int32_t, int64_t, int64_t) -> bool {
    throw std::runtime_error("from a functor");
  });
  const pagoda_executor executor{
      .struct_size = sizeof executor,
      .context = nullptr,
      .parallel =
          [](void*, int32_t n, void (*body)(void*, int32_t), void* context) noexcept {
            while (n-- > 0) body(context, n);
          },
      .workers = 2,
      .reserved = 0};
  const CCall c(call.a);
  const pagoda_options options{.struct_size = sizeof options, .executor = &executor};
  pagoda_status status{.struct_size = sizeof status};
  EXPECT_EQ(pagoda_run(&c.attention, &options, &status), PAGODA_INTERNAL);
  EXPECT_NE(std::strstr(status.message, "from a functor"), nullptr) << status.message;
}

struct Blocks {
  std::atomic<int> live = 0, total = 0;
  std::atomic<bool> fails = false;
};

pagoda_host_allocator counting(Blocks& blocks) {
  return {.struct_size = sizeof(pagoda_host_allocator),
          .context = &blocks,
          .allocate = [](void* context, size_t bytes, size_t alignment) -> void* {
            auto* b = static_cast<Blocks*>(context);
            if (b->fails) return nullptr;
            ++b->live, ++b->total;
            return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
          },
          .deallocate =
              [](void* context, void* memory, size_t, size_t) {
                --static_cast<Blocks*>(context)->live;
                std::free(memory);
              }};
}

TEST(CAllocators, provide_the_buffers_of_threads_that_begin_afterwards) {
  static Blocks blocks;
  const pagoda_host_allocator allocator = counting(blocks);
  const pagoda_executor inline_executor{
      .struct_size = sizeof inline_executor,
      .context = nullptr,
      .parallel =
          [](void*, int32_t n, void (*body)(void*, int32_t), void* context) {
            for (int32_t i = 0; i < n; ++i) body(context, i);
          },
      .workers = 8,
      .reserved = 0};
  ASSERT_EQ(pagoda_set_host_allocator(&allocator, nullptr), PAGODA_OK);
  std::thread([&] {  // a thread without buffers yet
    // One row over many keys: several splits, so a workspace and scratch are needed.
    std::vector<float> q(8), kv(8 * 4096), out(8);
    const Attention a{
        .q = ConstTensor::contiguous(q.data(), DType::kF32, {1, 1, 1, 8}),
        .kv = DenseKV{ConstTensor::contiguous(kv.data(), DType::kF32, {1, 4096, 1, 8}),
                      ConstTensor::contiguous(kv.data(), DType::kF32, {1, 4096, 1, 8})},
        .out = Tensor::contiguous(out.data(), DType::kF32, {1, 1, 1, 8})};
    const CCall c(a);
    const pagoda_options options{.struct_size = sizeof options, .executor = &inline_executor};
    pagoda_status status{.struct_size = sizeof status};
    blocks.fails = true;
    EXPECT_EQ(pagoda_run(&c.attention, &options, &status), PAGODA_OUT_OF_MEMORY) << status.message;
    EXPECT_STREQ(status.message, "an allocation failed");
    blocks.fails = false;
    EXPECT_EQ(pagoda_run(&c.attention, &options, &status), PAGODA_OK) << status.message;
    EXPECT_EQ(blocks.live, 2);  // the workspace and the scratch
    EXPECT_EQ(pagoda_release_workspaces(&status), PAGODA_OK) << status.message;
    EXPECT_EQ(blocks.live, 1);
    EXPECT_EQ(pagoda_run(&c.attention, &options, &status), PAGODA_OK) << status.message;
    EXPECT_EQ(blocks.live, 2);
    // The buffers go back to where they came from, whatever the allocator is by then.
    EXPECT_EQ(pagoda_set_host_allocator(nullptr, &status), PAGODA_OK);
    EXPECT_EQ(pagoda_run(&c.attention, &options, &status), PAGODA_OK) << status.message;
  })
      .join();
  EXPECT_EQ(blocks.total, 3);
  EXPECT_EQ(blocks.live, 0);
}

TEST(CVersion, is_that_of_the_header) {
  EXPECT_EQ(pagoda_version(), uint32_t{PAGODA_VERSION});
  EXPECT_EQ(PAGODA_VERSION / 1000, PAGODA_VERSION_MAJOR * 1000 + PAGODA_VERSION_MINOR);
}

}  // namespace
}  // namespace pagoda::test
