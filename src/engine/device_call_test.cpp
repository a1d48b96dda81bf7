// Calls on GPU memory, with a back end that only records its calls. Every array has an unmapped
// address, so that a host read ends the test with a fault.
#include <array>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "engine/kept_plans.hpp"
#include "engine/registry.hpp"
#include "engine/validate.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

constexpr Device kGpu{DeviceType::kCuda, 0}, kOtherGpu{DeviceType::kCuda, 1};

// The arguments of the back end's functions.
struct Notes {
  int plans = 0, runs = 0, appends = 0, merges = 0, releases = 0;
  const core::Kernel* self = nullptr;
  Stream stream;
  core::WorkspaceSize kept;
  Device device;
  std::span<std::byte> workspace;
} notes;

constexpr int kData = 7;
alignas(64) std::array<std::byte, 256> kept_memory;
const Stream kCapturedStream{kept_memory.data()};

constexpr core::Kernel kKernel{
    .name = "notes",
    .backend = "test:device",
    .fit =
        [](const core::Kernel&, const core::Problem& problem, const Options&, std::string* reason) {
          if (!problem.has_host_lengths) return core::Fit::kServes;
          return core::unfit(core::Fit::kFeatures, reason,
                             [] { return "the lengths must be on the device"; });
        },
    .plan = [](const core::Kernel&, const core::Problem&,
               const Options&) -> Result<std::unique_ptr<core::KernelPlan>> {
      ++notes.plans;
      auto plan = std::make_unique<core::KernelPlan>();
      plan->workspace_bytes = 192;
      plan->zeroed_workspace_bytes = 64;
      return plan;
    },
    .run =
        [](const core::Kernel& self, const core::KernelPlan&, const core::Problem& problem,
           std::span<std::byte> workspace, const core::RunContext& context) {
          ++notes.runs;
          notes.self = &self;
          notes.stream = context.stream;
          notes.device = problem.device;
          notes.workspace = workspace;
          if (problem.softmax_scale == 13.0F) throw std::runtime_error("the launch failed");
        },
    .data = &kData};

constexpr core::Backend kBackend{
    .name = "test:device",
    .memory = DeviceType::kCuda,
    .kernels = [] { return std::span<const core::Kernel>(&kKernel, 1); },
    .description = [] { return std::string("takes notes"); },
    .append_kv =
        [](const AppendKV&, const core::RunContext& context) {
          ++notes.appends;
          notes.stream = context.stream;
          return Status{};
        },
    .merge_states =
        [](const MergeStates&, const core::RunContext&) {
          ++notes.merges;
          return Status{};
        },
    .misplaced = [](const void* data,
                    Device) { return std::string(data == &kData ? "on the moon" : ""); },
    .keep_workspace = [](core::WorkspaceSize size, Device device,
                         Stream stream) -> Result<std::span<std::byte>> {
      if (stream == kCapturedStream) {
        return Status(StatusCode::kStreamCapturing, "stream", "stream is captured");
      }
      notes.kept = size;
      notes.device = device;
      notes.stream = stream;
      return std::span(kept_memory).first(static_cast<size_t>(size.bytes));
    },
    .release_workspaces = [] { ++notes.releases; }};

template <typename T>
T* nowhere() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<T*>(uintptr_t{0x1000});  // below what a process may map
}
template <typename T>
ArrayView<T> nowhere(int64_t size, Device device = kGpu) {
  return {nowhere<const T>(), size, device};
}
ConstTensor input(std::initializer_list<int64_t> shape, DType dtype = DType::kBF16) {
  return ConstTensor::contiguous(nowhere<void>(), dtype, shape, kGpu);
}
// Outputs must not overlap inputs or each other: their addresses are far apart.
Tensor output(std::initializer_list<int64_t> shape, DType dtype, uintptr_t place) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return Tensor::contiguous(reinterpret_cast<void*>(place << 32), dtype, shape, kGpu);
}

// Moves a tensor by so many bytes.
template <class View>
void shift(View& view, ptrdiff_t bytes) {
  view.data = reinterpret_cast<std::byte*>(const_cast<void*>(view.data)) + bytes;
}

// Ragged queries, 3 sequences of 40 tokens together, over pages of 16; 4 query heads on 2.
struct DeviceCall {
  DeviceCall() {
    EXPECT_TRUE(engine::register_backend(kBackend));
    notes = {};
    a.q = input({40, 4, 64});
    a.cu_seqlens_q = nowhere<int32_t>(4);
    const ConstTensor pages = input({100, 16, 2, 64});
    a.kv = PagedKV{
        .k = pages,
        .v = pages,
        .table = BlockTable{MatrixView<int32_t>::contiguous(nowhere<const int32_t>(), 3, 8, kGpu),
                            nowhere<int32_t>(3)}};
    a.out = output({40, 4, 64}, DType::kBF16, 1);
    a.lse = output({40, 4}, DType::kF32, 2);
    a.mask = Mask::causal();
  }
  [[nodiscard]] PagedKV& paged() { return std::get<PagedKV>(a.kv); }
  [[nodiscard]] core::Problem problem() const {
    const Result<core::Problem> valid = engine::validate(a, options);
    EXPECT_TRUE(valid) << valid.status().message();
    return valid ? *valid : core::Problem{};
  }

