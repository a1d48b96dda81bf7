// The history of every byte of a memory: its last write and the reads since. An access that is not
// ordered after them is a data race.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "arch/layout/where.hpp"
#include "emulator/sync/scope.hpp"
#include "emulator/sync/vector_clock.hpp"

namespace pagoda::emulator {

using arch::Where;

// The path by which an access reaches memory. Order between two paths needs a fence.
enum class Proxy : uint8_t { kGeneric, kAsync, kTensor };

// One access, as recorded.
struct Stamp {
  Agent agent = kNoAgent;
  uint32_t time = 0;
  const char* primitive = nullptr;
  Where where;
  Proxy proxy = Proxy::kGeneric;
  bool is_atomic = false;
  Scope scope = Scope::kGpu;  // of an atomic
};

// One access, as it is made: the stamp to record and the clocks of its agent.
struct Access {
  Stamp stamp;
  const Clocks* clocks;
  bool may_touch_global = true;  // false: an earlier launch may still be writing
  uint32_t cluster_size = 1;     // of the launch; set where the access is atomic

  // Did `earlier` happen before this access, on a path that this access observes?
  [[nodiscard]] bool is_after(const Stamp& earlier, bool earlier_is_write) const {
    if (earlier.agent == kNoAgent || earlier.agent == stamp.agent) return true;
    if (earlier.is_atomic && stamp.is_atomic && is_strong_with(earlier)) return true;
    return earlier.time <= knowledge(earlier.proxy, earlier_is_write).get(earlier.agent);
  }
  // Two atomics never race where the scope of each includes the other's thread.
  [[nodiscard]] bool is_strong_with(const Stamp& earlier) const {
    const uint32_t cta = agent_cta(stamp.agent);
    const uint32_t other = agent_cta(earlier.agent);
    return includes(stamp.scope, cta, other, cluster_size) &&
           includes(earlier.scope, other, cta, cluster_size);
  }

 private:
  // A generic read before an asynchronous write needs order, but no fence: it wrote no data.
  [[nodiscard]] const VectorClock& knowledge(Proxy earlier, bool earlier_is_write) const {
    if (stamp.proxy == Proxy::kTensor && earlier == Proxy::kTensor) return clocks->tensor;
    if (stamp.proxy != Proxy::kGeneric && earlier == Proxy::kGeneric && earlier_is_write) {
      return clocks->async;
    }
    return clocks->generic;
  }
};

struct Conflict {
  Stamp earlier;
  bool earlier_is_write;
  size_t offset;  // of the first byte in conflict
};

class ShadowMemory {
 public:
  explicit ShadowMemory(size_t bytes) : chunks_((bytes + kChunkBytes - 1) / kChunkBytes) {}

  // Both check, then record. The range must lie inside the memory.
  std::optional<Conflict> write(size_t offset, size_t bytes, const Access& access);
  std::optional<Conflict> read(size_t offset, size_t bytes, const Access& access);

  // Offset of the first byte of the range that nothing wrote.
  [[nodiscard]] std::optional<size_t> first_unwritten(size_t offset, size_t bytes) const;
  // Clears the history of the range: nothing has written it (freed tensor memory, for example).
  void forget(size_t offset, size_t bytes);

 private:
  // The history of bytes that are always accessed together.
  struct Cell {
    Stamp write;
    Stamp read;
    std::unique_ptr<std::vector<Stamp>> more_reads;

    Cell() = default;
    Cell(const Cell& other);
    Cell& operator=(const Cell& other);
    // `index`: where in more_reads the call before, of this cell or another, recorded its read.
    void add_read(const Access& access, size_t& index);
    [[nodiscard]] std::optional<Conflict> check_write(const Access& access, size_t offset) const;
    [[nodiscard]] std::optional<Conflict> check_read(const Access& access, size_t offset) const;
    void set_write(const Stamp& stamp);
  };
  // 16 bytes, the width of a vector access: one cell until a narrower access splits it into words
  // or bytes.
  static constexpr size_t kGranuleBytes = 16;
  struct Granule {
    size_t unit = kGranuleBytes;  // bytes a cell: 16, 4 or 1
    Cell whole;
    std::unique_ptr<Cell[]> parts;  // [16 / unit], where that is smaller

    void split(size_t into);
    void join();  // all cells are equal
    [[nodiscard]] const Cell& at(size_t byte) const { return parts ? parts[byte / unit] : whole; }
    Cell& at(size_t byte) { return parts ? parts[byte / unit] : whole; }
  };
  static constexpr size_t kChunkBytes = 4096;
  using Chunk = std::array<Granule, kChunkBytes / kGranuleBytes>;

  Granule& granule_at(size_t offset);
  // Calls on_cell(cell, offset of its first byte) for the cells of a range.
  template <class OnCell>
  void visit(size_t offset, size_t bytes, bool is_write, OnCell on_cell);

  std::vector<std::unique_ptr<Chunk>> chunks_;
  size_t last_read_index_ = 0;
};

}  // namespace pagoda::emulator
