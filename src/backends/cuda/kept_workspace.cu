// One allocation per device and stream. The zeroed bytes of every plan end, and its scratch
// begins, at the same address: no run's scratch overlaps bytes that a later run expects to be
// zero.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "arch/ptx/device.hpp"
#include "backends/cuda/kept_workspace.hpp"
#include "core/int_math.hpp"

namespace pagoda::cuda {
namespace {

struct Kept {
  std::byte* memory = nullptr;  // [zeroed + scratch]
  int64_t zeroed = 0;
  int64_t scratch = 0;
};

// Never freed: the driver may be unloaded before static objects are destroyed.
struct AllKept {
  std::mutex mutex;
  std::map<std::pair<int32_t, unsigned long long>, Kept> of_stream;        // key: device, stream id
  std::map<std::pair<int32_t, cudaStream_t>, unsigned long long> last_id;  // of a handle
};

AllKept& all_kept() {
  static auto* all = new AllKept;
  return *all;
}

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  arch::check(cudaStreamIsCapturing(stream, &status), "querying the capture status of a stream");
  return status != cudaStreamCaptureStatusNone;
}

void throw_if_captured(cudaStream_t stream) {
  if (!is_captured(stream)) return;
  throw std::runtime_error(
      "a captured call can't allocate its workspace: run the call once on the stream before the "
      "capture, or pass a workspace to run(plan, attention, workspace, stream)");
}

// Handles are reused, ids are not. cudaStreamGetId fails during capture, which uses the last id
// seen.
unsigned long long stream_id(AllKept& all, int32_t device, cudaStream_t stream) {
  if (is_captured(stream)) {
    const auto known = all.last_id.find({device, stream});
    if (known == all.last_id.end()) throw_if_captured(stream);
    return known->second;
  }
  unsigned long long id = 0;
  arch::check(cudaStreamGetId(stream, &id), "querying the id of a stream");
  all.last_id[{device, stream}] = id;
  return id;
}

void grow(Kept& kept, int64_t zeroed, int64_t scratch, cudaStream_t stream) {
  throw_if_captured(stream);
  const int64_t new_zeroed = std::max(zeroed, kept.zeroed);
  const int64_t new_scratch = std::max(scratch, kept.scratch);
  void* memory = nullptr;
  arch::check(cudaMalloc(&memory, static_cast<size_t>(new_zeroed + new_scratch)),
              "allocating a workspace");
  if (const cudaError_t error = cudaMemsetAsync(memory, 0, static_cast<size_t>(new_zeroed), stream);
      error != cudaSuccess) {
    static_cast<void>(cudaFree(memory));
    arch::check(error, "clearing a workspace");
  }
  kept = {static_cast<std::byte*>(memory), new_zeroed, new_scratch};
}

}  // namespace

std::span<std::byte> keep_workspace(core::WorkspaceSize size, Device device, Stream stream) {
  if (size.bytes == 0) return {};
  const arch::DeviceGuard guard(device.index);
  const auto handle = static_cast<cudaStream_t>(stream.handle);
  constexpr int64_t kStep = 256;  // what cudaMalloc aligns to
  const int64_t zeroed = core::align_up(size.zeroed, kStep);
  const int64_t scratch = size.bytes - size.zeroed;
  AllKept& all = all_kept();
  const std::lock_guard lock(all.mutex);
  const unsigned long long id = stream_id(all, device.index, handle);
  Kept& kept = all.of_stream[{device.index, id}];
  if (zeroed > kept.zeroed || scratch > kept.scratch) grow(kept, zeroed, scratch, handle);
  return {kept.memory + kept.zeroed - size.zeroed, static_cast<size_t>(size.bytes)};
}

}  // namespace pagoda::cuda
