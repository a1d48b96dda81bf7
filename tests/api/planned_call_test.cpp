// run(plan, ...): serves what was planned, rejects everything else before it writes.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "engine/plan.hpp"
#include "valid_call.hpp"

namespace pagoda::test {
namespace {

// A valid call that differs from the planned one in one thing.
struct Change {
  const char* name;
  Base base;
  void (*change)(ValidCall& call);
  const char* field;
};

constexpr Change kChanges[] = {
    {"shorter_dense_keys", Base::kDense, [](ValidCall& c) { c.seqlens_kv[0] = 9; }, "seqlen_kv[0]"},
    {"dense_lengths_absent", Base::kDense, [](ValidCall& c) { c.dense().seqlens_kv = {}; },
     "seqlen_kv[1]"},
    {"other_ragged_rows", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_q[1] = 2; },
     "seqlen_q[0]"},
    {"other_ragged_keys", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_kv[1] = 9; },
     "seqlen_kv[0]"},
    {"other_paged_keys", Base::kBlockTable, [](ValidCall& c) { c.seqlens_kv[1] = 8; },
     "seqlen_kv[1]"},
    {"other_last_page", Base::kCsr, [](ValidCall& c) { c.last_page_len[1] = 4; }, "seqlen_kv[1]"},
    {"valid_rows_given", Base::kDense,
     [](ValidCall& c) {
       c.ints = {3, 1};
       c.a.seqlens_q = c.ints;
     },
     "seqlen_q[1]"},
    {"cache_lengths_given", Base::kDense,
     [](ValidCall& c) {
       c.ints = {7, 9};
       c.a.cache_lengths = c.ints;
     },
     "cache_length[1]"},
    {"other_q_strides", Base::kDense, [](ValidCall& c) { c.a.q.strides[0] = 0; },
     "q.sequence_stride"},
    {"other_k_strides", Base::kBlockTable, [](ValidCall& c) { c.paged().k.strides[0] = 0; },
     "kv.k.outer_stride"},
    {"other_v_strides", Base::kRagged, [](ValidCall& c) { c.ragged().v.strides[1] = 0; },
     "kv.v.head_stride"},
    {"other_out_strides", Base::kRagged,
     [](ValidCall& c) {  // heads outside rows, in the same memory
       c.a.out.strides[0] = ValidCall::kDimVo;
       c.a.out.strides[1] = ValidCall::kDimVo * ValidCall::kTotalQ;
     },
     "out.row_stride"},
    {"no_lse", Base::kDense, [](ValidCall& c) { c.a.lse = {}; }, "lse"},
    {"no_row_max", Base::kDense, [](ValidCall& c) { c.a.row_max = {}; }, "row_max"},
    {"another_mask", Base::kDense, [](ValidCall& c) { c.a.mask = Mask::window(4, 0); },
     "mask.kind"},
    {"a_longer_mask", Base::kDense,
     [](ValidCall& c) { c.a.mask = Mask::causal() & Mask::chunked(4); }, "mask.nodes().size()"},
    {"sinks_given", Base::kDense,
     [](ValidCall& c) {
       c.floats = {0, 0, 0, 0};
       c.a.sinks = c.floats;
     },
     "sinks"},
    {"softcap_given", Base::kDense, [](ValidCall& c) { c.a.score_mod.softcap = 30; },
     "score_mod.softcap"},
    {"alibi_given", Base::kDense,
     [](ValidCall& c) {
       c.floats = {0, 0, 0, 0};
       c.a.score_mod.alibi_slopes = c.floats;
     },
     "score_mod.alibi_slopes"},
    {"functor_given", Base::kDense,
     [](ValidCall& c) {
       c.a.score_mod.functor = [](void*, float s, int32_t, int32_t, int64_t, int64_t) { return s; };
     },
     "score_mod.functor"},
    {"per_head_scales_given", Base::kFp8,
     [](ValidCall& c) {
       c.floats = {1, 2};
       c.a.kv_scales.k_per_head = c.floats_of({2});
     },
     "kv_scales.k_per_head"},
    {"leftpad_given", Base::kBlockTable,
     [](ValidCall& c) {
       c.ints = {0, 0};
       c.a.leftpad_kv = c.ints;
     },
     "leftpad_kv"},
    {"another_q_dtype", Base::kFp8, [](ValidCall& c) { c.a.q.dtype = c.a.out.dtype = DType::kF16; },
     "q.dtype"},
    {"fewer_rows", Base::kDense,
     [](ValidCall& c) {
       for (Tensor* t : {&c.a.out, &c.a.lse, &c.a.row_max}) t->shape[1] = 2;
       c.a.q.shape[1] = 2;
     },
     "q.seqlen_q"},
    {"fewer_heads", Base::kDense,
     [](ValidCall& c) {
       for (Tensor* t : {&c.a.out, &c.a.lse, &c.a.row_max}) t->shape[2] = 2;
       c.a.q.shape[2] = 2;
     },
     "q.num_q_heads"},
    {"fewer_dense_slots", Base::kDense,
     [](ValidCall& c) {
       c.seqlens_kv = {9, 7};
       c.dense().k.shape[1] = c.dense().v.shape[1] = 9;
     },
     "kv.k.max_seqlen_kv"},
};

