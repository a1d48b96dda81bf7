// How well the emulator watches a kernel: leave out, one at a time, each wait, arrival, fence,
// commit and barrier that it executes, and see whether a run shows it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "arch/emu/runtime/mutation.hpp"
#include "kernels/emulated/kernel.hpp"

namespace pagoda::emulated {

struct Mutant {
  emulator::MutationSite site;
  int runs = 0;                                   // up to the one that showed it
  std::string killed_by;                          // "race", "wrong result"; empty: survived
  emulator::Mode mode = emulator::Mode::kRandom;  // of that run
  uint64_t seed = 0;
  [[nodiscard]] bool is_killed() const { return !killed_by.empty(); }
};

struct MutationScore {
  std::vector<Mutant> mutants;  // by file and line
  double seconds = 0;
  [[nodiscard]] size_t killed() const;
};

// Runs the kernel as it is in every mode for its sites, then each mutant with the seeds 1, 2, ...
// up to `max_runs`, in the modes that mutation_mode() gives. The kernel must be right as it is.
// `on_mutant(done, total)` is called before each.
MutationScore score_mutants(const EmulatedKernel& kernel, int max_runs = 20,
                            const std::function<void(size_t, size_t)>& on_mutant = {});

}  // namespace pagoda::emulated
