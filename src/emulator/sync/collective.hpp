// Instructions that the lanes of a warp execute together: each lane waits until the last has
// arrived, and the last one executes the instruction for all.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "arch/layout/where.hpp"

namespace pagoda::emulator {

using arch::Where;

class Reporter;
class Scheduler;
struct Thread;

inline constexpr uint64_t kAllLanes = ~uint64_t{0};

// One such instruction, while the lanes of a warp arrive.
struct Collective {
  const char* primitive = nullptr;
  Where where;
  uint64_t lane_mask = 0;  // the lanes that take part
  int arrived = 0;
  uint64_t generation = 0;
  std::array<void*, 64> arguments{};  // by lane
  std::array<Thread*, 64> threads{};  // nullptr: the lane takes no part
};

class Collectives {
 public:
  Collectives(int threads_per_cta, Scheduler& scheduler, Reporter& reporter)
      : threads_per_cta_(threads_per_cta), scheduler_(scheduler), reporter_(reporter) {}

  // For the executing thread: returns when execute(group) has run in the last lane to arrive.
  using Execute = std::function<void(Collective&)>;
  void warp(uint64_t lane_mask, const char* primitive, const Where& where, void* arguments,
            const Execute& execute);

 private:
  // Returns true to the lane that arrives last.
  bool arrive(Collective& group, uint64_t lane_mask, const char* primitive, const Where& where,
              void* arguments);
  void release(Collective& group);

  int threads_per_cta_;
  Scheduler& scheduler_;
  Reporter& reporter_;
};

}  // namespace pagoda::emulator
