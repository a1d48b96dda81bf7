// Mirror: a call in the host's memory, told again over memory of a device. Every array lies there with
// its gaps, its alignment and, where arrays share memory, shared; contents are copied as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pagoda/attention.hpp"
#include "testing/mirror/block.hpp"

namespace pagoda::mirror {

using Bytes = std::span<std::byte>;

// What the arrays of a call do not tell about its memory.
struct Surroundings {
  // Memory around outputs, guards and gaps: it travels with them.
  std::vector<Bytes> outputs;
  // Memory too large to be copied whole: of it only `touched` holds anything.
  std::vector<Bytes> sparse;
  std::vector<Bytes> touched;
};

class Mirror {
 public:
  // The host's arrays must outlive the mirror, but not `host` itself. Memory that nothing is copied to
  // is NaN. Throws std::bad_alloc where the device has no room.
  Mirror(core::MemorySpace& space, const Attention& host, const Surroundings& surroundings = {});

  // The same call over the device's memory. Its fields, maxima for one, may be changed.
  [[nodiscard]] Attention& attention() { return attention_; }

  // All the outputs' bytes, to the device and back. fetch_outputs() waits for the device.
  void send_outputs();
  void fetch_outputs();
  // Names an array whose bytes on the device are no longer the host's; empty: there is none. Not for
  // outputs.
  [[nodiscard]] std::string changed_input();
  [[nodiscard]] int64_t device_bytes() const;

 private:
  // Bytes of the host that lie together, and where they are on the device.
  struct Segment {
    std::string name;
    std::byte* host = nullptr;
    int64_t bytes = 0;
    bool is_output = false;
    bool is_sparse = false;
    Block block;
    int64_t shift = 0;  // of the block's first byte: the host's alignment
    [[nodiscard]] std::byte* there() const { return block.data() + shift; }
    [[nodiscard]] bool holds(const std::byte* p) const { return p >= host && p < host + bytes; }
  };

  void add(const std::string& name, std::byte* begin, int64_t bytes, bool is_output);
  void merge_overlaps();
  void place(const Surroundings& surroundings);
  [[nodiscard]] std::byte* translate(const std::byte* host) const;
  void compare(Segment& segment, Bytes part, std::string& complaint);

  core::MemorySpace& space_;
  Attention attention_;
  std::vector<Segment> segments_;  // by address
  std::vector<Bytes> touched_;
  Block nothing_;  // where arrays without elements point
};

}  // namespace pagoda::mirror
