// What only a call from C can get wrong: sizes of structs, null pointers, kinds of memory, types,
// handles. Each is refused with its field named, in the words of pagoda.h, and nothing written. The
// table of the C++ API (tests/api) is run through the C ABI, too.
#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "api/bad_call.hpp"
#include "c_call.hpp"

namespace pagoda::test {
namespace {

struct Call {
  explicit Call(Base base) : valid(base), c(valid.a) { options.backend = "reference"; }

  ValidCall valid;
  CCall c;
  pagoda_executor executor{.struct_size = sizeof executor,
                           .context = nullptr,
                           .parallel =
                               [](void*, int32_t n, void (*body)(void*, int32_t), void* context) {
                                 while (n-- > 0) body(context, n);
                               },
                           .workers = 1,
                           .reserved = 0};
  pagoda_options options{.struct_size = sizeof options};
  std::vector<std::byte> newer = std::vector<std::byte>(8192);  // a struct of another version
};

// `attention` as a program would pass it that was compiled with a header of `size` bytes.
pagoda_attention* resized(Call& call, size_t size) {
  std::memcpy(call.newer.data(), &call.c.attention, sizeof call.c.attention);
  auto* copy = reinterpret_cast<pagoda_attention*>(call.newer.data());
  copy->struct_size = size;
  return copy;
}

struct BadCCall {
  const char* name;
  Base base;
  void (*spoil)(Call& call);
  const char* field;
  const char* fragment;
};

constexpr BadCCall kBadCalls[] = {
    // Structs.
    {"attention_without_size", Base::kDense, [](Call& c) { c.c.attention.struct_size = 0; },
     "attention.struct_size", "is 0; must be the sizeof"},
    {"attention_of_half_a_pointer", Base::kDense, [](Call& c) { c.c.attention.struct_size = 12; },
     "attention.struct_size", "is 12; must be the sizeof"},
    {"attention_of_a_random_size", Base::kDense,
     [](Call& c) { c.c.attention.struct_size = SIZE_MAX - 7; }, "attention.struct_size", "4096"},
    {"attention_that_ends_before_kv", Base::kDense,
     [](Call& c) { c.c.attention.struct_size = offsetof(pagoda_attention, kv); }, "kv",
     "must not be null"},
    {"out_scale_negative", Base::kDense, [](Call& c) { c.c.attention.out_scale = -1; }, "out_scale",
     "must be finite and above 0"},
    {"zero_padding_rows_of_2", Base::kRagged, [](Call& c) { c.c.attention.zero_padding_rows = 2; },
     "zero_padding_rows", "is 2; must be 0 or 1"},
    {"attention_with_reserved", Base::kRagged, [](Call& c) { c.c.attention.reserved = 1; },
     "attention.reserved", "is 1"},
    {"leftpad_of_a_shape_without_elements", Base::kDense,
     [](Call& c) { c.c.attention.leftpad_kv = c.c.views.add(nullptr, PAGODA_INT32, {0}, {1}, {}); },
     "leftpad_kv.shape[0]", "must be at least 1"},
    {"leftpad_of_int64", Base::kDense,
     [](Call& c) { c.c.attention.leftpad_kv = c.c.views.add(nullptr, PAGODA_INT64, {2}, {1}, {}); },
     "leftpad_kv.dtype", "is int64; must be int32"},
    {"lse_of_float64", Base::kDense,
     [](Call& c) {
       edit(c.c.attention.lse).dtype = {PAGODA_FLOAT32.code, 64, 1};
     },
     "lse.dtype", "is float64; must be float32"},
    {"row_max_of_float16", Base::kDense,
     [](Call& c) { edit(c.c.attention.row_max).dtype = PAGODA_FLOAT16; }, "row_max.dtype",
     "is float16; must be float32"},
    {"scales_of_fp8", Base::kFp8,
     [](Call& c) {
       c.c.kv_scales.k_per_head = c.c.views.add(nullptr, PAGODA_FLOAT8_E4M3FN, {2}, {1}, {});
     },
     "kv_scales.k_per_head.dtype", "is float8_e4m3fn; must be float32"},
    {"scales_of_int32", Base::kFp8,
     [](Call& c) { c.c.kv_scales.v_per_head = c.c.views.add(nullptr, PAGODA_INT32, {2}, {1}, {}); },
     "kv_scales.v_per_head.dtype", "is int32; must be float32"},
    {"q_scales_of_bf16_queries", Base::kFp8,
     [](Call& c) {
       c.c.attention.q_scale_per_head = c.c.views.add(nullptr, PAGODA_FLOAT32, {4}, {1}, {});
     },
     "q_scale_per_head.ndim", "must be 0 (absent): only fp8_e4m3 queries have scales"},
    {"kv_null", Base::kDense, [](Call& c) { c.c.attention.kv = nullptr; }, "kv",
     "must not be null"},
    {"kv_without_size", Base::kDense, [](Call& c) { c.c.kv.struct_size = 0; }, "kv.struct_size",
     "is 0"},
    {"page_size_of_a_dense_cache", Base::kDense, [](Call& c) { c.c.kv.page_size = 4; },
     "kv.page_size", "the cache has no pages"},
    {"page_size_of_another_layout", Base::kCsr, [](Call& c) { c.c.kv.page_size = 2; },
     "kv.page_size", "is 2"},
    {"log_base_unknown", Base::kDense, [](Call& c) { c.c.attention.lse_base = 10; }, "lse_base",
     "is 10; must be PAGODA_LOG_E or PAGODA_LOG_2"},
    {"kv_scales_without_size", Base::kFp8, [](Call& c) { c.c.kv_scales.struct_size = 0; },
     "kv_scales.struct_size", "is 0"},
    {"mask_without_size", Base::kDense, [](Call& c) { c.c.mask.struct_size = 0; },
     "mask.struct_size", "is 0"},
    {"mask_node_without_size", Base::kDense, [](Call& c) { c.c.nodes[0].struct_size = 0; },
     "mask.nodes[0].struct_size", "is 0"},
    {"mask_node_of_another_size", Base::kDense,
     [](Call& c) {
       c.c.nodes.push_back(c.c.nodes[0]);
       c.c.nodes[1].struct_size -= 8;
       c.c.mask = {.struct_size = sizeof(pagoda_mask), .nodes = c.c.nodes.data(), .num_nodes = 2};
     },
     "mask.nodes[1].struct_size", "that of the first node"},
    {"score_mod_with_reserved", Base::kDense, [](Call& c) { c.c.score_mod.reserved = 7; },
     "score_mod.reserved", "is 7"},
    {"options_without_size", Base::kDense, [](Call& c) { c.options.struct_size = 0; },
     "options.struct_size", "is 0"},
    {"options_flag_of_2", Base::kDense, [](Call& c) { c.options.checks_indices = 2; },
     "options.checks_indices", "is 2; must be 0 or 1"},
    {"schedule_unknown", Base::kDense, [](Call& c) { c.options.schedule = 5; }, "options.schedule",
     "is 5; must be one of PAGODA_SCHEDULE_*"},
    {"kv_splits_negative", Base::kDense, [](Call& c) { c.options.num_kv_splits = -3; },
     "num_kv_splits", "is -3; must be in [0, 128]"},
    {"options_flag_negative", Base::kDense, [](Call& c) { c.options.is_batch_invariant = -1; },
     "options.is_batch_invariant", "must be 0 or 1"},
    {"executor_without_size", Base::kDense,
     [](Call& c) { c.executor.struct_size = 0, c.options.executor = &c.executor; },
     "options.executor.struct_size", "is 0"},
    {"executor_without_function", Base::kDense,
     [](Call& c) { c.executor.parallel = nullptr, c.options.executor = &c.executor; },
     "options.executor.parallel", "must not be null"},
    {"executor_without_workers", Base::kDense,
     [](Call& c) { c.executor.workers = 0, c.options.executor = &c.executor; },
     "options.executor.workers", "is 0; must be at least 1"},
    // Views.
    {"q_null", Base::kDense, [](Call& c) { c.c.attention.q = nullptr; }, "q", "must not be null"},
    {"out_null", Base::kDense, [](Call& c) { c.c.attention.out = nullptr; }, "out",
     "must not be null"},
    {"k_null", Base::kDense, [](Call& c) { c.c.kv.k = nullptr; }, "kv.k", "must not be null"},
    {"q_data_null", Base::kDense, [](Call& c) { edit(c.c.attention.q).data = nullptr; }, "q.data",
     "must not be null"},
    {"q_shape_null", Base::kDense, [](Call& c) { edit(c.c.attention.q).shape = nullptr; },
     "q.shape", "must not be null"},
    {"q_of_no_dimension", Base::kDense, [](Call& c) { edit(c.c.attention.q).ndim = 0; }, "q.ndim",
     "must be in [1, 5]"},
    {"q_of_six_dimensions", Base::kDense, [](Call& c) { edit(c.c.attention.q).ndim = 6; }, "q.ndim",
     "must be in [1, 5]"},
    {"q_of_three_dimensions", Base::kDense, [](Call& c) { edit(c.c.attention.q).ndim = 3; },
     "q.ndim", "must be 4"},
    {"q_of_int64", Base::kDense, [](Call& c) { edit(c.c.attention.q).dtype = PAGODA_INT64; },
     "q.dtype", "is int64; must be float32"},
    {"q_of_two_lanes", Base::kDense, [](Call& c) { edit(c.c.attention.q).dtype.lanes = 2; },
     "q.dtype", "float32 x 2"},
    {"q_on_an_unknown_device", Base::kDense,
     [](Call& c) { edit(c.c.attention.q).device.device_type = 7; }, "q.device.device_type",
     "is 7; must be 0 or one of PAGODA_CPU"},
    {"q_on_a_gpu", Base::kDense,
     [](Call& c) { edit(c.c.attention.q).device.device_type = PAGODA_CUDA; }, "q.device", "cuda:0"},
    {"k_on_a_gpu", Base::kBlockTable,
     [](Call& c) { edit(c.c.kv.k).device.device_type = PAGODA_ROCM; }, "kv.k.device", "hip:0"},
    {"q_offset_past_memory", Base::kDense,
     [](Call& c) { edit(c.c.attention.q).byte_offset = UINT64_MAX; }, "q.byte_offset",
     "address space"},
    {"lengths_of_int64", Base::kDense,
     [](Call& c) { edit(c.c.kv.seqlens_kv).dtype = PAGODA_INT64; }, "kv.seqlens_kv.dtype",
     "is int64; must be int32"},
    {"lengths_of_two_dimensions", Base::kDense, [](Call& c) { edit(c.c.kv.seqlens_kv).ndim = 2; },
     "kv.seqlens_kv.ndim", "must be 1"},
    {"lengths_with_gaps", Base::kDense, [](Call& c) { edit_strides(c.c.kv.seqlens_kv)[0] = 2; },
     "kv.seqlens_kv.strides[0]", "must be 1"},
    {"lengths_null", Base::kDense, [](Call& c) { edit(c.c.kv.seqlens_kv).data = nullptr; },
     "kv.seqlens_kv.data", "must not be null"},
    {"lengths_misaligned", Base::kDense, [](Call& c) { edit(c.c.kv.seqlens_kv).byte_offset = 2; },
     "kv.seqlens_kv.data", "multiple of 4"},
    {"lengths_empty", Base::kDense, [](Call& c) { edit_shape(c.c.kv.seqlens_kv)[0] = 0; },
     "kv.seqlens_kv.shape[0]", "at least 1"},
    {"lengths_too_few", Base::kDense, [](Call& c) { edit_shape(c.c.kv.seqlens_kv)[0] = 1; },
     "kv.seqlens_kv.shape[0]", "must equal batch = 2"},
    {"offsets_negative", Base::kRagged,
     [](Call& c) { edit_shape(c.c.attention.cu_seqlens_q)[0] = -1; }, "cu_seqlens_q.shape[0]",
     "at least 1"},
    // Caches.
    {"block_table_and_indptr", Base::kCsr, [](Call& c) { c.c.kv.block_table = c.c.kv.indices; },
     "kv.block_table", "kv.indptr is given"},
    {"block_table_and_offsets", Base::kRagged,
     [](Call& c) { c.c.kv.block_table = c.c.kv.cu_seqlens_kv; }, "kv.block_table",
     "kv.cu_seqlens_kv is given"},
    {"indices_without_indptr", Base::kCsr, [](Call& c) { c.c.kv.indptr = nullptr; }, "kv.indptr",
     "kv.indices needs it"},
    {"block_table_flat", Base::kBlockTable, [](Call& c) { edit(c.c.kv.block_table).ndim = 1; },
     "kv.block_table.ndim", "must be 2"},
    {"block_table_of_fewer_rows", Base::kBlockTable,
     [](Call& c) { edit_shape(c.c.kv.block_table)[0] = 1; }, "kv.block_table.shape[0]",
     "must equal batch = 2"},
    {"block_table_on_a_gpu", Base::kBlockTable,
     [](Call& c) { edit(c.c.kv.block_table).device.device_type = PAGODA_CUDA; },
     "kv.block_table.device", "cuda:0"},
    {"lengths_on_a_gpu", Base::kDense,
     [](Call& c) { edit(c.c.kv.seqlens_kv).device.device_type = PAGODA_CUDA; },
     "kv.seqlens_kv.device", "cuda:0"},
    {"block_table_of_int64", Base::kBlockTable,
     [](Call& c) { edit(c.c.kv.block_table).dtype = PAGODA_INT64; }, "kv.block_table.dtype",
     "must be int32"},
    {"block_table_rows_overlap", Base::kBlockTable,
     [](Call& c) { edit_strides(c.c.kv.block_table)[0] = 2; }, "kv.block_table.strides[0]",
     "at least"},
    {"layout_unknown", Base::kBlockTable, [](Call& c) { c.c.kv.layout = 2; }, "kv.layout",
     "must be PAGODA_NHD or PAGODA_HND"},
    {"layout_of_a_dense_cache", Base::kDense, [](Call& c) { c.c.kv.layout = PAGODA_HND; },
     "kv.layout", "the cache has no pages"},
    // Masks and scores.
    {"mask_without_nodes", Base::kDense, [](Call& c) { c.c.mask.nodes = nullptr; }, "mask.nodes",
     "must not be null"},
    {"mask_of_no_node", Base::kDense, [](Call& c) { c.c.mask.num_nodes = 0; }, "mask.num_nodes",
     "must be in [1, 16]"},
    {"mask_of_17_nodes", Base::kDense, [](Call& c) { c.c.mask.num_nodes = 17; }, "mask.num_nodes",
     "must be in [1, 16]"},
    {"mask_unknown", Base::kDense, [](Call& c) { c.c.nodes[0].kind = 11; }, "mask.nodes[0].kind",
     "is 11; must be one of"},
    {"mask_operator_first", Base::kDense, [](Call& c) { c.c.nodes[0].kind = PAGODA_MASK_AND; },
     "mask.nodes[0].kind", "must follow its two operands"},
    {"mask_of_two_expressions", Base::kDense,
     [](Call& c) {
       c.c.nodes.push_back(c.c.nodes[0]);
       c.c.mask.nodes = c.c.nodes.data();
       c.c.mask.num_nodes = 2;
     },
     "mask.num_nodes", "one expression"},
    {"mask_additive_without_tensor", Base::kDense,
     [](Call& c) { c.c.nodes[0].kind = PAGODA_MASK_ADDITIVE; }, "mask.nodes[0].tensor",
     "must not be null"},
    {"mask_functor_null", Base::kDense, [](Call& c) { c.c.nodes[0].kind = PAGODA_MASK_FUNCTOR; },
     "mask.nodes[0].functor", "must not be null"},
    {"mask_node_with_reserved", Base::kDense, [](Call& c) { c.c.nodes[0].reserved = 1; },
     "mask.nodes[0].reserved", "must be 0"},
    {"scale_negative", Base::kDense, [](Call& c) { c.c.attention.softmax_scale = -1; },
     "softmax_scale", "above 0"},
    {"sinks_empty", Base::kDense,
     [](Call& c) { c.c.attention.sinks = c.c.views.add(&c, PAGODA_FLOAT32, {0}, {1}); },
     "sinks.shape[0]", "at least 1"},
};

class BadCCalls : public testing::TestWithParam<BadCCall> {};

void expect_complaint(pagoda_status_code code, const pagoda_status& status, const BadCCall& bad) {
  EXPECT_EQ(code, PAGODA_INVALID_ARGUMENT) << status.message;
  EXPECT_EQ(status.code, code);
  EXPECT_STREQ(status.field, bad.field) << status.message;
  EXPECT_EQ(std::string(status.message).rfind(bad.field, 0), 0U) << status.message;
  EXPECT_NE(std::string(status.message).find(bad.fragment), std::string::npos) << status.message;
}

TEST_P(BadCCalls, is_refused_with_its_field_named_and_nothing_written) {
  const BadCCall& bad = GetParam();
  Call call(bad.base);
  bad.spoil(call);
  pagoda_status status{.struct_size = sizeof status};
  expect_complaint(pagoda_run(&call.c.attention, &call.options, &status), status, bad);
  auto* plan = reinterpret_cast<pagoda_plan*>(&call);  // whatever was in the caller's variable
  expect_complaint(pagoda_plan_create(&call.c.attention, &call.options, &plan, &status), status,
                   bad);
  EXPECT_EQ(plan, nullptr);
  auto* list = reinterpret_cast<pagoda_kernel_list*>(&call);
  expect_complaint(pagoda_explain(&call.c.attention, &call.options, &list, &status), status, bad);
  EXPECT_EQ(list, nullptr);
  EXPECT_TRUE(call.valid.outputs_are_untouched());
}

INSTANTIATE_TEST_SUITE_P(Calls, BadCCalls, testing::ValuesIn(kBadCalls),
                         [](const auto& row) { return row.param.name; });

TEST(BadCCallTable, has_no_name_twice) {
  std::set<std::string> names;
  for (const BadCCall& bad : kBadCalls) EXPECT_TRUE(names.insert(bad.name).second) << bad.name;
}

// But for the values whose C form, zero, is the default.
TEST(BadCCallTable, what_the_cpp_api_refuses_is_refused) {
  int count = 0;
  for (const auto table :
       {bad_queries(), bad_caches(), bad_page_tables(), bad_outputs(), bad_scores(), bad_masks()}) {
    for (const BadCall& bad : table) {
      if (std::string(bad.name).ends_with("_scale_0")) continue;
      ValidCall valid(bad.base);
      bad.spoil(valid);
      const CCall call(valid.a);
      pagoda_options options{.struct_size = sizeof options, .backend = "reference"};
      options.checks_indices = 1;
      pagoda_status status{.struct_size = sizeof status};
      EXPECT_NE(pagoda_run(&call.attention, &options, &status), PAGODA_OK) << bad.name;
      EXPECT_STRNE(status.field, "") << bad.name;
      for (const char* cpp_word : {".rank", "size()", ".table."}) {
        EXPECT_EQ(std::strstr(status.message, cpp_word), nullptr) << status.message;
      }
      EXPECT_TRUE(valid.outputs_are_untouched()) << bad.name;
      ++count;
    }
  }
  EXPECT_GE(count, 100);
}

TEST(StructSizes, of_an_older_header_leave_later_fields_at_their_defaults) {
  Call call(Base::kDense);
  // The header of a version without lse and row_max.
  const pagoda_attention* old = resized(call, offsetof(pagoda_attention, lse));
  pagoda_status status{.struct_size = sizeof status};
  ASSERT_EQ(pagoda_run(old, &call.options, &status), PAGODA_OK) << status.message;
  ValidCall expected(Base::kDense);
  expected.a.lse = expected.a.row_max = {};
  ASSERT_TRUE(run(expected.a, expected.options));
  const auto* got = static_cast<const float*>(call.valid.a.out.data);
  const auto* want = static_cast<const float*>(expected.a.out.data);
  EXPECT_EQ(std::memcmp(got, want, sizeof(float) * 2 * 3 * 4 * 8), 0);
  const auto* lse = static_cast<const std::byte*>(call.valid.a.lse.data);
  EXPECT_EQ(lse[0], std::byte{0xa5});  // the poison of ValidCall
}

TEST(StructSizes, of_a_newer_header_are_accepted_while_the_new_fields_are_zero) {
  Call call(Base::kDense);
  pagoda_attention* newer = resized(call, sizeof(pagoda_attention) + 16);
  pagoda_status status{.struct_size = sizeof status};
  EXPECT_EQ(pagoda_run(newer, &call.options, &status), PAGODA_OK) << status.message;
  call.newer[sizeof(pagoda_attention) + 9] = std::byte{1};
  EXPECT_EQ(pagoda_run(newer, &call.options, &status), PAGODA_INVALID_ARGUMENT);
  EXPECT_STREQ(status.field, "attention.struct_size");
  const std::string byte = "byte " + std::to_string(sizeof(pagoda_attention) + 9) + " must be 0";
  EXPECT_NE(std::strstr(status.message, byte.c_str()), nullptr) << status.message;
}

TEST(StructSizes, of_results_bound_what_is_written) {
  Call call(Base::kDense);
  pagoda_plan* plan = nullptr;
  ASSERT_EQ(pagoda_plan_create(&call.c.attention, &call.options, &plan, nullptr), PAGODA_OK);
  pagoda_plan_info info[2];
  std::memset(info, 0x5a, sizeof info);
  info[0].struct_size = offsetof(pagoda_plan_info, zeroed_workspace_bytes);
  ASSERT_EQ(pagoda_plan_get_info(plan, info, nullptr), PAGODA_OK);
  EXPECT_STREQ(info[0].kernel, "reference");
  EXPECT_EQ(info[0].workspace_bytes, 0);
  EXPECT_EQ(info[0].zeroed_workspace_bytes, 0x5a5a5a5a5a5a5a5a);
  info[0].struct_size = sizeof info;  // of a newer header: unknown fields become zero
  ASSERT_EQ(pagoda_plan_get_info(plan, info, nullptr), PAGODA_OK);
  EXPECT_EQ(info[1].struct_size, 0U);
  pagoda_status status{.struct_size = sizeof status};
  info[0].struct_size = 4;
  EXPECT_EQ(pagoda_plan_get_info(plan, info, &status), PAGODA_INVALID_ARGUMENT);
  EXPECT_STREQ(status.field, "info.struct_size");
  pagoda_plan_destroy(plan);
}

TEST(Statuses, are_refused_without_room_for_the_message_and_cut_to_their_size) {
  Call call(Base::kDense);
  pagoda_status status{};
  std::memset(&status, 0x5a, sizeof status);
  for (const size_t size : {size_t{0}, offsetof(pagoda_status, message), size_t{1020}}) {
    status.struct_size = size;
    EXPECT_EQ(pagoda_run(&call.c.attention, &call.options, &status), PAGODA_INVALID_ARGUMENT);
    EXPECT_EQ(status.code, 0x5a5a5a5a);
  }
  EXPECT_TRUE(call.valid.outputs_are_untouched());
  status.struct_size = offsetof(pagoda_status, message) + 8;
  call.options.backend = "none";
  EXPECT_EQ(pagoda_run(&call.c.attention, &call.options, &status), PAGODA_NOT_FOUND);
  EXPECT_STREQ(status.field, "backend");
  EXPECT_EQ(std::strlen(status.message), 7U);
  EXPECT_EQ(status.message[8], 0x5a);
}

TEST(NullPointers, are_refused_by_name) {
  Call call(Base::kDense);
  pagoda_status status{.struct_size = sizeof status};
  const auto expect = [&](pagoda_status_code code, const char* field) {
    EXPECT_EQ(code, PAGODA_INVALID_ARGUMENT);
    EXPECT_STREQ(status.field, field) << status.message;
  };
  expect(pagoda_run(nullptr, nullptr, &status), "attention");
  expect(pagoda_append_kv(nullptr, nullptr, &status), "append");
  expect(pagoda_merge_states(nullptr, nullptr, &status), "merge");
  const pagoda_append_kv_args append{.struct_size = sizeof append};
  expect(pagoda_append_kv(&append, nullptr, &status), "k_new");
  const pagoda_merge_states_args merge{.struct_size = sizeof merge};
  expect(pagoda_merge_states(&merge, nullptr, &status), "partial_out");
  expect(pagoda_plan_create(&call.c.attention, &call.options, nullptr, &status), "plan");
  expect(pagoda_plan_run(nullptr, &call.c.attention, nullptr, 0, nullptr, &status), "plan");
  expect(pagoda_plan_get_info(nullptr, nullptr, &status), "plan");
  expect(pagoda_backends(nullptr, &status), "list");
  expect(pagoda_backend_list_get(nullptr, 0, nullptr, &status), "list");
  expect(pagoda_explain(&call.c.attention, &call.options, nullptr, &status), "list");
  expect(pagoda_kernel_list_get(nullptr, 0, nullptr, &status), "list");
  pagoda_host_allocator allocator{.struct_size = sizeof allocator};
  expect(pagoda_set_host_allocator(&allocator, &status), "allocator.allocate");
  allocator.allocate = [](void*, size_t, size_t) -> void* { return nullptr; };
  expect(pagoda_set_host_allocator(&allocator, &status), "allocator.deallocate");

  pagoda_plan* plan = nullptr;
  ASSERT_EQ(pagoda_plan_create(&call.c.attention, &call.options, &plan, nullptr), PAGODA_OK);
  expect(pagoda_plan_get_info(plan, nullptr, &status), "info");
  expect(pagoda_plan_run(plan, nullptr, nullptr, 0, nullptr, &status), "attention");
  expect(pagoda_plan_run(plan, &call.c.attention, nullptr, -1, nullptr, &status),
         "workspace_bytes");
  expect(pagoda_plan_run(plan, &call.c.attention, nullptr, 64, nullptr, &status), "workspace");
  pagoda_plan_destroy(plan);
  pagoda_plan_destroy(nullptr);
  pagoda_backend_list_destroy(nullptr);
  pagoda_kernel_list_destroy(nullptr);
  EXPECT_EQ(pagoda_run(nullptr, nullptr, nullptr), PAGODA_INVALID_ARGUMENT);
  EXPECT_TRUE(call.valid.outputs_are_untouched());
}

TEST(Lists, refuse_an_index_past_their_end) {
  pagoda_backend_list* list = nullptr;
  ASSERT_EQ(pagoda_backends(&list, nullptr), PAGODA_OK);
  pagoda_backend_info info{.struct_size = sizeof info};
  pagoda_status status{.struct_size = sizeof status};
  for (const int64_t index : {int64_t{-1}, pagoda_backend_list_size(list)}) {
    EXPECT_EQ(pagoda_backend_list_get(list, index, &info, &status), PAGODA_INVALID_ARGUMENT);
    EXPECT_STREQ(status.field, "index");
  }
  pagoda_backend_list_destroy(list);
}

}  // namespace
}  // namespace pagoda::test
