// Faults of kernels in the emulator: sites of emulator/machine/mutation.hpp.
#pragma once

#include <cstdint>

#include "arch/layout/where.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::arch {
inline namespace emu {

namespace detail {

inline bool has_shared_memory_fault(const char* fault, const Where& where) {
  using emulator::Mutation;
  return emulator::Machine::current().mutations().at_name(fault, where, Mutation::kShared) ==
         Mutation::kShared;
}

}  // namespace detail

// A run that is no mutant's has the schedule that it would have without the call.
template <class T>
T mutable_value(const char* fault, T value, T wrong, Where where = Where::current()) {
  using emulator::Mutation;
  emulator::MutationPoints& mutations = emulator::Machine::current().mutations();
  if (!mutations.are_counted()) return value;
  return mutations.at(fault, where, Mutation::kValue) == Mutation::kValue ? wrong : value;
}
inline float mutable_factor(const char* fault, float value, Where where = Where::current()) {
  return mutable_value(fault, value, 1.02F * value, where);
}
// A ring that never reaches stage 1 has no such mutant.
inline uint32_t mutable_stage(const char* ring, uint32_t stage, Where where = Where::current()) {
  return stage == 1 && detail::has_shared_memory_fault(ring, where) ? 0 : stage;
}
template <class T>
T mutable_place(const char* fault, T own, T other, Where where = Where::current()) {
  return detail::has_shared_memory_fault(fault, where) ? other : own;
}

}  // namespace emu
}  // namespace pagoda::arch
