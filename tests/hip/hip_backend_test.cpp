// The HIP back end on a fake HIP runtime (fake_hip.hpp) with the devices gfx942, gfx90a, gfx942:
// what it launches and where, its messages, its memory and its kept workspaces.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <optional>

#include "backends/hip/backend.hpp"
#include "fake_hip.hpp"
#include "kernels/append_kv/append_kv_params.hpp"
#include "kernels/merge_states/merge_states_params.hpp"
#include "kernels/padding_rows/padding_rows_params.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::hip_tests {
namespace {

constexpr Device kFirst{DeviceType::kHip, 0}, kOther{DeviceType::kHip, 1},
    kThird{DeviceType::kHip, 2};

// Memory of a device, freed at the end.
class OnDevice {
 public:
  OnDevice(Device device, int64_t bytes)
      : space_(hip::backend().memory_space(device)), data_(space_.allocate(bytes)) {}
  ~OnDevice() { space_.release(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  core::MemorySpace& space_;
  std::byte* data_;
};

class HipBackend : public testing::Test {
 protected:
  void SetUp() override {
    static_cast<void>(take_launches());
    static_cast<void>(take_calls());
  }
  void TearDown() override {
    EXPECT_EQ(fault(), "");
    EXPECT_EQ(current_device(), 0);
  }

  Options options_{.backend = "hip"};
};

constexpr int64_t kTokens = 5, kHeads = 2, kDim = 64, kPages = 3, kPageSize = 4;

// bf16 rows to a bf16 cache.
struct AppendCall {
  explicit AppendCall(Device device)
      : rows(device, 2 * kTokens * kHeads * kDim),
        k_cache(device, 2 * kPages * kPageSize * kHeads * kDim),
        v_cache(device, 2 * kPages * kPageSize * kHeads * kDim),
        slots(device, 8 * kTokens) {
    const auto fresh =
        ConstTensor::contiguous(rows.as<void>(), DType::kBF16, {kTokens, kHeads, kDim}, device);
    const auto pages = [&](const OnDevice& memory) {
      return Tensor::contiguous(memory.as<void>(), DType::kBF16, {kPages, kPageSize, kHeads, kDim},
                                device);
    };
    call = {.k_new = fresh,
            .v_new = fresh,
            .slot_mapping = {slots.as<const int64_t>(), kTokens, device},
            .k_cache = pages(k_cache),
            .v_cache = pages(v_cache)};
  }

  OnDevice rows, k_cache, v_cache, slots;
  AppendKV call;
};

struct MergeCall {
  explicit MergeCall(Device device)
      : parts(device, 4 * kParts * kTokens * kHeads * kDim),
        lses(device, 4 * kParts * kTokens * kHeads),
        out(device, 4 * kTokens * kHeads * kDim) {
    call.partial_out = ConstTensor::contiguous(parts.as<void>(), DType::kF32,
                                               {kParts, kTokens, kHeads, kDim}, device);
    call.partial_lse =
        ConstTensor::contiguous(lses.as<void>(), DType::kF32, {kParts, kTokens, kHeads}, device);
    call.out = Tensor::contiguous(out.as<void>(), DType::kF32, {kTokens, kHeads, kDim}, device);
  }

  static constexpr int64_t kParts = 3;
  OnDevice parts, lses, out;
  MergeStates call;
};

template <class Params>
void expect_params(const RecordedLaunch& launch, const Params& params) {
  ASSERT_EQ(launch.params.size(), sizeof params);
  EXPECT_EQ(std::memcmp(launch.params.data(), &params, sizeof params), 0);
}

TEST_F(HipBackend, names_its_devices) {
  EXPECT_EQ(hip::backend().unavailable_reason(), "");
  EXPECT_EQ(hip::backend().description(),
            "AMD Instinct MI300X (gfx942), AMD Instinct MI250X (gfx90a) without code, "
            "AMD Instinct MI300X (gfx942), HIP 6.2");
}

TEST_F(HipBackend, append_kv_launches_its_kernel) {
  const AppendCall append(kThird);
  void* stream = create_stream();
  options_.stream = Stream{stream};
  const Status status = append_kv(append.call, options_);
  ASSERT_TRUE(status) << status.message();
  const std::vector<RecordedLaunch> launches = take_launches();
  ASSERT_EQ(launches.size(), 1U);
  const RecordedLaunch& launch = launches[0];
  const kernels::AppendKVParams params = kernels::make_params(append.call);
  EXPECT_EQ(launch.symbol, "pagoda_append_kv");
  EXPECT_EQ(launch.device, 2);
  EXPECT_EQ(launch.stream, stream);
  EXPECT_EQ(static_cast<int32_t>(launch.grid[0]), kernels::grid_of(params).x);
  EXPECT_EQ(launch.grid[1] * launch.grid[2], 1U);
  EXPECT_EQ(launch.block[0], 256U);
  EXPECT_EQ(launch.block[1] * launch.block[2], 1U);
  EXPECT_EQ(launch.dynamic_lds_bytes + launch.static_lds_bytes, 0U);
  EXPECT_EQ(launch.scratch_bytes, 0U);
  expect_params(launch, params);
  destroy_stream(stream);
}

TEST_F(HipBackend, merge_states_launches_its_kernel) {
  const MergeCall merge(kFirst);
  const Status status = merge_states(merge.call, options_);
  ASSERT_TRUE(status) << status.message();
  const std::vector<RecordedLaunch> launches = take_launches();
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_EQ(launches[0].symbol, "pagoda_merge_states");
  EXPECT_EQ(launches[0].device, 0);
  EXPECT_EQ(launches[0].stream, nullptr);
  EXPECT_EQ(launches[0].grid[0], (kTokens * kHeads + 3U) / 4U);
  EXPECT_EQ(launches[0].block[0], 256U);  // four rows, a wavefront each
  EXPECT_EQ(launches[0].scratch_bytes, 0U);
  expect_params(launches[0], kernels::make_params(merge.call));
}

TEST_F(HipBackend, zero_padding_rows_launches_its_kernel) {
  const OnDevice offsets(kThird, 8), out(kThird, 2 * 5 * kHeads * kDim);
  core::Problem problem;
  problem.device = kThird;
  problem.batch = 1;
  problem.is_ragged = true;
  problem.total_q = 5;
  problem.num_q_heads = kHeads;
  problem.head_dim_vo = kDim;
  problem.cu_seqlens_q = {offsets.as<const int32_t>(), 2};
  problem.out = {out.as<void>(), DType::kBF16, 0, kHeads * kDim, kDim};
  hip::backend().zero_padding_rows(problem, {});
  const std::vector<RecordedLaunch> launches = take_launches();
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_EQ(launches[0].symbol, "pagoda_padding_rows");
  EXPECT_EQ(launches[0].device, 2);
  EXPECT_EQ(launches[0].grid[0], 5U);
  EXPECT_EQ(launches[0].block[0], 128U);
  EXPECT_EQ(launches[0].scratch_bytes, 0U);
  expect_params(launches[0], kernels::make_padding_rows_params(problem));
}

TEST_F(HipBackend, code_is_loaded_once_for_each_device) {
  const AppendCall first(kFirst), third(kThird);
  for (const AppendKV& call : {first.call, third.call}) ASSERT_TRUE(append_kv(call, options_));
  static_cast<void>(take_calls());
  for (const AppendKV& call : {first.call, third.call}) ASSERT_TRUE(append_kv(call, options_));
  for (const std::string& call : take_calls()) {
    EXPECT_NE(call, "hipModuleLoadData");
    EXPECT_NE(call, "hipModuleGetFunction");
  }
  const std::vector<RecordedLaunch> launches = take_launches();
  ASSERT_EQ(launches.size(), 4U);
  EXPECT_EQ(launches[2].device, 0);
  EXPECT_EQ(launches[3].device, 2);
}

TEST_F(HipBackend, nothing_to_do_launches_nothing) {
  AppendCall append(kFirst);
  append.call.k_new.shape[0] = append.call.v_new.shape[0] = 0;
  append.call.slot_mapping = {};
  const Status status = append_kv(append.call, options_);
  EXPECT_TRUE(status) << status.message();
  EXPECT_TRUE(take_launches().empty());
}

TEST_F(HipBackend, a_device_without_code_is_named) {
  AppendCall append(kFirst);
  for (ConstTensor* t : {&append.call.k_new, &append.call.v_new}) t->device = kOther;
  for (Tensor* t : {&append.call.k_cache, &append.call.v_cache}) t->device = kOther;
  append.call.slot_mapping = {append.call.slot_mapping.data(), append.call.slot_mapping.size(),
                              kOther};
  const Status status = append_kv(append.call, options_);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.field(), "k_new.device");
  EXPECT_EQ(status.message(),
            "k_new.device: AMD Instinct MI250X is gfx90a, this build holds gfx942");
  EXPECT_THROW(static_cast<void>(hip::backend().memory_space(kOther)), std::runtime_error);
  EXPECT_TRUE(take_launches().empty());
}

TEST_F(HipBackend, a_device_that_does_not_exist_is_named) {
  MergeCall merge(kFirst);
  const Device beyond{DeviceType::kHip, 7};
  merge.call.partial_out.device = merge.call.partial_lse.device = merge.call.out.device = beyond;
  const Status status = merge_states(merge.call, options_);
  EXPECT_EQ(status.message(), "partial_out.device: there is no hip:7, this machine has 3 devices");
  EXPECT_TRUE(take_launches().empty());
}

TEST_F(HipBackend, tensors_of_other_memory_are_named) {
  AppendCall append(kFirst);
  append.call.v_cache.device = {};
  EXPECT_EQ(append_kv(append.call, options_).message(),
            "v_cache.device is cpu; back end hip reads device memory (hip)");
  append.call.v_cache.device = kThird;
  EXPECT_EQ(append_kv(append.call, options_).message(),
            "v_cache.device is hip:2; must be hip:0, the device of k_new");
  append.call.v_cache.device = {DeviceType::kCuda, 0};
  EXPECT_EQ(append_kv(append.call, options_).message(),
            "v_cache.device is cuda:0; back end hip reads device memory (hip)");
  EXPECT_TRUE(take_launches().empty());
}

TEST_F(HipBackend, checked_mode_finds_pointers_to_other_memory) {
  AppendCall append(kFirst);
  const AppendCall elsewhere(kThird);
  options_.checks_indices = true;
  ASSERT_TRUE(append_kv(append.call, options_));
  const std::vector<int64_t> slots(kTokens);
  const ArrayView<int64_t> claimed(slots.data(), kTokens, kFirst);
  append.call.slot_mapping = claimed;
  EXPECT_EQ(append_kv(append.call, options_).message(),
            "slot_mapping.data is host memory; must be on hip:0");
  append.call.slot_mapping = {elsewhere.call.slot_mapping.data(), kTokens, kFirst};
  EXPECT_EQ(append_kv(append.call, options_).message(),
            "slot_mapping.data is on hip:2; must be on hip:0");
  // As runtimes before ROCm 6.2 answer for memory that they do not know.
  append.call.slot_mapping = claimed;
  append.call.k_new.data = slots.data();
  fail("hipPointerGetAttributes", 1);
  EXPECT_EQ(append_kv(append.call, options_).message(),
            "k_new.data is host memory; must be on hip:0");
  EXPECT_EQ(take_launches().size(), 1U);
}

TEST_F(HipBackend, errors_of_the_runtime_are_named_and_the_next_call_runs) {
  const MergeCall merge(kFirst);
  ASSERT_TRUE(merge_states(merge.call, options_));
  fail("hipModuleLaunchKernel", 719);
  const Status status = merge_states(merge.call, options_);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("launching merge_states: hipErrorLaunchFailure, unspecified "
                                  "launch failure"),
            std::string::npos)
      << status.message();
  EXPECT_TRUE(merge_states(merge.call, options_));
  fail("hipMalloc", 2);
  EXPECT_THROW(static_cast<void>(hip::backend().memory_space(kFirst).allocate(64)), std::bad_alloc);
}

// In a program of its own, before anything has been loaded (CMakeLists.txt).
TEST_F(HipBackend, code_that_did_not_load_is_loaded_again) {
  const AppendCall append(kFirst);
  fail("hipModuleLoadData", 200);
  const Status status = append_kv(append.call, options_);
  EXPECT_NE(status.message().find("loading the code of append_kv for gfx942: hipErrorInvalidImage"),
            std::string::npos)
      << status.message();
  EXPECT_TRUE(append_kv(append.call, options_));
  EXPECT_EQ(take_launches().size(), 1U);
}

TEST_F(HipBackend, its_memory_is_filled_copied_and_timed) {
  core::MemorySpace& space = hip::backend().memory_space(kThird);
  EXPECT_EQ(space.device(), kThird);
  const core::SpaceFacts facts = space.facts();
  EXPECT_EQ(facts.name, "AMD Instinct MI300X");
  EXPECT_EQ(facts.driver, "HIP 6.2");
  EXPECT_EQ(facts.num_multiprocessors, 304);
  EXPECT_EQ(facts.l2_bytes, 4 << 20);
  EXPECT_EQ(facts.memory_bytes, int64_t{192} << 30);
  const size_t before = num_allocations();
  const int64_t free_before = space.free_bytes();
  std::byte* const memory = space.allocate(512);
  EXPECT_EQ(space.free_bytes(), free_before - 512);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0U);
  std::vector<std::byte> host(256), back(512);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::byte>(i);
  space.copy_in(memory, host.data(), 256);
  space.copy_within(memory + 256, memory, 128);
  space.fill(memory + 384, std::byte{7}, 128);
  space.wait();
  space.copy_out(back.data(), memory, 512);
  EXPECT_TRUE(std::equal(host.begin(), host.end(), back.begin()));
  EXPECT_TRUE(std::equal(host.begin(), host.begin() + 128, back.begin() + 256));
  EXPECT_EQ(std::count(back.begin() + 384, back.end(), std::byte{7}), 128);
  int launches = 0;
  const std::vector<double> seconds = space.time(3, [&] { ++launches; });
  ASSERT_EQ(seconds.size(), 3U);
  for (const double each : seconds) EXPECT_NEAR(each, 1e-6, 1e-9);
  EXPECT_EQ(launches, 3);
  space.release(memory);
  EXPECT_EQ(num_allocations(), before + 1);  // what flushes the L2 cache
  EXPECT_EQ(&hip::backend().memory_space(kThird), &space);
}