  Attention a;
  Options options{.backend = "test:device", .checks_indices = true};
};

AppendKV valid_append() {
  AppendKV append;
  append.k_new = append.v_new = input({5, 2, 64});
  append.k_cache = output({100, 16, 2, 64}, DType::kBF16, 1);
  append.v_cache = output({100, 16, 2, 64}, DType::kBF16, 2);
  append.slot_mapping = nowhere<int64_t>(5);
  return append;
}

TEST(DeviceCalls, are_planned_and_run_without_reading_an_array) {
  DeviceCall call;
  call.a.cache_lengths = nowhere<int32_t>(3);
  call.a.sinks = nowhere<float>(4);
  call.a.score_mod.alibi_slopes = nowhere<float>(4);
  call.a.max_seqlen_q = 16;
  call.a.max_seqlen_kv = 100;
  call.a.mask = (Mask::padding(nowhere<int32_t>(3)) &
                 Mask::bits(nowhere<uint32_t>(1000), nowhere<int64_t>(4))) &
                (Mask::additive(input({1, 16, 100}, DType::kF32)) &
                 Mask::relative_bias(input({4, 9}, DType::kF32)));
  const Result<Plan> planned = plan(call.a, call.options);
  ASSERT_TRUE(planned) << planned.status().message();
  EXPECT_EQ(planned->workspace_bytes(), 192);
  EXPECT_EQ(planned->zeroed_workspace_bytes(), 64);
  int queue = 0;
  const Status status = run(*planned, call.a, kept_memory, Stream{&queue});
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(notes.runs, 1);
  EXPECT_EQ(notes.self, &kKernel);
  EXPECT_EQ(notes.self->data, &kData);
  EXPECT_EQ(notes.stream.handle, &queue);
  EXPECT_EQ(notes.workspace.size(), 192U);
  ASSERT_TRUE(explain(call.a, call.options));
}

TEST(DeviceCalls, of_every_cache_are_valid) {
  DeviceCall call;
  const ConstTensor fp8 = input({100, 16, 2, 64}, DType::kF8E4M3);
  call.a.kv =
      PagedKV{.k = fp8,
              .v = fp8,
              .table = CsrPages{nowhere<int32_t>(4), nowhere<int32_t>(9), nowhere<int32_t>(3)}};
  call.a.kv_scales.k_per_head = input({3, 2}, DType::kF32);
  call.a.leftpad_kv = nowhere<int32_t>(3);
  EXPECT_EQ(call.problem().max_seqlen_kv_bound, 9 * 16);
  call.a.kv_scales = {};
  call.a.leftpad_kv = {};
  const ConstTensor rows = input({70, 2, 64}), dense = input({3, 50, 2, 64});
  call.a.kv = RaggedKV{.k = rows, .v = rows, .cu_seqlens_kv = nowhere<int32_t>(4)};
  EXPECT_EQ(call.problem().max_seqlen_kv_bound, 70);
  call.a.kv = DenseKV{.k = dense, .v = dense, .seqlens_kv = nowhere<int32_t>(3)};
  EXPECT_EQ(call.problem().max_seqlen_kv_bound, 50);
}

TEST(DeviceCalls, have_bounds_from_promises_or_from_shapes) {
  DeviceCall call;
  core::Problem p = call.problem();
  EXPECT_FALSE(p.has_host_lengths);
  EXPECT_EQ(p.device, kGpu);
  EXPECT_EQ(p.max_seqlen_q, 40);
  EXPECT_EQ(p.max_seqlen_q_bound, 40);
  EXPECT_EQ(p.total_q, 40);
  EXPECT_EQ(p.num_pages, 100);
  EXPECT_EQ(p.max_seqlen_kv_bound, 8 * 16);
  call.a.max_seqlen_q = 5;
  call.a.max_seqlen_kv = 77;
  p = call.problem();
  EXPECT_EQ(p.max_seqlen_q, 5);
  EXPECT_EQ(p.max_seqlen_q_bound, 5);
  EXPECT_EQ(p.max_seqlen_kv_bound, 77);
  call.a.max_seqlen_kv = 1000;  // more than the table holds
  EXPECT_EQ(call.problem().max_seqlen_kv_bound, 128);
  call.a.max_seqlen_q = -1;
  EXPECT_EQ(plan(call.a, call.options).status().field(), "max_seqlen_q");
}

