// The CUDA back end: its messages without a GPU; with one, append_kv, merge_states, kept
// workspaces and errors. Tests that need a GPU are skipped on machines without one.
#include <cstring>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "arch/ptx/device.hpp"
#include "backends/cuda/backend.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/kept_workspace.hpp"
#include "core/element.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::cuda {
namespace {

constexpr Device kGpu{DeviceType::kCuda, 0};
const Options kOptions{.backend = "cuda"};

TEST(CudaErrors, become_exceptions_that_name_call_and_error) {
  EXPECT_NO_THROW(arch::check(cudaSuccess, "nothing"));
  EXPECT_THROW(arch::check(cudaErrorMemoryAllocation, "allocating"), std::bad_alloc);
  try {
    arch::check(cudaErrorInvalidValue, "launching a test");
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("launching a test: cudaErrorInvalidValue"),
              std::string::npos)
        << e.what();
  }
}

TEST(CudaDevices, the_back_end_runs_or_says_why_not) {
  if (arch::devices().empty()) {
    EXPECT_FALSE(unavailable_reason().empty());
    EXPECT_NE(unsupported_reason(kGpu).find("there is no cuda:0"), std::string::npos);
  } else {
    EXPECT_FALSE(description().empty());
    EXPECT_GT(arch::devices()[0].num_sms, 0);
    EXPECT_FALSE(unsupported_reason({DeviceType::kCuda, 1000}).empty());
  }
}

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!unavailable_reason().empty()) GTEST_SKIP() << unavailable_reason();
    arch::check(cudaStreamCreate(&stream_), "creating a stream");
    options_.stream = Stream{stream_};
  }
  void TearDown() override {
    for (void* p : memory_) static_cast<void>(cudaFree(p));
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }
  template <typename T>
  T* upload(const std::vector<T>& values) {
    void* p = nullptr;
    arch::check(cudaMalloc(&p, values.size() * sizeof(T)), "allocating");
    memory_.push_back(p);
    arch::check(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
                "copying");
    return static_cast<T*>(p);
  }
  template <typename T>
  std::vector<T> download(const T* p, size_t count) {
    std::vector<T> values(count);
    arch::check(cudaStreamSynchronize(stream_), "waiting");
    arch::check(cudaMemcpy(values.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost), "copying");
    return values;
  }

  cudaStream_t stream_ = nullptr;
  Options options_ = kOptions;
  std::vector<void*> memory_;
};

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& x : values) x = normal(random);
  return values;
}

TEST_F(OnGpu, append_kv_writes_the_bytes_that_the_cpu_writes) {
  constexpr int64_t kTokens = 7, kHeads = 2, kDim = 64, kPages = 3, kPageSize = 4;
  const std::vector<float> fresh = random_floats(kTokens * kHeads * kDim, 1);
  const std::vector<int64_t> slots{11, 0, -1, 5, 3, 7, 8};
  const std::vector<float> scales{0.5F, 2.0F};
  const std::vector<uint8_t> before(kPages * kPageSize * kHeads * kDim, 0x55);
  std::vector<uint8_t> k_want = before, v_want = before;
  const auto call = [&](const float* rows, const int64_t* to, const float* scale, uint8_t* k,
                        uint8_t* v, Device device) {
    AppendKV append;
    append.k_new = append.v_new =
        ConstTensor::contiguous(rows, DType::kF32, {kTokens, kHeads, kDim}, device);
    append.slot_mapping = {to, std::ssize(slots), device};
    append.layout = PageLayout::kHND;
    append.k_cache =
        Tensor::contiguous(k, DType::kF8E4M3, {kPages, kHeads, kPageSize, kDim}, device);
    append.v_cache =
        Tensor::contiguous(v, DType::kF8E4M3, {kPages, kHeads, kPageSize, kDim}, device);
    append.kv_scales.k_per_head =
        ConstTensor::contiguous(scale, DType::kF32, {std::ssize(scales)}, device);
    return append;
  };
  ASSERT_TRUE(append_kv(
      call(fresh.data(), slots.data(), scales.data(), k_want.data(), v_want.data(), Device{})));
  uint8_t *k = upload(before), *v = upload(before);
  const Status status =
      append_kv(call(upload(fresh), upload(slots), upload(scales), k, v, kGpu), options_);
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(download(k, before.size()), k_want);
  EXPECT_EQ(download(v, before.size()), v_want);
}

