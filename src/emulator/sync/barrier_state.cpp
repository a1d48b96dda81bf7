// Phases of an mbarrier, and where the mbarriers of a CTA lie.
#include "emulator/sync/barrier_state.hpp"

#include <algorithm>
#include <utility>

namespace pagoda::emulator {

void MBarrierState::start_next_phase() {
  ++phase;
  pending = expected;
  completed = std::exchange(gathering, Clocks{});
  completed_from_others = std::exchange(gathering_from_others, {});
  relaxed_completed = std::exchange(relaxed_gathering, Clocks{});
}

void MBarrierState::count_arrival(uint64_t count, const char* role, const char* primitive,
                                  const Where& where, bool is_engine) {
  auto from = std::find_if(arrivals.begin(), arrivals.end(), [&](const Arrivals& known) {
    return known.where.line() == where.line() && known.role == role && known.primitive == primitive;
  });
  if (from == arrivals.end()) {
    from = arrivals.insert(
        from, {.role = role, .primitive = primitive, .where = where, .is_engine = is_engine});
  }
  if (from->last_phase != phase) from->count_in_phase = 0;
  from->last_phase = phase;
  from->count_in_phase += count;
}

MBarrierState* MBarrierTable::find_live(uint32_t offset) {
  const auto found = barriers_.find(offset);
  return found != barriers_.end() && found->second.is_live ? &found->second : nullptr;
}

void MBarrierTable::note_init(uint32_t offset) {
  begin_ = std::min(begin_, offset);
  end_ = std::max(end_, offset + kBytes);
}

const MBarrierState* MBarrierTable::overlapped(uint32_t offset, size_t bytes) const {
  if (offset >= end_ || offset + bytes <= begin_) return nullptr;
  for (const auto& [at, barrier] : barriers_) {
    if (barrier.is_live && offset < at + kBytes && offset + bytes > at) return &barrier;
  }
  return nullptr;
}

int64_t MBarrierTable::neighbour(uint32_t offset) const {
  const auto before = barriers_.find(offset - kBytes);
  if (before != barriers_.end() && before->second.is_live) return offset - kBytes;
  uint32_t last = offset;
  for (const auto& [at, barrier] : barriers_) {
    if (barrier.is_live) last = std::max(last, at);
  }
  return last != offset ? static_cast<int64_t>(last) : -1;
}

void MBarrierTable::fence_inits(Agent thread) {
  for (auto& [offset, barrier] : barriers_) {
    if (barrier.init.agent == thread) barrier.is_fenced = true;
  }
}

void MBarrierTable::release_inits(Agent thread) {
  for (auto& [offset, barrier] : barriers_) {
    if (barrier.init.agent == thread) barrier.is_init_released = true;
  }
}

void MBarrierTable::note_cluster_arrival(Agent thread, uint32_t phase) {
  for (auto& [offset, barrier] : barriers_) {
    if (barrier.init.agent == thread && barrier.is_init_released && !barrier.init_cluster_phase) {
      barrier.init_cluster_phase = phase;
    }
  }
}

}  // namespace pagoda::emulator