TEST(DeviceCalls, of_padded_queries_keep_their_rows_and_have_a_bound_of_their_own) {
  DeviceCall call;
  call.a.cu_seqlens_q = {};
  call.a.q = input({3, 10, 4, 64});
  call.a.out = output({3, 10, 4, 64}, DType::kBF16, 1);
  call.a.lse = {};
  call.a.max_seqlen_q = 4;  // without seqlens_q every sequence has 10
  EXPECT_EQ(plan(call.a, call.options).status().message(),
            "max_seqlen_q is 4; must be 0 or at least the longest sequence, 10");
  call.a.seqlens_q = nowhere<int32_t>(3);
  EXPECT_EQ(call.problem().max_seqlen_q, 10);
  EXPECT_EQ(call.problem().max_seqlen_q_bound, 4);
}

TEST(DeviceCalls, must_have_every_tensor_on_the_device_of_q) {
  const struct {
    const char* field;
    void (*move)(Attention& a, Device to);
  } tensors[] = {
      {"q.device", [](Attention& a, Device to) { a.q.device = to; }},
      {"kv.k.device", [](Attention& a, Device to) { std::get<PagedKV>(a.kv).k.device = to; }},
      {"kv.v.device", [](Attention& a, Device to) { std::get<PagedKV>(a.kv).v.device = to; }},
      {"out.device", [](Attention& a, Device to) { a.out.device = to; }},
      {"lse.device", [](Attention& a, Device to) { a.lse.device = to; }},
      {"row_max.device",
       [](Attention& a, Device to) {
         a.row_max = output({40, 4}, DType::kF32, 3);
         a.row_max.device = to;
       }},
      {"mask.nodes[0].tensor.device",
       [](Attention& a, Device to) {
         ConstTensor table = input({4, 9}, DType::kF32);
         table.device = to;
         a.mask = Mask::relative_bias(table) & Mask::causal();
       }},
  };
  for (const auto& [field, move] : tensors) {
    DeviceCall call;
    move(call.a, Device{});
    const Status on_host = plan(call.a, call.options).status();
    EXPECT_EQ(on_host.message(),
              std::string(field) + " is cpu; back end test:device reads device memory (cuda)");
    EXPECT_EQ(on_host.field(), field);
    move(call.a, kOtherGpu);
    const Status elsewhere = run(call.a, call.options);
    EXPECT_EQ(elsewhere.code(), StatusCode::kInvalidArgument) << field;
    if (std::string(field) != "q.device") {
      EXPECT_EQ(elsewhere.message(),
                std::string(field) + " is cuda:1; must be cuda:0, the device of q");
    }
    EXPECT_EQ(notes.runs, 0);
  }
}

// A container of the host is the likeliest mistake: its view says cpu.
TEST(DeviceCalls, must_have_every_array_on_the_device_of_q) {
  static const std::vector<int32_t> ints(16);
  static const std::vector<int64_t> longs(16);
  static const std::vector<uint32_t> words(16);
  static const std::vector<float> floats(16, 1.0F);
  static const auto host_scales = ConstTensor::contiguous(floats.data(), DType::kF32, {2});
  const auto table_of = [](Attention& a) -> BlockTable& {
    return std::get<BlockTable>(std::get<PagedKV>(a.kv).table);
  };
  const std::pair<const char*, std::function<void(Attention&)>> arrays[] = {
      {"cu_seqlens_q", [](Attention& a) { a.cu_seqlens_q = ints; }},
      {"seqlens_q", [](Attention& a) { a.seqlens_q = ints; }},
      {"cache_lengths", [](Attention& a) { a.cache_lengths = ints; }},
      {"sinks", [](Attention& a) { a.sinks = floats; }},
      {"score_mod.alibi_slopes", [](Attention& a) { a.score_mod.alibi_slopes = floats; }},
      {"kv_scales.k_per_head", [](Attention& a) { a.kv_scales.k_per_head = host_scales; }},
      {"kv_scales.v_per_head", [](Attention& a) { a.kv_scales.v_per_head = host_scales; }},
      {"q_scale_per_head", [](Attention& a) { a.q_scale_per_head = host_scales; }},
      {"leftpad_kv", [](Attention& a) { a.leftpad_kv = ints; }},
      {"kv.table.pages",
       [&](Attention& a) {
         table_of(a).pages = {ints.data(), 3, 4, 4};
       }},
      {"kv.table.seqlens_kv", [&](Attention& a) { table_of(a).seqlens_kv = ints; }},
      {"mask.nodes[0].valid_lengths", [](Attention& a) { a.mask = Mask::padding(ints); }},
      {"mask.nodes[0].words",
       [](Attention& a) { a.mask = Mask::bits(words, nowhere<int64_t>(4)); }},
      {"mask.nodes[0].row_offsets",
       [](Attention& a) { a.mask = Mask::bits(nowhere<uint32_t>(9), longs); }},
      {"kv.cu_seqlens_kv",
       [](Attention& a) {
         const ConstTensor rows = input({70, 2, 64});
         a.kv = RaggedKV{.k = rows, .v = rows, .cu_seqlens_kv = ints};
       }},
      {"kv.seqlens_kv",
       [](Attention& a) {
         const ConstTensor dense = input({3, 50, 2, 64});
         a.kv = DenseKV{.k = dense, .v = dense, .seqlens_kv = ints};
       }},
      {"kv.table.indices",
       [](Attention& a) {
         std::get<PagedKV>(a.kv).table = CsrPages{nowhere<int32_t>(4), ints, nowhere<int32_t>(3)};
       }},
  };
  for (const auto& [field, move] : arrays) {
    DeviceCall call;
    call.options.checks_indices = false;
    move(call.a);
    EXPECT_EQ(
        run(call.a, call.options).message(),
        std::string(field) + ".device is cpu; back end test:device reads device memory (cuda)");
    EXPECT_EQ(notes.runs, 0);
  }
}

