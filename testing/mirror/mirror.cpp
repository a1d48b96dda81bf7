// Finds the byte ranges of a call, joins overlapping ones, allocates, copies and compares them.
#include "testing/mirror/mirror.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "testing/mirror/arrays.hpp"

namespace pagoda::mirror {
namespace {

constexpr std::byte kNaN{0xff};          // all ones: NaN in every type
constexpr int64_t kAlignment = 256;      // the least alignment of allocations
constexpr int64_t kCompared = 16 << 20;  // bytes per copy of a comparison

bool is_inside(const std::byte* begin, int64_t bytes, Bytes outer) {
  return begin >= outer.data() && begin + bytes <= outer.data() + outer.size();
}

}  // namespace

Mirror::Mirror(core::MemorySpace& space, const Attention& host, const Surroundings& surroundings)
    : space_(space), attention_(host), touched_(surroundings.touched), nothing_(space, kAlignment) {
  Attention seen = host;
  replace_arrays(seen, space.device(), [&](const Array& array) {
    add(array.name, array.data + array.low, array.high - array.low, array.is_output);
    return array.data;
  });
  for (const Bytes output : surroundings.outputs) {
    add("memory around outputs", output.data(), std::ssize(output), true);
  }
  for (const Bytes sparse : surroundings.sparse) {
    add("its whole memory", sparse.data(), std::ssize(sparse), false);
  }
  merge_overlaps();
  place(surroundings);
  replace_arrays(attention_, space.device(), [&](const Array& array) {
    if (array.high == array.low) return nothing_.data();
    return translate(array.data + array.low) - array.low;
  });
}

void Mirror::add(const std::string& name, std::byte* begin, int64_t bytes, bool is_output) {
  if (bytes == 0) return;
  Segment& segment = segments_.emplace_back();
  segment.name = name;
  segment.host = begin;
  segment.bytes = bytes;
  segment.is_output = is_output;
}

void Mirror::merge_overlaps() {
  std::stable_sort(segments_.begin(), segments_.end(),
                   [](const Segment& a, const Segment& b) { return a.host < b.host; });
  std::vector<Segment> merged;
  for (Segment& segment : segments_) {
    if (merged.empty() || !merged.back().holds(segment.host)) {
      merged.push_back(std::move(segment));
      continue;
    }
    Segment& last = merged.back();
    if (last.name != segment.name) last.name += " and " + segment.name;
    last.bytes = std::max(last.bytes, segment.host + segment.bytes - last.host);
    last.is_output = last.is_output || segment.is_output;
  }
  segments_ = std::move(merged);
}

void Mirror::place(const Surroundings& surroundings) {
  for (Segment& segment : segments_) {
    segment.shift = static_cast<int64_t>(reinterpret_cast<uintptr_t>(segment.host) % kAlignment);
    segment.block = Block(space_, segment.shift + segment.bytes + kAlignment);
    space_.fill(segment.block.data(), kNaN, segment.block.bytes());
    for (const Bytes sparse : surroundings.sparse) {
      segment.is_sparse =
          segment.is_sparse || is_inside(sparse.data(), std::ssize(sparse),
                                         {segment.host, static_cast<size_t>(segment.bytes)});
    }
    if (!segment.is_sparse) space_.copy_in(segment.there(), segment.host, segment.bytes);
  }
  for (const Bytes part : touched_) {
    space_.copy_in(translate(part.data()), part.data(), std::ssize(part));
  }
}

std::byte* Mirror::translate(const std::byte* host) const {
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), host,
                       [](const std::byte* p, const Segment& s) { return p < s.host; });
  assert(after != segments_.begin());
  const Segment& segment = *(after - 1);
  assert(segment.holds(host));
  return segment.there() + (host - segment.host);
}

void Mirror::send_outputs() {
  for (const Segment& segment : segments_) {
    if (segment.is_output) space_.copy_in(segment.there(), segment.host, segment.bytes);
  }
}

void Mirror::fetch_outputs() {
  space_.wait();
  for (const Segment& segment : segments_) {
    if (segment.is_output) space_.copy_out(segment.host, segment.there(), segment.bytes);
  }
}

std::string Mirror::changed_input() {
  std::string complaint;
  for (Segment& segment : segments_) {
    if (segment.is_output || segment.is_sparse) continue;
    compare(segment, {segment.host, static_cast<size_t>(segment.bytes)}, complaint);
  }
  for (const Bytes part : touched_) {
    for (Segment& segment : segments_) {
      if (segment.holds(part.data())) compare(segment, part, complaint);
    }
  }
  return complaint;
}

void Mirror::compare(Segment& segment, Bytes part, std::string& complaint) {
  std::vector<std::byte> fetched;
  for (int64_t done = 0; done < std::ssize(part) && complaint.empty();) {
    const int64_t count = std::min(kCompared, std::ssize(part) - done);
    fetched.resize(static_cast<size_t>(count));
    const std::byte* host = part.data() + done;
    space_.copy_out(fetched.data(), segment.there() + (host - segment.host), count);
    if (std::memcmp(fetched.data(), host, fetched.size()) != 0) {
      complaint = segment.name + ": an input was written";
    }
    done += count;
  }
}

int64_t Mirror::device_bytes() const {
  int64_t bytes = 0;
  for (const Segment& segment : segments_) bytes += segment.block.bytes();
  return bytes;
}

}  // namespace pagoda::mirror