std::span<std::byte> keep(core::WorkspaceSize size, void* stream = nullptr) {
  return hip::backend().keep_workspace(size, kFirst, Stream{stream}).value();
}

TEST_F(HipBackend, zeros_of_a_kept_workspace_survive_the_scratch_of_other_plans) {
  for (const core::WorkspaceSize size : {core::WorkspaceSize{.bytes = 1024, .zeroed = 512},
                                         {.bytes = 576, .zeroed = 64},
                                         {.bytes = 640, .zeroed = 512},
                                         {.bytes = 1 << 20, .zeroed = 1024},
                                         {.bytes = 3000, .zeroed = 64},
                                         {.bytes = 2000, .zeroed = 1024}}) {
    const std::span<std::byte> all = keep(size);
    ASSERT_EQ(all.size(), static_cast<size_t>(size.bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(all.data()) % 64, 0U);
    const auto zeroed = static_cast<size_t>(size.zeroed);
    for (const std::byte b : all.first(zeroed)) ASSERT_EQ(b, std::byte{0});
    std::memset(all.data() + zeroed, 0xff, all.size() - zeroed);
  }
}

TEST_F(HipBackend, streams_have_workspaces_of_their_own) {
  const core::WorkspaceSize size{.bytes = 4096, .zeroed = 64};
  void* stream = create_stream();
  std::byte* const first = keep(size).data();
  std::byte* const second = keep(size, stream).data();
  EXPECT_NE(first, second);
  EXPECT_EQ(keep(size).data(), first);
  EXPECT_EQ(keep(size, stream).data(), second);
  std::memset(second, 0xff, 64);
  destroy_stream(stream);
  void* reused = create_stream();
  EXPECT_EQ(reused, stream);
  // Another stream with the same handle: a new workspace, perhaps at the same address.
  for (const std::byte b : keep(size, reused).first(64)) EXPECT_EQ(b, std::byte{0});
  destroy_stream(reused);
}

TEST_F(HipBackend, workspaces_are_bounded_and_released) {
  ASSERT_TRUE(release_workspaces());
  const core::WorkspaceSize size{.bytes = 4096, .zeroed = 64};
  const size_t before = num_allocations();
  std::vector<void*> streams;
  for (int i = 0; i < 64; ++i) {
    streams.push_back(create_stream());
    static_cast<void>(keep(size, streams.back()));
  }
  EXPECT_EQ(num_allocations(), before + 16);
  std::byte* const last = keep(size, streams.back()).data();
  std::byte* const larger = keep({.bytes = 1 << 20, .zeroed = 64}, streams.back()).data();
  EXPECT_NE(last, larger);
  EXPECT_EQ(num_allocations(), before + 16) << "outgrown memory is freed";
  set_captured(true);
  static_cast<void>(keep(size, streams.back()));
  set_captured(false);
  static_cast<void>(keep({.bytes = 2 << 20, .zeroed = 64}, streams.back()));
  EXPECT_EQ(num_allocations(), before + 17) << "a graph may use it";
  ASSERT_TRUE(release_workspaces());
  EXPECT_EQ(num_allocations(), before);
  for (void* stream : streams) destroy_stream(stream);
}

TEST_F(HipBackend, a_captured_call_does_not_grow_its_workspace) {
  void* stream = create_stream();
  std::byte* const before = keep({.bytes = 4096, .zeroed = 64}, stream).data();
  set_captured(true);
  EXPECT_EQ(keep({.bytes = 4096, .zeroed = 64}, stream).data(), before);
  const auto larger =
      hip::backend().keep_workspace({.bytes = 1 << 20, .zeroed = 64}, kFirst, Stream{stream});
  EXPECT_EQ(larger.status().code(), StatusCode::kStreamCapturing);
  set_captured(false);
  destroy_stream(stream);
}

TEST_F(HipBackend, a_workspace_that_can_not_be_cleared_is_freed) {
  void* stream = create_stream();
  const size_t before = num_allocations();
  fail("hipMemsetAsync", 719);
  EXPECT_THROW(keep({.bytes = 4096, .zeroed = 64}, stream), std::runtime_error);
  EXPECT_EQ(num_allocations(), before);
  destroy_stream(stream);
}

// With the attention families of this build: those of AMD GPUs alone.
TEST_F(HipBackend, attention_runs_or_says_why_not) {
  const OnDevice q(kFirst, 2 * 4 * kHeads * 128), out(kFirst, 2 * 4 * kHeads * 128),
      kv(kFirst, 2 * 64 * kHeads * 128);
  Attention a;
  a.q = ConstTensor::contiguous(q.as<void>(), DType::kBF16, {1, 4, kHeads, 128}, kFirst);
  a.out = Tensor::contiguous(out.as<void>(), DType::kBF16, {1, 4, kHeads, 128}, kFirst);
  const auto keys =
      ConstTensor::contiguous(kv.as<void>(), DType::kBF16, {1, 64, kHeads, 128}, kFirst);
  a.kv = DenseKV{.k = keys, .v = keys};
  const Status status = run(a, options_);
  if (hip::backend().kernels().empty()) {
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("has no kernels"), std::string::npos) << status.message();
    return;
  }
  ASSERT_TRUE(status) << status.message();
  const std::vector<RecordedLaunch> launches = take_launches();
  ASSERT_FALSE(launches.empty());
  for (const RecordedLaunch& launch : launches) {
    EXPECT_EQ(launch.scratch_bytes, 0U);
    EXPECT_LE(launch.static_lds_bytes, 65536U);
    EXPECT_EQ(launch.block[0] % 64, 0U);
  }
}

}  // namespace
}  // namespace pagoda::hip_tests