TEST(HostCalls, must_have_every_array_on_the_host) {
  const std::array<float, 80> memory{};
  Attention a;
  a.q = ConstTensor::contiguous(memory.data(), DType::kF32, {2, 1, 1, 8});
  const ConstTensor keys = ConstTensor::contiguous(memory.data(), DType::kF32, {2, 5, 1, 8});
  a.kv = DenseKV{.k = keys, .v = keys, .seqlens_kv = nowhere<int32_t>(2)};
  EXPECT_EQ(plan(a).status().message(),
            "kv.seqlens_kv.device is cuda:0; back end cpu reads host memory (cpu)");
}

// Without a name the memory of q decides.
TEST(BackEnds, are_those_of_the_memory_of_the_first_tensor) {
  const auto name_for = [](Device device) {
    return std::string((*engine::backend_of({}, device))->name);
  };
  EXPECT_EQ(name_for({}), "cpu");
  EXPECT_EQ(name_for(kOtherGpu), "cuda");
  EXPECT_EQ(name_for({DeviceType::kHip, 0}), "hip");
  EXPECT_STREQ((*engine::backend_of({.backend = "reference"}, kGpu))->name, "reference");

  DeviceCall call;
  call.options.backend.clear();
  const Status on_gpu = run(call.a, call.options);  // no such GPU, or no such memory on it
  EXPECT_NE(on_gpu.message().find("cuda"), std::string::npos) << on_gpu.message();
  EXPECT_NE(append_kv(valid_append(), {}).message().find("cuda"), std::string::npos);
}

TEST(DeviceCalls, have_arrays_of_the_right_size) {
  DeviceCall call;
  call.a.cache_lengths = nowhere<int32_t>(2);
  EXPECT_EQ(plan(call.a, call.options).status().field(), "cache_lengths.size()");
  call.a.cache_lengths = {};
  call.a.sinks = nowhere<float>(3);
  EXPECT_EQ(plan(call.a, call.options).status().field(), "sinks.size()");
  call.a.sinks = {};
  call.a.mask = Mask::additive(input({1, 40, 127}, DType::kF32));
  EXPECT_EQ(plan(call.a, call.options).status().field(), "mask.nodes[0].tensor.shape[2]");
}

TEST(DeviceCalls, in_checked_mode_have_every_array_looked_at) {
  const struct {
    const char* field;
    void (*move)(Attention& a, const int32_t* to);
  } arrays[] = {
      {"cu_seqlens_q.data",
       [](Attention& a, auto to) {
         a.cu_seqlens_q = {to, 4, kGpu};
       }},
      {"cache_lengths.data",
       [](Attention& a, auto to) {
         a.cache_lengths = {to, 3, kGpu};
       }},
      {"kv.table.pages.data",
       [](Attention& a, auto to) {
         std::get<BlockTable>(std::get<PagedKV>(a.kv).table).pages.data = to;
       }},
      {"mask.nodes[0].valid_lengths.data",
       [](Attention& a, auto to) {
         a.mask = Mask::padding({to, 3, kGpu});
       }},
      {"kv.k.data", [](Attention& a, auto to) { std::get<PagedKV>(a.kv).k.data = to; }},
  };
  for (const auto& [field, move] : arrays) {
    DeviceCall call;
    move(call.a, &kData);
    EXPECT_EQ(plan(call.a, call.options).status().message(),
              std::string(field) + " is on the moon; must be on cuda:0");
    call.options.checks_indices = false;
    EXPECT_TRUE(plan(call.a, call.options)) << field;
  }
}

