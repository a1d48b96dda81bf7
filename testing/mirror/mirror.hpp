// Mirror: copies a call from host memory to device memory. Every array keeps its gaps and its
// alignment, and arrays that overlap still overlap; contents are copied as bytes.
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

// Properties of a call's memory that its arrays do not describe.
struct Surroundings {
  // Memory around outputs (guards and gaps), copied with them.
  std::vector<Bytes> outputs;
  // Memory too large to copy: only its `touched` ranges have contents.
  std::vector<Bytes> sparse;
  std::vector<Bytes> touched;
};

class Mirror {
 public:
  // The host arrays must outlive the mirror, `host` need not. Memory without contents is NaN.
  // Throws std::bad_alloc if the device memory does not suffice.
  Mirror(core::MemorySpace& space, const Attention& host, const Surroundings& surroundings = {});

  // The same call over device memory. Fields such as the maxima may be changed.
  [[nodiscard]] Attention& attention() { return attention_; }

  // Copies all bytes of the outputs to the device and back. fetch_outputs() synchronises the
  // device.
  void send_outputs();
  void fetch_outputs();
  // The name of an input whose bytes on the device differ from the host's; empty = none.
  [[nodiscard]] std::string changed_input();
  [[nodiscard]] int64_t device_bytes() const;

 private:
  // A contiguous range of host bytes, and its device copy.
  struct Segment {
    std::string name;
    std::byte* host = nullptr;
    int64_t bytes = 0;
    bool is_output = false;
    bool is_sparse = false;
    Block block;
    int64_t shift = 0;  // bytes before the range in its block, which keep the host's alignment
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
  Block nothing_;  // the target of pointers of arrays without elements
};

}  // namespace pagoda::mirror
