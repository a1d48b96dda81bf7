// Faults of kernels in the emulator: mutants of runtime/mutation.hpp.
#pragma once

#include <cstdint>

#include "arch/layout/where.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::arch {
inline namespace emu {

// A ring that never comes to stage 1 has no such mutant.
inline uint32_t mutable_stage(const char* ring, uint32_t stage, Where where = Where::current()) {
  if (stage != 1) return stage;
  return emulator::Machine::current().mutations().at_name(
             ring, where, emulator::Mutation::kShared) == emulator::Mutation::kShared
             ? 0
             : stage;
}
template <class T>
T mutable_place(const char* fault, T own, T other, Where where = Where::current()) {
  return emulator::Machine::current().mutations().at_name(
             fault, where, emulator::Mutation::kShared) == emulator::Mutation::kShared
             ? other
             : own;
}

}  // namespace emu
}  // namespace pagoda::arch