TEST(PlannedCalls, reject_a_call_that_differs) {
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.name);
    ValidCall call(change.base);
    const Result<Plan> planned = plan(call.a, call.options);
    ASSERT_TRUE(planned);
    change.change(call);
    ASSERT_TRUE(plan(call.a, call.options)) << "the changed call is valid by itself";
    const Status status = run(*planned, call.a, {});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.field(), change.field);
    EXPECT_NE(status.message().find("the plan was made for"), std::string::npos)
        << status.message();
    EXPECT_TRUE(call.outputs_are_untouched());
  }
}

TEST(PlannedCalls, messages_write_types_and_what_is_absent_as_words) {
  const auto message = [](Base base, void (*change)(ValidCall & c)) {
    ValidCall call(base);
    const Result<Plan> planned = plan(call.a, call.options);
    change(call);
    return run(*planned, call.a, {}).message();
  };
  EXPECT_EQ(message(Base::kFp8, [](ValidCall& c) { c.a.q.dtype = c.a.out.dtype = DType::kF16; }),
            "q.dtype is fp16; the plan was made for bf16");
  EXPECT_EQ(message(Base::kDense, [](ValidCall& c) { c.a.lse = {}; }),
            "lse is absent; the plan was made for a call with it");
  EXPECT_EQ(message(Base::kDense, [](ValidCall& c) { c.a.score_mod.softcap = 30; }),
            "score_mod.softcap is given; the plan was made for a call without it");
  EXPECT_EQ(message(Base::kRagged,
                    [](ValidCall& c) {
                      static std::vector<int32_t> pages(6), lengths{10, 7};
                      c.floats.resize(6 * 4 * 2 * 16);
                      c.a.kv = PagedKV{.k = c.floats_of({6, 4, 2, 16}),
                                       .v = c.floats_of({6, 4, 2, 8}),
                                       .table = BlockTable{{pages.data(), 2, 3, 3}, lengths}};
                    }),
            "kv is paged; the plan was made for ragged");
}

TEST(PlannedCalls, padding_lengths_are_part_of_the_plan) {
  ValidCall call(Base::kDense);
  call.ints = {8, 5};
  call.a.mask = Mask::padding(call.ints);
  const Result<Plan> planned = plan(call.a, call.options);
  ASSERT_TRUE(planned);
  call.ints[1] = 6;
  EXPECT_EQ(run(*planned, call.a, {}).field(), "mask.valid_lengths");
  EXPECT_TRUE(call.outputs_are_untouched());
  call.ints[1] = 5;
  EXPECT_TRUE(run(*planned, call.a, {}));
}

// What may change under one plan: memory, page ids, and numbers that the plan does not depend on.
TEST(PlannedCalls, unused_rows_are_part_of_the_plan) {
  ValidCall call(Base::kRagged);
  call.ints = {1, 1};
  call.a.seqlens_q = call.ints;
  const Result<Plan> planned = plan(call.a, call.options);
  ASSERT_TRUE(planned) << planned.status().message();
  EXPECT_TRUE(run(*planned, call.a, {}));
  call.cu_seqlens_q[1] = 2;  // the same rows are used
  EXPECT_EQ(run(*planned, call.a, {}).field(), "num_rows[0]");
}