TEST_F(OnGpu, merge_states_agrees_with_the_cpu) {
  constexpr int64_t kParts = 3, kRows = 5, kHeads = 2, kDim = 16;
  std::vector<float> parts = random_floats(kParts * kRows * kHeads * kDim, 2);
  const std::vector<float> lses = random_floats(kParts * kRows * kHeads, 3);
  const std::vector<float> empty(kRows * kHeads * kDim, NAN);
  std::vector<float> want = empty, want_lse(kRows * kHeads, NAN);
  const auto call = [&](const float* partial, const float* partial_lse, float* out, float* lse,
                        Device device) {
    MergeStates merge;
    merge.partial_out =
        ConstTensor::contiguous(partial, DType::kF32, {kParts, kRows, kHeads, kDim}, device);
    merge.partial_lse =
        ConstTensor::contiguous(partial_lse, DType::kF32, {kParts, kRows, kHeads}, device);
    merge.out = Tensor::contiguous(out, DType::kF32, {kRows, kHeads, kDim}, device);
    merge.lse = Tensor::contiguous(lse, DType::kF32, {kRows, kHeads}, device);
    return merge;
  };
  ASSERT_TRUE(
      merge_states(call(parts.data(), lses.data(), want.data(), want_lse.data(), Device{})));
  float *out = upload(empty), *lse = upload(std::vector<float>(kRows * kHeads, NAN));
  const Status status = merge_states(call(upload(parts), upload(lses), out, lse, kGpu), options_);
  ASSERT_TRUE(status) << status.message();
  const std::vector<float> got = download(out, want.size());
  const std::vector<float> got_lse = download(lse, want_lse.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;
  for (size_t i = 0; i < got_lse.size(); ++i) ASSERT_NEAR(got_lse[i], want_lse[i], 1e-6) << i;
}

TEST_F(OnGpu, zeros_of_a_kept_workspace_survive_the_scratch_of_other_plans) {
  const auto dirty = [&](core::WorkspaceSize size) {
    const std::span<std::byte> all = *keep_workspace(size, kGpu, options_.stream);
    ASSERT_EQ(all.size(), static_cast<size_t>(size.bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(all.data()) % 64, 0U);
    const auto zeroed = static_cast<size_t>(size.zeroed);
    for (const std::byte b : download(all.data(), zeroed)) ASSERT_EQ(b, std::byte{0});
    arch::check(cudaMemsetAsync(all.data() + zeroed, 0xff, all.size() - zeroed, stream_), "dirt");
  };
  dirty({.bytes = 1024, .zeroed = 512});
  dirty({.bytes = 576, .zeroed = 64});
  dirty({.bytes = 640, .zeroed = 512});
  dirty({.bytes = 1 << 20, .zeroed = 1024});
  dirty({.bytes = 3000, .zeroed = 64});
  dirty({.bytes = 2000, .zeroed = 1024});
}

TEST_F(OnGpu, streams_have_workspaces_of_their_own) {
  cudaStream_t other = nullptr;
  arch::check(cudaStreamCreate(&other), "creating a stream");
  const core::WorkspaceSize size{.bytes = 4096, .zeroed = 64};
  const std::byte* first = keep_workspace(size, kGpu, options_.stream)->data();
  EXPECT_NE(keep_workspace(size, kGpu, Stream{other})->data(), first);
  EXPECT_EQ(keep_workspace(size, kGpu, options_.stream)->data(), first);
  arch::check(cudaStreamDestroy(other), "destroying a stream");
}

TEST_F(OnGpu, a_captured_call_does_not_grow_its_workspace) {
  const core::WorkspaceSize small{.bytes = 4096, .zeroed = 64};
  const std::byte* kept = keep_workspace(small, kGpu, options_.stream)->data();
  arch::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing");
  EXPECT_EQ(keep_workspace(small, kGpu, options_.stream)->data(), kept);
  EXPECT_EQ(keep_workspace({.bytes = 1 << 20}, kGpu, options_.stream).status().code(),
            StatusCode::kStreamCapturing);
  cudaGraph_t graph = nullptr;
  arch::check(cudaStreamEndCapture(stream_, &graph), "capturing");
  arch::check(cudaGraphDestroy(graph), "destroying a graph");
}

TEST_F(OnGpu, host_memory_is_distinguished_from_device_memory) {
  const std::vector<float> host(4);
  EXPECT_EQ(misplaced(host.data(), kGpu), "host memory");
  EXPECT_EQ(misplaced(upload(host), kGpu), "");
}

TEST_F(OnGpu, its_memory_is_filled_copied_and_timed) {
  core::MemorySpace& space = backend().memory_space(kGpu);
  EXPECT_EQ(&space, &backend().memory_space(kGpu));
  EXPECT_EQ(space.device(), kGpu);
  EXPECT_FALSE(space.facts().name.empty());
  EXPECT_GT(space.free_bytes(), 0);
  constexpr int64_t kBytes = 1 << 20;
  std::byte *a = space.allocate(kBytes), *b = space.allocate(kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0U);
  space.fill(a, std::byte{0xff}, kBytes);
  const std::vector<uint8_t> word{1, 2, 3};
  space.copy_in(a + 7, word.data(), 3);
  space.copy_within(b, a, kBytes);
  std::vector<uint8_t> got(kBytes);
  space.copy_out(got.data(), b, kBytes);
  EXPECT_EQ((std::vector<uint8_t>(got.begin() + 6, got.begin() + 11)),
            (std::vector<uint8_t>{0xff, 1, 2, 3, 0xff}));
  int launches = 0;
  const std::vector<double> seconds = space.time(5, [&] {
    ++launches;
    space.copy_within(b, a, kBytes);
  });
  EXPECT_EQ(launches, 5);
  ASSERT_EQ(seconds.size(), 5U);
  for (const double s : seconds) {
    EXPECT_GT(s, 0);
    EXPECT_LT(s, 0.01);
  }
  space.release(a);
  space.release(b);
  EXPECT_THROW(static_cast<void>(space.allocate(int64_t{1} << 50)), std::bad_alloc);
  space.wait();
  EXPECT_THROW(backend().memory_space({DeviceType::kCuda, 1000}), std::runtime_error);
}

TEST_F(OnGpu, the_current_device_is_restored) {
  const int last = static_cast<int>(arch::devices().size()) - 1;
  arch::check(cudaSetDevice(0), "choosing a device");
  {
    const arch::DeviceGuard guard(last);
    int current = -1;
    arch::check(cudaGetDevice(&current), "asking");
    EXPECT_EQ(current, last);
  }
  int current = -1;
  arch::check(cudaGetDevice(&current), "asking");
  EXPECT_EQ(current, 0);
}

}  // namespace
}  // namespace pagoda::cuda
