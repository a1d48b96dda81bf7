// Captured calls: one graph serves lengths, tables and offsets that change on the device; run()
// neither allocates nor synchronises; streams with separate workspaces do not interfere; wrong
// pointers are rejected. A plain program, so that it can be copied to a machine with a GPU: it
// prints a line per test; exit code 1 = a test failed, 77 = no GPU.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "device_batch.hpp"
#include "paged_batch.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::cuda_tests {
namespace {

constexpr int kExitSkipped = 77;

struct Test {
  const char* name;
  std::string (*run)();  // empty = passed
  bool needs_gpu = true;
};

// Eight sequences, one query each: long ones are split.
constexpr BatchShape kDecode{.batch = 8, .max_q = 1, .max_kv = 6000};

std::vector<StepLengths> decode_steps() {
  const std::vector<int32_t> one(8, 1);
  return {{one, {100, 6000, 64, 1, 2049, 777, 4096, 65}},
          {one, {101, 1, 65, 2, 2050, 778, 4097, 66}},              // one is much shorter
          {one, {6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000}},  // all at the maximum
          {one, {0, 5999, 0, 128, 0, 63, 1, 0}},                    // no keys
          {one, {100, 6000, 64, 1, 2049, 777, 4096, 65}}};          // as captured
}

// A serving step: decodes, short queries and a chunk of a prompt, in a buffer with rows to spare.
constexpr BatchShape kMixed{
    .batch = 6, .is_ragged = true, .total_q = 320, .max_q = 160, .max_kv = 1500};

std::vector<StepLengths> mixed_steps() {
  return {{{1, 100, 4, 1, 37, 1}, {700, 900, 1200, 1, 37, 1500}},
          {{1, 1, 1, 1, 1, 1}, {701, 901, 1201, 2, 38, 33}},
          {{160, 1, 0, 130, 16, 2}, {1500, 700, 0, 130, 1000, 2}},  // both longest, one empty
          {{0, 0, 5, 0, 0, 0}, {10, 0, 1500, 0, 64, 0}},            // nearly nothing
          {{160, 160, 0, 0, 0, 0}, {160, 1500, 0, 0, 0, 900}},      // the buffer is full
          {{1, 100, 4, 1, 37, 1}, {700, 900, 1200, 1, 37, 1500}}};
}

std::string with(const std::string& what, const std::string& difference) {
  return difference.empty() ? "" : what + ": " + difference;
}

// Captures the first step and replays the graph over all of them, each twice.
std::string replay_steps(const BatchShape& shape, const std::vector<StepLengths>& steps) {
  const CudaStream stream;
  DeviceBatch device(shape);
  const PagedBatch first(shape, steps[0], 1);
  device.load(first, stream);
  device.run(stream);  // loads the kernels' code, which is not allowed during a capture
  if (std::string bad = device.difference(first, stream); !bad.empty()) {
    return with("before the capture", bad);
  }
  const CudaGraph graph(stream, [&] { device.run(stream); });
  if (graph.num_nodes() == 0) return "the capture is empty";
  for (size_t i = 0; i < steps.size(); ++i) {
    const PagedBatch step(shape, steps[i], static_cast<uint32_t>(i + 10));
    for (int repeat = 0; repeat < 2; ++repeat) {
      device.load(step, stream);
      graph.replay(stream);
      if (std::string bad = device.difference(step, stream); !bad.empty()) {
        return with("replay of step " + std::to_string(i), bad);
      }
    }
  }
  return {};
}

std::string a_decode_graph_serves_lengths_that_change() {
  return replay_steps(kDecode, decode_steps());
}

std::string a_mixed_graph_serves_offsets_that_change() {
  return replay_steps(kMixed, mixed_steps());
}

std::string replays_give_the_same_bits() {
  const CudaStream stream;
  DeviceBatch device(kDecode);
  const PagedBatch step(kDecode, decode_steps()[0], 1);
  device.load(step, stream);
  device.run(stream);
  const std::vector<uint16_t> first = device.out(stream);
  const CudaGraph graph(stream, [&] { device.run(stream); });
  for (int i = 0; i < 20; ++i) {
    graph.replay(stream);
    if (device.out(stream) != first) return "replay " + std::to_string(i) + " gave other bits";
  }
  return {};
}

std::string run_allocates_nothing() {
  const CudaStream stream;
  DeviceBatch device(kMixed);
  const PagedBatch step(kMixed, mixed_steps()[0], 1);
  device.load(step, stream);
  device.run(stream);
  stream.wait();
  size_t before = 0, after = 0, total = 0;
  if (cudaMemGetInfo(&before, &total) != cudaSuccess) return "cudaMemGetInfo failed";
  for (int i = 0; i < 100; ++i) device.run(stream);
  stream.wait();
  if (cudaMemGetInfo(&after, &total) != cudaSuccess) return "cudaMemGetInfo failed";
  return after == before ? "" : std::to_string(before - after) + " bytes went in 100 runs";
}

// The stream is busy with memsets for 20 milliseconds: a run that synchronises would return after
// them.
std::string run_waits_for_nothing() {
  const CudaStream stream;
  DeviceBatch device(kDecode);
  const PagedBatch step(kDecode, decode_steps()[0], 1);
  device.load(step, stream);
  device.run(stream);
  stream.wait();
  constexpr size_t kBytes = size_t{4} << 30;
  void* p = nullptr;
  if (cudaMalloc(&p, kBytes) != cudaSuccess) return "no memory for 4 GiB";
  const DeviceArray<std::byte> large(static_cast<std::byte*>(p));
  for (int i = 0; i < 20; ++i) {
    if (cudaMemsetAsync(large.get(), i, kBytes, stream.get()) != cudaSuccess) return "memset";
  }
  device.run(stream);
  const cudaError_t state = cudaStreamQuery(stream.get());
  stream.wait();
  return state == cudaErrorNotReady ? "" : "the stream was empty when run() returned";
}

std::string two_streams_do_not_disturb_each_other() {
  const CudaStream streams[2];
  DeviceBatch decode(kDecode), mixed(kMixed);
  for (uint32_t round = 0; round < 5; ++round) {
    const PagedBatch decode_step(kDecode, decode_steps()[round % 4], round);
    const PagedBatch mixed_step(kMixed, mixed_steps()[round % 4], round);
    decode.load(decode_step, streams[0]);
    mixed.load(mixed_step, streams[1]);
    for (int i = 0; i < 20; ++i) {
      decode.run(streams[0]);
      mixed.run(streams[1]);
    }
    if (std::string bad = decode.difference(decode_step, streams[0]); !bad.empty()) {
      return with("decode", bad);
    }
    if (std::string bad = mixed.difference(mixed_step, streams[1]); !bad.empty()) {
      return with("mixed", bad);
    }
  }
  return {};
}

// One plan, two workspaces: runs of the same shape may overlap.
std::string two_workspaces_of_one_shape_may_overlap() {
  const CudaStream streams[2];
  DeviceBatch batches[2] = {DeviceBatch(kDecode), DeviceBatch(kDecode)};
  const PagedBatch steps[2] = {PagedBatch(kDecode, decode_steps()[0], 3),
                               PagedBatch(kDecode, decode_steps()[1], 4)};
  for (int i : {0, 1}) batches[i].load(steps[i], streams[i]);
  for (int repeat = 0; repeat < 50; ++repeat) {
    for (int i : {0, 1}) batches[i].run(streams[i]);
  }
  for (int i : {0, 1}) {
    if (std::string bad = batches[i].difference(steps[i], streams[i]); !bad.empty()) {
      return with("workspace " + std::to_string(i), bad);
    }
  }
  return {};
}

// Describes a call that should have been rejected but was not; empty = it was rejected.
std::string rejection_of(const Attention& call, const std::string& field) {
  const Result<Plan> planned = plan(call, {.backend = "cuda", .checks_indices = true});
  if (planned) return field + " on the host was not rejected";
  const std::string message = planned.status().message();
  return message.find(field) != std::string::npos ? "" : "rejected without its name: " + message;
}

std::string pointers_to_the_host_are_rejected_in_checked_mode() {
  DeviceBatch device(kMixed);
  const PagedBatch host(kMixed, mixed_steps()[0], 1);
  const BatchMemory right = device.memory();
  if (!plan(device.attention(), {.backend = "cuda", .checks_indices = true})) {
    return "the right call was rejected";
  }
  BatchMemory wrong = right;
  wrong.q = host.q.data();
  if (std::string bad = rejection_of(attention_over(kMixed, wrong), "q"); !bad.empty()) return bad;
  wrong = right;
  wrong.cu_seqlens_q = host.cu_seqlens_q.data();
  if (std::string bad = rejection_of(attention_over(kMixed, wrong), "cu_seqlens_q"); !bad.empty()) {
    return bad;
  }
  wrong = right;
  wrong.table = host.table.data();
  return rejection_of(attention_over(kMixed, wrong), "table");
}

std::string another_device_is_rejected() {
  DeviceBatch device(kDecode);
  BatchMemory wrong = device.memory();
  wrong.device = {DeviceType::kCpu, 0};
  if (plan(attention_over(kDecode, wrong), {.backend = "cuda"})) return "the host was not rejected";
  wrong.device = {DeviceType::kCuda, 1000};
  if (plan(attention_over(kDecode, wrong), {.backend = "cuda"}))
    return "cuda:1000 was not rejected";
  return {};
}

// A test of the tests, on the host: a correct result passes, each kind of error is found.
std::string differences_are_found() {
  const PagedBatch step(kMixed, mixed_steps()[2], 7);
  std::vector<uint16_t> out(step.expected_out.size(), PagedBatch::kUntouched);
  std::vector<float> lse(step.expected_lse.size());
  std::fill_n(reinterpret_cast<uint32_t*>(lse.data()), lse.size(), 0xffffffffU);
  const auto rows = static_cast<size_t>(step.cu_seqlens_q.back());
  const size_t heads = rows * static_cast<size_t>(kMixed.q_heads);
  const auto elements = heads * static_cast<size_t>(kMixed.dim);
  for (size_t i = 0; i < elements; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &step.expected_out[i], sizeof bits);
    out[i] = static_cast<uint16_t>(bits >> 16);
  }
  std::copy_n(step.expected_lse.begin(), heads, lse.begin());
  if (std::string bad = step.difference(out, lse); !bad.empty()) return with("a right one", bad);
  const auto finds = [&](auto& values, size_t at, auto wrong) {
    auto copy = values;
    copy[at] = wrong;
    if constexpr (sizeof wrong == sizeof(float))
      return !step.difference(out, copy).empty();
    else
      return !step.difference(copy, lse).empty();
  };
  if (!finds(out, 5, uint16_t{0x4000})) return "a wrong element passes";
  if (!finds(out, elements - 1, uint16_t{0x7fc0})) return "NaN passes";
  if (!finds(out, elements, uint16_t{0})) return "a write past the last row passes";
  if (!finds(lse, 3, lse[3] + 0.01F)) return "a wrong LSE passes";
  return {};
}