TEST(PlannedCalls, serve_other_memory_pages_and_scales) {
  for (const Base base : {Base::kDense, Base::kRagged, Base::kBlockTable, Base::kCsr, Base::kFp8}) {
    ValidCall first(base);
    const Result<Plan> planned = plan(first.a, first.options);
    ASSERT_TRUE(planned);
    ValidCall second(base), alone(base);
    for (ValidCall* call : {&second, &alone}) {
      std::swap(call->pages[0], call->pages[3]);
      call->a.softmax_scale = 0.3F;
      if (base == Base::kFp8) call->a.kv_scales.v = 3;
    }
    const Status status = run(*planned, second.a, {});
    ASSERT_TRUE(status) << status.message();
    ASSERT_TRUE(run(alone.a, alone.options));
    const auto bytes = static_cast<size_t>(ValidCall::kTotalQ * ValidCall::kQHeads *
                                           ValidCall::kDimVo * size_bytes(first.a.out.dtype));
    EXPECT_EQ(std::memcmp(second.a.out.data, alone.a.out.data, bytes), 0);
    EXPECT_TRUE(first.outputs_are_untouched());
  }
}

// A plan of a kernel that needs 256 bytes and records its workspace.
struct Probe {
  static inline std::span<std::byte> received;
  static inline Stream stream;
  static Plan plan_for(const ValidCall& call) {
    static const core::Kernel kernel{
        .name = "probe",
        .backend = "probe",
        .fit = nullptr,
        .plan = nullptr,
        .run = [](const core::Kernel&, const core::KernelPlan&, const core::Problem&,
                  std::span<std::byte> workspace, const core::RunContext& context) {
          received = workspace;
          stream = context.stream;
        }};
    const Result<Plan> real = pagoda::plan(call.a, call.options);
    auto state = std::make_shared<Plan::State>();
    state->kernel = &kernel;
    state->backend = real->state().backend;
    state->kernel_plan = std::make_unique<core::KernelPlan>();
    state->kernel_plan->workspace_bytes = 256;
    state->signature = real->state().signature;
    state->executor = &serial_executor();
    received = {};
    return Plan(std::move(state));
  }
};

TEST(Workspaces, of_the_right_size_and_alignment_reach_the_kernel) {
  const ValidCall call(Base::kDense);
  const Plan probe = Probe::plan_for(call);
  ASSERT_EQ(probe.workspace_bytes(), 256);
  alignas(64) std::byte memory[512];
  ASSERT_TRUE(run(probe, call.a, memory));
  EXPECT_EQ(Probe::received.data(), memory);
  EXPECT_EQ(Probe::received.size(), 256U);
  EXPECT_EQ(Probe::stream, Stream{});
  int32_t queue = 0;
  ASSERT_TRUE(run(probe, call.a, memory, Stream{&queue}));
  EXPECT_EQ(Probe::stream.handle, &queue);
}

TEST(Workspaces, too_small_or_misaligned_are_rejected) {
  const ValidCall call(Base::kDense);
  const Plan probe = Probe::plan_for(call);
  alignas(64) std::byte memory[512];
  const std::span<std::byte> all(memory);
  const Status absent = run(probe, call.a, {});
  EXPECT_EQ(absent.field(), "workspace.size()");
  EXPECT_NE(absent.message().find("is 0; must be at least workspace_bytes() = 256"),
            std::string::npos);
  EXPECT_EQ(run(probe, call.a, all.first(255)).field(), "workspace.size()");
  EXPECT_EQ(run(probe, call.a, all.subspan(32)).field(), "workspace.data()");
  EXPECT_EQ(Probe::received.data(), nullptr);
  EXPECT_TRUE(run(probe, call.a, all.subspan(64)));
  EXPECT_NE(Probe::received.data(), nullptr);
}

}  // namespace
}  // namespace pagoda::test