// Other lengths in the same arrays, other arrays, other page ids: a plan depends on none of these.
TEST(DeviceCalls, of_one_plan_differ_in_everything_but_shapes_and_bounds) {
  DeviceCall call;
  const Result<Plan> planned = plan(call.a, call.options);
  ASSERT_TRUE(planned);
  const std::vector<int32_t> elsewhere(4);
  call.a.cu_seqlens_q = {elsewhere.data(), 4, kGpu};
  EXPECT_TRUE(run(*planned, call.a, kept_memory));
  const auto expect_rejection = [&](const DeviceCall& other, const char* field) {
    const Status status = run(*planned, other.a, kept_memory);
    EXPECT_EQ(status.field(), field) << status.message();
    EXPECT_NE(status.message().find("the plan was made for"), std::string::npos);
  };
  DeviceCall more_keys, fewer_rows, on_another, with_positions;
  more_keys.a.max_seqlen_kv = 100;
  expect_rejection(more_keys, "max_seqlen_kv");
  fewer_rows.a.max_seqlen_q = 30;
  expect_rejection(fewer_rows, "max_seqlen_q");
  with_positions.a.cache_lengths = nowhere<int32_t>(3);
  expect_rejection(with_positions, "cache_lengths");
  for (int i = 0; i < 3; ++i) {  // kernels that copy 16 bytes at a time would fault
    DeviceCall shifted;
    ConstTensor* const tensors[] = {&shifted.a.q, &shifted.paged().k, &shifted.paged().v};
    shift(*tensors[i], 8);
    const char* const fields[] = {"q.data.is_aligned_to_16_bytes",
                                  "kv.k.data.is_aligned_to_16_bytes",
                                  "kv.v.data.is_aligned_to_16_bytes"};
    expect_rejection(shifted, fields[i]);
    shift(*tensors[i], 8);
    EXPECT_TRUE(run(*planned, shifted.a, kept_memory));
  }
  for (ConstTensor* t : {&on_another.a.q, &on_another.paged().k, &on_another.paged().v}) {
    t->device = kOtherGpu;
  }
  on_another.a.out.device = on_another.a.lse.device = kOtherGpu;
  on_another.a.cu_seqlens_q = nowhere<int32_t>(4, kOtherGpu);
  auto& table = std::get<BlockTable>(on_another.paged().table);
  table.seqlens_kv = nowhere<int32_t>(3, kOtherGpu);
  table.pages.device = kOtherGpu;
  expect_rejection(on_another, "q.device");
}

TEST(DeviceCalls, cost_what_the_longest_sequences_would) {
  DeviceCall call;
  call.a.max_seqlen_q = 16;
  call.a.max_seqlen_kv = 100;
  const Result<Plan> planned = plan(call.a, call.options);
  ASSERT_TRUE(planned);
  // 40 rows: two sequences of 16, one of 8; row i from the end sees 100 - i keys.
  const double pairs = 2 * (16 * 100 - 120) + (8 * 100 - 28);
  EXPECT_EQ(planned->flops(), 2 * pairs * 4 * 128);
  EXPECT_EQ(planned->kv_bytes(), 3.0 * 100 * 2 * 128 * 2);
}

TEST(DeviceCalls, in_one_step_use_the_kept_workspace_of_their_stream) {
  DeviceCall call;
  int queue = 0;
  call.options.stream = Stream{&queue};
  ASSERT_TRUE(run(call.a, call.options));
  EXPECT_EQ(notes.kept.bytes, 192);
  EXPECT_EQ(notes.kept.zeroed, 64);
  EXPECT_EQ(notes.device, kGpu);
  EXPECT_EQ(notes.stream.handle, &queue);
  EXPECT_EQ(notes.workspace.data(), kept_memory.data());
}

TEST(DeviceCalls, on_a_captured_stream_need_a_workspace_and_say_so) {
  DeviceCall call;
  call.options.stream = kCapturedStream;
  const Status status = run(call.a, call.options);
  EXPECT_EQ(status.code(), StatusCode::kStreamCapturing);
  EXPECT_EQ(status.field(), "stream");
  EXPECT_EQ(notes.runs, 0);
  const Result<Plan> planned = plan(call.a, call.options);
  EXPECT_TRUE(run(*planned, call.a, kept_memory, kCapturedStream));
}

TEST(KeptWorkspaces, are_released_on_every_back_end) {
  const DeviceCall call;
  EXPECT_TRUE(release_workspaces());
  EXPECT_EQ(notes.releases, 1);
}

TEST(DeviceCalls, that_fail_to_launch_answer_with_a_status) {
  DeviceCall call;
  call.a.softmax_scale = 13.0F;
  const Status status = run(call.a, call.options);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("the launch failed"), std::string::npos);
}

// --- plans that run(attention, options) keeps

// Runs a test on a thread that has kept no plan yet.
template <class Body>
void on_new_thread(const Body& body) {
  std::thread(body).join();
}

// Runs `call` and says how many plans that took.
int plans_for(const DeviceCall& call) {
  const int before = notes.plans;
  const Status status = run(call.a, call.options);
  EXPECT_TRUE(status) << status.message();
  return notes.plans - before;
}

