// Checks of an access against the history of its bytes.
#include "emulator/memory/shadow_memory.hpp"

#include <algorithm>
#include <utility>

namespace pagoda::emulator {

ShadowMemory::Cell::Cell(const Cell& other) { *this = other; }

ShadowMemory::Cell& ShadowMemory::Cell::operator=(const Cell& other) {
  if (this == &other) return *this;
  write = other.write;
  read = other.read;
  more_reads = other.more_reads ? std::make_unique<std::vector<Stamp>>(*other.more_reads) : nullptr;
  return *this;
}

std::optional<Conflict> ShadowMemory::Cell::check_read(const Access& access, size_t offset) const {
  if (!access.is_after(write, true)) return Conflict{write, true, offset};
  return std::nullopt;
}

std::optional<Conflict> ShadowMemory::Cell::check_write(const Access& access, size_t offset) const {
  if (!access.is_after(write, true)) return Conflict{write, true, offset};
  if (!access.is_after(read, false)) return Conflict{read, false, offset};
  if (more_reads) {
    for (const Stamp& earlier : *more_reads) {
      if (!access.is_after(earlier, false)) return Conflict{earlier, false, offset};
    }
  }
  return std::nullopt;
}

void ShadowMemory::Cell::set_write(const Stamp& stamp) {
  write = stamp;
  read = Stamp{};
  more_reads.reset();
}

// A read that happened before this one can be dropped: an access after this one is after both. This
// holds on one path only, so reads on different paths are recorded separately. Of a list of reads
// they are dropped when it is full: to look at the clocks of all at each read would take longer
// than anything else in the emulator.
void ShadowMemory::Cell::add_read(const Access& access, size_t& index) {
  const auto is_own = [&](const Stamp& earlier) {
    return earlier.agent == kNoAgent || earlier.agent == access.stamp.agent;
  };
  const auto covers = [&](const Stamp& earlier) {
    return earlier.proxy == access.stamp.proxy && !earlier.is_atomic &&
           access.is_after(earlier, false);
  };
  if (!more_reads && (is_own(read) || covers(read))) {
    read = access.stamp;
    return;
  }
  if (!more_reads) {
    more_reads = std::make_unique<std::vector<Stamp>>();
    more_reads->reserve(32);  // mostly lanes of a warp
  }
  std::vector<Stamp>& reads = *more_reads;
  // Agents mostly read cells in the same order: this one's own read, among those of hundreds, is
  // where it was in the last cell, or behind that of the agent which read before.
  for (const size_t likely : {index, index + 1}) {
    if (likely >= reads.size() || !is_own(reads[likely])) continue;
    reads[likely] = access.stamp;
    index = likely;
    return;
  }
  const auto own = std::ranges::find_if(reads, is_own);
  if (own != reads.end()) {
    *own = access.stamp;
    index = static_cast<size_t>(own - reads.begin());
    return;
  }
  if (reads.size() == reads.capacity()) std::erase_if(reads, covers);
  index = reads.size();
  reads.push_back(access.stamp);
}

ShadowMemory::Granule& ShadowMemory::granule_at(size_t offset) {
  std::unique_ptr<Chunk>& chunk = chunks_[offset / kChunkBytes];
  if (!chunk) chunk = std::make_unique<Chunk>();
  return (*chunk)[offset % kChunkBytes / kGranuleBytes];
}

void ShadowMemory::Granule::split(size_t into) {
  if (into >= unit) return;
  auto smaller = std::make_unique<Cell[]>(kGranuleBytes / into);
  for (size_t i = 0; i < kGranuleBytes / into; ++i) smaller[i] = at(i * into);
  parts = std::move(smaller);
  whole = Cell{};
  unit = into;
}

void ShadowMemory::Granule::join() {
  if (!parts) return;
  whole = parts[0];
  parts.reset();
  unit = kGranuleBytes;
}

template <class OnCell>
void ShadowMemory::visit(size_t offset, size_t bytes, bool is_write, OnCell on_cell) {
  const size_t end = offset + bytes;
  while (offset < end) {
    Granule& granule = granule_at(offset);
    const size_t granule_end = std::min(end, (offset / kGranuleBytes + 1) * kGranuleBytes);
    const bool is_whole = granule_end - offset == kGranuleBytes;
    const bool is_words = offset % 4 == 0 && granule_end % 4 == 0;
    if (!is_whole) granule.split(is_words ? 4 : 1);
    for (size_t at = offset; at < granule_end; at += granule.unit) {
      on_cell(granule.at(at % kGranuleBytes), at);
    }
    if (is_write && is_whole) granule.join();
    offset = granule_end;
  }
}

std::optional<Conflict> ShadowMemory::write(size_t offset, size_t bytes, const Access& access) {
  std::optional<Conflict> first;
  visit(offset, bytes, true, [&](Cell& cell, size_t at) {
    if (!first) first = cell.check_write(access, at);
    cell.set_write(access.stamp);
  });
  return first;
}

std::optional<Conflict> ShadowMemory::read(size_t offset, size_t bytes, const Access& access) {
  std::optional<Conflict> first;
  visit(offset, bytes, false, [&](Cell& cell, size_t at) {
    if (!first) first = cell.check_read(access, at);
    cell.add_read(access, last_read_index_);
  });
  return first;
}

std::optional<size_t> ShadowMemory::first_unwritten(size_t offset, size_t bytes) const {
  const size_t end = offset + bytes;
  while (offset < end) {
    const std::unique_ptr<Chunk>& chunk = chunks_[offset / kChunkBytes];
    if (!chunk) return offset;
    const Granule& granule = (*chunk)[offset % kChunkBytes / kGranuleBytes];
    const size_t granule_end = std::min(end, (offset / kGranuleBytes + 1) * kGranuleBytes);
    for (size_t byte = offset; byte < granule_end; byte += granule.unit) {
      if (granule.at(byte % kGranuleBytes).write.agent == kNoAgent) return byte;
    }
    offset = granule_end;
  }
  return std::nullopt;
}

void ShadowMemory::forget(size_t offset, size_t bytes) {
  visit(offset, bytes, true, [](Cell& cell, size_t) { cell = Cell{}; });
}

}  // namespace pagoda::emulator
