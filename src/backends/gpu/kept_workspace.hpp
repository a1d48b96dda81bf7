// Device memory for run(attention, options), kept for as long as the process runs: one allocation
// per device and stream. The zeroed bytes of every plan end, and its scratch begins, at the same
// address: no run's scratch overlaps bytes that a later run expects to be zero.
//
// `Api`: struct with
//   Guard, Stream                          Guard(index): makes a device current
//   is_captured(stream)
//   stream_id(stream)                      ids are not reused, handles are. Not during capture
//   allocate(bytes), free(memory) noexcept
//   clear(memory, bytes, stream)           asynchronous
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/backend.hpp"
#include "core/int_math.hpp"

namespace pagoda::gpu {

template <class Api>
class KeptWorkspaces {
 public:
  // One workspace per stream: calls on one stream run in order and may share it. Growing allocates,
  // so a stream's first call must not be captured. Outgrown memory is kept: a captured graph may
  // use it.
  static std::span<std::byte> keep(core::WorkspaceSize size, Device device, Stream stream) {
    if (size.bytes == 0) return {};
    const typename Api::Guard guard(device.index);
    const auto handle = static_cast<typename Api::Stream>(stream.handle);
    constexpr int64_t kStep = 256;  // what the runtime's allocations are aligned to
    const int64_t zeroed = core::align_up(size.zeroed, kStep);
    const int64_t scratch = size.bytes - size.zeroed;
    KeptWorkspaces& all = the_one();
    const std::lock_guard lock(all.mutex_);
    Kept& kept = all.of_stream_[{device.index, all.id_of(device.index, handle)}];
    if (zeroed > kept.zeroed || scratch > kept.scratch) grow(kept, zeroed, scratch, handle);
    return {kept.memory + kept.zeroed - size.zeroed, static_cast<size_t>(size.bytes)};
  }

 private:
  using Handle = typename Api::Stream;

  struct Kept {
    std::byte* memory = nullptr;  // [zeroed + scratch]
    int64_t zeroed = 0;
    int64_t scratch = 0;
  };

  // Never freed: the driver may be unloaded before static objects are destroyed.
  static KeptWorkspaces& the_one() {
    static auto* all = new KeptWorkspaces;
    return *all;
  }

  static void throw_if_captured(Handle stream) {
    if (!Api::is_captured(stream)) return;
    throw std::runtime_error(
        "a captured call can't allocate its workspace: run the call once on the stream before the "
        "capture, or pass a workspace to run(plan, attention, workspace, stream)");
  }

  unsigned long long id_of(int32_t device, Handle stream) {
    if (Api::is_captured(stream)) {
      const auto known = last_id_.find({device, stream});
      if (known == last_id_.end()) throw_if_captured(stream);
      return known->second;
    }
    const unsigned long long id = Api::stream_id(stream);
    last_id_[{device, stream}] = id;
    return id;
  }

  static void grow(Kept& kept, int64_t zeroed, int64_t scratch, Handle stream) {
    throw_if_captured(stream);
    const int64_t new_zeroed = std::max(zeroed, kept.zeroed);
    const int64_t new_scratch = std::max(scratch, kept.scratch);
    void* memory = Api::allocate(static_cast<size_t>(new_zeroed + new_scratch));
    try {
      Api::clear(memory, static_cast<size_t>(new_zeroed), stream);
    } catch (...) {
      Api::free(memory);
      throw;
    }
    kept = {static_cast<std::byte*>(memory), new_zeroed, new_scratch};
  }

  std::mutex mutex_;
  std::map<std::pair<int32_t, unsigned long long>, Kept> of_stream_;  // key: device, stream id
  std::map<std::pair<int32_t, Handle>, unsigned long long> last_id_;  // of a handle
};

}  // namespace pagoda::gpu