// A kept plan serves what a plan serves: a field that it does not depend on may change.
TEST(KeptPlans, serve_calls_that_differ_in_pointers_scales_and_streams) {
  on_new_thread([] {
    DeviceCall call;
    EXPECT_EQ(plans_for(call), 1);
    EXPECT_EQ(plans_for(call), 0);
    int queue = 0;
    call.options.stream = Stream{&queue};
    call.options.checks_indices = false;
    call.a.softmax_scale = 0.5F;
    call.a.lse_base = LogBase::k2;
    for (ConstTensor* t : {&call.a.q, &call.paged().k, &call.paged().v}) shift(*t, 4096);
    shift(call.a.out, 4096);
    const std::vector<int32_t> elsewhere(4);
    call.a.cu_seqlens_q = {elsewhere.data(), 4, kGpu};
    EXPECT_EQ(plans_for(call), 0);
    EXPECT_EQ(notes.runs, 3);
    EXPECT_EQ(notes.stream.handle, &queue);
  });
}

struct Change {
  const char* field;
  void (*apply)(DeviceCall& call);
};

class OneWorker final : public Executor {
 public:
  [[nodiscard]] int32_t workers() const override { return 1; }
  void parallel(int32_t n, void (*body)(void*, int32_t), void* context) override {
    for (int32_t i = 0; i < n; ++i) body(context, i);
  }
};

