// Registers the kernels of a functor with the emulated back ends of the chips that run them.
#pragma once

#include "backends/emulator/chips.hpp"
#include "backends/emulator/emulated_machine.hpp"
#include "engine/functors.hpp"
#include "functor/compiled_family.hpp"

// Unnamed: each compilation of a functor's file has its own.
namespace pagoda::functors {
namespace {  // NOLINT(google-build-namespaces)

template <class Named, class... Chips>
void register_on_chips() {
  const auto add = []<class Chip>(Chip /*chip*/) {
    using Machine = emulator::EmulatedMachine<Chip>;
    if constexpr (Machine::serves(CompiledFamily<Named>::kArchs)) {
      static const kernels::KernelTable<Machine> kTable{
          kernels::FamilyList<CompiledFamily<Named>>()};
      engine::register_functor_kernels(Named::kName, Machine::kBackend, kRank, kTable.kernels());
    }
  };
  (add(Chips{}), ...);
}

// `Named`: struct with Functor and kName.
template <class Named>
bool register_it() {
  register_on_chips<Named, emulator::Ampere, emulator::Hopper, emulator::Blackwell>();
  return true;
}

}  // namespace
}  // namespace pagoda::functors
