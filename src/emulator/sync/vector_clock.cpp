// The joins of vector clocks.
#include "emulator/sync/vector_clock.hpp"

#include <algorithm>
#include <cstddef>

namespace pagoda::emulator {
namespace {

// Most of the emulator's time goes here: 8 lanes at once where the machine has them.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
void take_later(uint32_t* mine, const uint32_t* other, size_t count) {
  for (size_t i = 0; i < count; ++i) mine[i] = std::max(mine[i], other[i]);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
void take_earlier(uint32_t* mine, const uint32_t* other, size_t count) {
  for (size_t i = 0; i < count; ++i) mine[i] = std::min(mine[i], other[i]);
}

}  // namespace

VectorClock::Block& VectorClock::block_of(uint32_t cta) {
  for (Block& block : blocks_) {
    if (block.cta == cta) return block;
  }
  return blocks_.emplace_back(Block{cta, {}});
}

void VectorClock::set(Agent agent, uint32_t time) {
  std::vector<uint32_t>& times = block_of(agent_cta(agent)).times;
  const uint32_t index = agent_index(agent);
  if (index >= times.size()) times.resize(index + 1, 0);
  times[index] = time;
}

void VectorClock::join(const VectorClock& other) {
  if (this == &other) return;
  for (const Block& from : other.blocks_) {
    std::vector<uint32_t>& times = block_of(from.cta).times;
    if (times.size() < from.times.size()) times.resize(from.times.size(), 0);
    take_later(times.data(), from.times.data(), from.times.size());
  }
}

void VectorClock::meet(const VectorClock& other) {
  if (this == &other) return;
  std::erase_if(blocks_, [&](Block& mine) {
    for (const Block& from : other.blocks_) {
      if (from.cta != mine.cta) continue;
      if (mine.times.size() > from.times.size()) mine.times.resize(from.times.size());
      take_earlier(mine.times.data(), from.times.data(), mine.times.size());
      return false;
    }
    return true;
  });
}

}  // namespace pagoda::emulator