// Every property of a call and every option that a kernel's plan may depend on.
TEST(KeptPlans, serve_no_call_that_differs_in_a_field_that_decides) {
  static OneWorker executor;
  const Change changes[] = {
      {"q.dtype",
       [](DeviceCall& c) {
         c.a.q = input({40, 4, 64}, DType::kF16);
         c.paged().k = c.paged().v = input({100, 16, 2, 64}, DType::kF16);
       }},
      {"total_q",
       [](DeviceCall& c) {
         c.a.q = input({41, 4, 64});
         c.a.out = output({41, 4, 64}, DType::kBF16, 1);
         c.a.lse = output({41, 4}, DType::kF32, 2);
       }},
      {"num_q_heads",
       [](DeviceCall& c) {
         c.a.q = input({40, 6, 64});
         c.a.out = output({40, 6, 64}, DType::kBF16, 1);
         c.a.lse = output({40, 6}, DType::kF32, 2);
       }},
      {"q.strides[0]", [](DeviceCall& c) { c.a.q.strides[0] = 512; }},
      {"q.strides[1]",
       [](DeviceCall& c) {
         c.a.q.strides = {64, 2560, 1};
       }},
      {"q.data", [](DeviceCall& c) { shift(c.a.q, 2); }},
      {"q.device",
       [](DeviceCall& c) {
         for (ConstTensor* t : {&c.a.q, &c.paged().k, &c.paged().v}) t->device = kOtherGpu;
         c.a.out.device = c.a.lse.device = kOtherGpu;
         c.a.cu_seqlens_q = nowhere<int32_t>(4, kOtherGpu);
         auto& table = std::get<BlockTable>(c.paged().table);
         table.seqlens_kv = nowhere<int32_t>(3, kOtherGpu);
         table.pages.device = kOtherGpu;
       }},
      {"batch",
       [](DeviceCall& c) {
         c.a.cu_seqlens_q = nowhere<int32_t>(3);
         c.paged().table =
             BlockTable{MatrixView<int32_t>::contiguous(nowhere<const int32_t>(), 2, 8, kGpu),
                        nowhere<int32_t>(2)};
       }},
      {"padded q",
       [](DeviceCall& c) {
         c.a.q = input({3, 40, 4, 64});
         c.a.cu_seqlens_q = {};
         c.a.out = output({3, 40, 4, 64}, DType::kBF16, 1);
         c.a.lse = {};
       }},
      {"max_seqlen_q", [](DeviceCall& c) { c.a.max_seqlen_q = 30; }},
      {"max_seqlen_kv", [](DeviceCall& c) { c.a.max_seqlen_kv = 100; }},
      {"seqlens_q", [](DeviceCall& c) { c.a.seqlens_q = nowhere<int32_t>(3); }},
      {"cache_lengths", [](DeviceCall& c) { c.a.cache_lengths = nowhere<int32_t>(3); }},
      {"leftpad_kv", [](DeviceCall& c) { c.a.leftpad_kv = nowhere<int32_t>(3); }},
      {"out.dtype",
       [](DeviceCall& c) {
         c.a.out = output({40, 4, 64}, DType::kF32, 1);
       }},
      {"out.strides[0]", [](DeviceCall& c) { c.a.out.strides[0] = 512; }},
      {"lse", [](DeviceCall& c) { c.a.lse = {}; }},
      {"lse.strides",
       [](DeviceCall& c) {
         c.a.lse.strides = {1, 40};
       }},
      {"row_max",
       [](DeviceCall& c) {
         c.a.row_max = output({40, 4}, DType::kF32, 3);
       }},
      {"sinks", [](DeviceCall& c) { c.a.sinks = nowhere<float>(4); }},
      {"softcap", [](DeviceCall& c) { c.a.score_mod.softcap = 30; }},
      {"alibi", [](DeviceCall& c) { c.a.score_mod.alibi_slopes = nowhere<float>(4); }},
      {"kv.k.dtype",
       [](DeviceCall& c) {
         c.paged().k = c.paged().v = input({100, 16, 2, 64}, DType::kF8E4M3);
       }},
      {"head_dim_vo",
       [](DeviceCall& c) {
         c.paged().v = input({100, 16, 2, 32});
         c.a.out = output({40, 4, 32}, DType::kBF16, 1);
       }},
      {"num_pages",
       [](DeviceCall& c) {
         c.paged().k = c.paged().v = input({50, 16, 2, 64});
       }},
      {"page_size",
       [](DeviceCall& c) {
         c.paged().k = c.paged().v = input({100, 8, 2, 64});
       }},
      {"kv.layout",
       [](DeviceCall& c) {
         c.paged().k = c.paged().v = input({100, 2, 16, 64});
         c.paged().layout = PageLayout::kHND;
       }},
      {"kv.k.data", [](DeviceCall& c) { shift(c.paged().k, 2); }},
      {"kv.v.data", [](DeviceCall& c) { shift(c.paged().v, 8); }},
      {"kv.k.strides[0]", [](DeviceCall& c) { c.paged().k.strides[0] = 4096; }},
      {"kv.v.strides[1]", [](DeviceCall& c) { c.paged().v.strides[1] = 130; }},
      {"block table",
       [](DeviceCall& c) {
         c.paged().table = CsrPages{.indptr = nowhere<int32_t>(4),
                                    .indices = nowhere<int32_t>(24),
                                    .last_page_len = nowhere<int32_t>(3)};
       }},
      {"kv",
       [](DeviceCall& c) {
         const ConstTensor rows = input({300, 2, 64});
         c.a.kv = RaggedKV{.k = rows, .v = rows, .cu_seqlens_kv = nowhere<int32_t>(4)};
       }},
      {"k_per_head", [](DeviceCall& c) { c.a.kv_scales.k_per_head = input({2}, DType::kF32); }},
      {"v_per_head", [](DeviceCall& c) { c.a.kv_scales.v_per_head = input({2}, DType::kF32); }},
      {"mask", [](DeviceCall& c) { c.a.mask = Mask::none(); }},
      {"mask.window", [](DeviceCall& c) { c.a.mask = Mask::window(10, 0); }},
      {"mask.window.left", [](DeviceCall& c) { c.a.mask = Mask::window(11, 0); }},
      {"mask.chunk", [](DeviceCall& c) { c.a.mask = Mask::chunked(16); }},
      {"mask.tensor",
       [](DeviceCall& c) {
         c.a.mask = Mask::causal() & Mask::relative_bias(input({4, 9}, DType::kF32));
       }},
      {"mask.tensor.shape",
       [](DeviceCall& c) {
         c.a.mask = Mask::causal() & Mask::relative_bias(input({4, 11}, DType::kF32));
       }},
      {"kernel", [](DeviceCall& c) { c.options.kernel = "notes"; }},
      {"executor", [](DeviceCall& c) { c.options.executor = &executor; }},
      {"is_batch_invariant", [](DeviceCall& c) { c.options.is_batch_invariant = true; }},
      {"schedule", [](DeviceCall& c) { c.options.schedule = Schedule::kQueue; }},
      {"num_kv_splits", [](DeviceCall& c) { c.options.num_kv_splits = 3; }},
  };
  for (const Change& change : changes) {
    on_new_thread([&] {
      SCOPED_TRACE(change.field);
      DeviceCall base, changed;
      EXPECT_EQ(plans_for(base), 1);
      change.apply(changed);
      EXPECT_EQ(plans_for(changed), 1);
      EXPECT_EQ(plans_for(base), 0) << "both are kept";
      EXPECT_EQ(plans_for(changed), 0) << "both are kept";
    });
  }
}

// Two paddings of the same lengths are one interval, which kernels without mask programs serve.
TEST(DeviceCalls, of_one_plan_have_equal_paddings_where_it_had_some) {
  const ArrayView<int32_t> one = nowhere<int32_t>(3), other{one.data() + 16, 3, kGpu},
                           third{one.data() + 32, 3, kGpu};
  const auto with = [](const ArrayView<int32_t>& first, const ArrayView<int32_t>& second) {
    DeviceCall call;
    call.a.mask = Mask::padding(first) & Mask::padding(second);
    return call;
  };
  const DeviceCall equal = with(one, one), different = with(one, other);
  const Result<Plan> of_equal = plan(equal.a, equal.options);
  const Result<Plan> of_different = plan(different.a, different.options);
  ASSERT_TRUE(of_equal && of_different);
  EXPECT_TRUE(run(*of_equal, with(other, other).a, kept_memory));
  EXPECT_TRUE(run(*of_different, with(third, one).a, kept_memory));
  EXPECT_EQ(run(*of_equal, different.a, kept_memory).field(), "mask.first_with_its_lengths");
  EXPECT_EQ(run(*of_different, equal.a, kept_memory).field(), "mask.first_with_its_lengths");
  on_new_thread([&] {
    EXPECT_EQ(plans_for(equal), 1);
    EXPECT_EQ(plans_for(different), 1) << "the kept plan of the other does not serve it";
  });
}