constexpr Test kTests[] = {
    {"differences_are_found", differences_are_found, /*needs_gpu=*/false},
    {"a_decode_graph_serves_lengths_that_change", a_decode_graph_serves_lengths_that_change},
    {"a_mixed_graph_serves_offsets_that_change", a_mixed_graph_serves_offsets_that_change},
    {"replays_give_the_same_bits", replays_give_the_same_bits},
    {"run_allocates_nothing", run_allocates_nothing},
    {"run_waits_for_nothing", run_waits_for_nothing},
    {"two_streams_do_not_disturb_each_other", two_streams_do_not_disturb_each_other},
    {"two_workspaces_of_one_shape_may_overlap", two_workspaces_of_one_shape_may_overlap},
    {"pointers_to_the_host_are_rejected_in_checked_mode",
     pointers_to_the_host_are_rejected_in_checked_mode},
    {"another_device_is_rejected", another_device_is_rejected},
};

bool passes(const Test& test) {
  std::string message;
  try {
    message = test.run();
  } catch (const std::exception& error) {
    message = error.what();
  }
  std::printf("%s %s%s%s\n", message.empty() ? "passed" : "failed", test.name,
              message.empty() ? "" : ": ", message.c_str());
  std::fflush(stdout);
  return message.empty();
}

// Why the CUDA back end has no attention kernels here; empty = it has.
std::string unavailable_reason() {
  for (const BackendInfo& info : backends()) {
    if (info.name != "cuda") continue;
    if (!info.is_available) return info.description;
    const DeviceBatch device(kDecode);
    const Result<std::vector<KernelInfo>> infos = explain(device.attention(), {.backend = "cuda"});
    if (!infos) return {};  // the tests will fail with the message
    for (const KernelInfo& kernel : *infos) {
      // Kernels exist for this device: run the tests, even if they will fail.
      if (kernel.can_run || kernel.reason.find("this build has") == std::string::npos) return {};
    }
    return "no attention kernel for this device: " + info.description;
  }
  return "no back end cuda in this build";
}

int run_tests() {
  const std::string reason = unavailable_reason();
  int passed = 0, failed = 0;
  for (const Test& test : kTests) {
    if (test.needs_gpu && !reason.empty()) continue;
    ++(passes(test) ? passed : failed);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  if (failed != 0) return 1;
  if (reason.empty()) return 0;
  std::printf("skipped what needs a GPU: %s\n", reason.c_str());
  return kExitSkipped;
}

}  // namespace
}  // namespace pagoda::cuda_tests

int main() { return pagoda::cuda_tests::run_tests(); }
