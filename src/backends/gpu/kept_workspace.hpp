// Device memory for run(attention, options): one allocation per device and stream, of the streams
// that used one last. The zeroed bytes of every plan end, and its scratch begins, at the same
// address: no run's scratch overlaps bytes that a later run expects to be zero.
//
// `Api`: struct with
//   Guard, Stream                          Guard(index): makes a device current
//   is_captured(stream)
//   stream_id(stream)                      ids are not reused, handles are. Not during capture
//   allocate(bytes)
//   free(memory) noexcept                  waits for the device's work
//   clear(memory, bytes, stream)           asynchronous
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/backend.hpp"
#include "core/int_math.hpp"

namespace pagoda::gpu {

inline constexpr size_t kMaxKeptStreams = 16;  // per device

template <class Api>
class KeptWorkspaces {
 public:
  // One workspace per stream: calls on one stream run in order and may share it. Growing allocates,
  // which a capture can't. Memory that a capture has used may belong to a graph: it is kept until
  // release().
  static Result<std::span<std::byte>> keep(core::WorkspaceSize size, Device device, Stream stream) {
    if (size.bytes == 0) return std::span<std::byte>();
    const typename Api::Guard guard(device.index);
    const auto handle = static_cast<Handle>(stream.handle);
    const bool is_captured = Api::is_captured(handle);
    constexpr int64_t kStep = 256;  // what the runtime's allocations are aligned to
    const int64_t zeroed = core::align_up(size.zeroed, kStep);
    const int64_t scratch = size.bytes - size.zeroed;
    KeptWorkspaces& all = the_one();
    const std::lock_guard lock(all.mutex_);
    Streams& streams = all.of_device_[device.index];
    const auto part_of = [&](Kept& kept) {
      kept.last_use = ++all.uses_;
      return std::span(kept.memory + kept.zeroed - size.zeroed, static_cast<size_t>(size.bytes));
    };
    if (is_captured) {
      Kept* kept = find(streams, handle);
      if (kept == nullptr || zeroed > kept->zeroed || scratch > kept->scratch) {
        return Status(StatusCode::kStreamCapturing, "stream",
                      "stream is captured and has no workspace of " + std::to_string(size.bytes) +
                          " bytes; run the call once on it before the capture, or pass a workspace "
                          "to run(plan, attention, workspace, stream)");
      }
      kept->is_in_graph = true;
      return part_of(*kept);
    }
    Kept& kept = streams.kept[id_of(streams, handle)];
    if (zeroed > kept.zeroed || scratch > kept.scratch) {
      grow(streams, kept, zeroed, scratch, handle);
    }
    const std::span<std::byte> part = part_of(kept);
    evict(streams);
    return part;
  }

  // Frees all of them, after the work of their devices.
  static void release() {
    KeptWorkspaces& all = the_one();
    const std::lock_guard lock(all.mutex_);
    for (auto& [index, streams] : all.of_device_) {
      const typename Api::Guard guard(index);
      for (const auto& [id, kept] : streams.kept) {
        if (kept.memory != nullptr) Api::free(kept.memory);
      }
      for (std::byte* memory : streams.in_graphs) Api::free(memory);
    }
    all.of_device_.clear();
  }

 private:
  using Handle = typename Api::Stream;
  using StreamId = unsigned long long;

  struct Kept {
    std::byte* memory = nullptr;  // [zeroed + scratch]
    int64_t zeroed = 0;
    int64_t scratch = 0;
    uint64_t last_use = 0;
    bool is_in_graph = false;
  };
  struct Streams {
    std::map<StreamId, Kept> kept;
    std::map<Handle, StreamId> last_id;  // of a handle
    std::vector<std::byte*> in_graphs;   // outgrown, or of destroyed streams
  };

  // Never destroyed: the driver may be unloaded before static objects are.
  static KeptWorkspaces& the_one() {
    static auto* all = new KeptWorkspaces;
    return *all;
  }

  // The workspace of a captured stream, whose id can't be queried: the one that its handle had.
  static Kept* find(Streams& streams, Handle stream) {
    const auto known = streams.last_id.find(stream);
    if (known == streams.last_id.end()) return nullptr;
    const auto kept = streams.kept.find(known->second);
    return kept == streams.kept.end() ? nullptr : &kept->second;
  }

  // A handle with a new id belonged to a stream that was destroyed: its workspace is dropped.
  static StreamId id_of(Streams& streams, Handle stream) {
    const StreamId id = Api::stream_id(stream);
    const auto known = streams.last_id.find(stream);
    if (known != streams.last_id.end() && known->second != id) drop(streams, known->second);
    streams.last_id[stream] = id;
    return id;
  }

  static void grow(Streams& streams, Kept& kept, int64_t zeroed, int64_t scratch, Handle stream) {
    const int64_t new_zeroed = std::max(zeroed, kept.zeroed);
    const int64_t new_scratch = std::max(scratch, kept.scratch);
    void* memory = Api::allocate(static_cast<size_t>(new_zeroed + new_scratch));
    try {
      Api::clear(memory, static_cast<size_t>(new_zeroed), stream);
    } catch (...) {
      Api::free(memory);
      throw;
    }
    discard(streams,
            std::exchange(kept, {static_cast<std::byte*>(memory), new_zeroed, new_scratch}));
  }

  static void discard(Streams& streams, const Kept& kept) {
    if (kept.memory == nullptr) return;
    if (kept.is_in_graph) {
      streams.in_graphs.push_back(kept.memory);
    } else {
      Api::free(kept.memory);
    }
  }

  static void drop(Streams& streams, StreamId id) {
    const auto found = streams.kept.find(id);
    if (found == streams.kept.end()) return;
    discard(streams, found->second);
    streams.kept.erase(found);
  }

  // Drops the workspace that was used longest ago where there are too many.
  static void evict(Streams& streams) {
    if (streams.kept.size() <= kMaxKeptStreams) return;
    const auto oldest = std::min_element(
        streams.kept.begin(), streams.kept.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    drop(streams, oldest->first);
  }

  std::mutex mutex_;
  uint64_t uses_ = 0;
  std::map<int32_t, Streams> of_device_;
};

}  // namespace pagoda::gpu