TEST(KeptPlans, that_were_used_longest_ago_make_room) {
  on_new_thread([] {
    DeviceCall call;
    const auto plans_of = [&](int32_t begin, int32_t end) {
      int plans = 0;
      for (call.a.max_seqlen_kv = begin; call.a.max_seqlen_kv < end; ++call.a.max_seqlen_kv) {
        plans += plans_for(call);
      }
      return plans;
    };
    constexpr auto kMost = static_cast<int32_t>(engine::kMaxKeptPlans);
    EXPECT_EQ(plans_of(1, 1 + kMost), kMost);
    EXPECT_EQ(plans_of(1, 2), 0);
    EXPECT_EQ(plans_of(50, 51), 1) << "in the place of 2";
    EXPECT_EQ(plans_of(1, 2), 0);
    EXPECT_EQ(plans_of(2, 3), 1);
  });
}

TEST(KeptPlans, are_not_made_of_calls_that_no_kernel_serves) {
  DeviceCall call;
  call.options.kernel = "notes";
  call.options.num_kv_splits = 129;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(call.a, call.options).field(), "num_kv_splits");
  EXPECT_EQ(notes.plans, 0);
}

TEST(DeviceStates, go_to_the_back_end_unread) {
  const DeviceCall call;
  AppendKV append = valid_append();
  int queue = 0;
  Options options = call.options;
  options.stream = Stream{&queue};
  Status status = append_kv(append, options);
  EXPECT_TRUE(status) << status.message();
  EXPECT_EQ(notes.appends, 1);
  EXPECT_EQ(notes.stream.handle, &queue);
  append.v_cache.device = kOtherGpu;
  EXPECT_EQ(append_kv(append, options).message(),
            "v_cache.device is cuda:1; must be cuda:0, the device of k_new");
  append = valid_append();
  const std::vector<int64_t> slots(5);
  append.slot_mapping = slots;
  EXPECT_EQ(append_kv(append, options).field(), "slot_mapping.device");
  MergeStates merge;
  merge.partial_out = input({2, 5, 4, 64});
  merge.partial_lse = input({2, 5, 4}, DType::kF32);
  merge.out = output({5, 4, 64}, DType::kBF16, 1);
  status = merge_states(merge, options);
  EXPECT_TRUE(status) << status.message();
  merge.partial_lse.device = Device{};
  EXPECT_EQ(merge_states(merge, options).field(), "partial_lse.device");
  merge.partial_lse.device = kGpu;
  merge.partial_lse.data = &kData;
  EXPECT_EQ(merge_states(merge, options).message(),
            "partial_lse.data is on the moon; must be on cuda:0");
  EXPECT_EQ(notes.appends + notes.merges, 2);
}

// The maxima of a call on host memory, which are compared with the lengths: 3 and 2 rows, 10 keys.
TEST(HostCalls, have_the_promised_bounds_or_the_longest_lengths) {
  std::array<float, 80> memory{}, out{};
  const std::array<int32_t, 3> offsets{0, 3, 5};
  const std::array<int32_t, 2> lengths{4, 5};
  Attention a;
  a.q = ConstTensor::contiguous(memory.data(), DType::kF32, {5, 1, 8});
  a.cu_seqlens_q = offsets;
  const ConstTensor keys = ConstTensor::contiguous(memory.data(), DType::kF32, {2, 5, 1, 8});
  a.kv = DenseKV{.k = keys, .v = keys, .seqlens_kv = lengths};
  a.out = Tensor::contiguous(out.data(), DType::kF32, {5, 1, 8});
  const auto bounds = [&] {
    const Result<core::Problem> p = engine::validate(a, {});
    EXPECT_TRUE(p) << p.status().message();
    EXPECT_EQ(p->max_seqlen_q, 3);
    EXPECT_TRUE(p->has_host_lengths);
    return std::pair(p->max_seqlen_q_bound, p->max_seqlen_kv_bound);
  };
  EXPECT_EQ(bounds(), std::pair(3, 5));
  a.max_seqlen_q = 8;
  a.max_seqlen_kv = 100;
  EXPECT_EQ(bounds(), std::pair(8, 100));
}

}  // namespace
}  // namespace pagoda
