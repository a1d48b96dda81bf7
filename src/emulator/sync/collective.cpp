// Lanes that execute one instruction together.
#include "emulator/sync/collective.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/machine/hierarchy.hpp"
#include "emulator/machine/scheduler.hpp"
#include "emulator/report/reporter.hpp"

namespace pagoda::emulator {

bool Collectives::arrive(Collective& group, uint64_t lane_mask, const char* primitive,
                         const Where& where, void* arguments) {
  Thread& thread = *scheduler_.running();
  if (group.arrived == 0) {
    group.primitive = primitive;
    group.where = where;
    group.lane_mask = lane_mask;
  } else if (std::string_view(group.primitive) != primitive || group.lane_mask != lane_mask) {
    reporter_.fail(ReportKind::kProtocol, primitive, where,
                   std::string("the threads that execute this together are not at the same "
                               "instruction: others are in ") +
                       group.primitive + " at line " + std::to_string(group.where.line()) +
                       (group.lane_mask != lane_mask ? ", or name another set of lanes" : ""));
  }
  const auto lane = static_cast<size_t>(thread.lane());
  group.arguments[lane] = arguments;
  group.threads[lane] = &thread;
  return ++group.arrived == __builtin_popcountll(lane_mask);
}

void Collectives::release(Collective& group) {
  const Thread* const last = scheduler_.running();
  group.arrived = 0;
  ++group.generation;
  for (Thread*& member : group.threads) {
    Thread* const thread = std::exchange(member, nullptr);
    if (thread != nullptr && thread != last) scheduler_.wake(*thread);
  }
}

void Collectives::warp(uint64_t lane_mask, const char* primitive, const Where& where,
                       void* arguments, const Execute& execute) {
  const Thread& thread = *scheduler_.running();
  if ((lane_mask >> thread.lane() & 1U) == 0) {
    reporter_.fail(ReportKind::kProtocol, primitive, where,
                   "the mask does not name the lane that executes it");
  }
  const int lanes_of_warp =
      std::min(thread.warp_size, threads_per_cta_ - thread.warp() * thread.warp_size);
  if (lanes_of_warp < 64) lane_mask &= (uint64_t{1} << lanes_of_warp) - 1U;
  Collective& group = thread.cta->warps[static_cast<size_t>(thread.warp())].collective;
  const uint64_t generation = group.generation;
  if (arrive(group, lane_mask, primitive, where, arguments)) {
    execute(group);
    release(group);
    return;
  }
  while (group.generation == generation) {
    scheduler_.block(
        {.what = "the other lanes of its warp", .primitive = primitive, .where = where});
  }
}

}  // namespace pagoda::emulator
