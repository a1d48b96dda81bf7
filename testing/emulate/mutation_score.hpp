// Mutation score of a kernel under the emulator: change, one at a time, each wait, arrival, fence,
// commit and barrier that it executes, in each applicable way, and count the mutants that a run
// detects.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/machine/mutation.hpp"
#include "testing/emulate/kernel.hpp"

namespace pagoda::emulate {

struct Mutant {
  emulator::MutationSite site;
  emulator::Mutation kind = emulator::Mutation::kNone;
  int runs = 0;                                   // including the one that detected it
  std::string killed_by;                          // "race", "wrong result"; empty: survived
  emulator::Mode mode = emulator::Mode::kRandom;  // of that run
  uint64_t seed = 0;
  double seconds = 0;
  [[nodiscard]] bool is_killed() const { return !killed_by.empty(); }
};

// "mbarrier_wait at load.hpp:12 (role load): other parity"
[[nodiscard]] std::string to_string(const Mutant& mutant);

struct MutationScore {
  std::vector<Mutant> mutants;  // by file, line and kind
  double seconds = 0;
  [[nodiscard]] size_t killed() const;
};

struct MutationPlan {
  int max_runs = 20;
  // Instead of all kinds one kind per site, in rotation: a deterministic sample.
  bool is_sample = false;
  // A sample takes every stride-th site. Kernels that share code divide the sites by different
  // offsets.
  size_t stride = 1, offset = 0;
  // The limit of runs of one mutant, for known survivors. Empty: max_runs for all.
  std::function<int(const Mutant&)> max_runs_of;
};

// Runs the unchanged kernel in every mode to collect its sites, then each mutant with the seeds 1,
// 2, ... up to `max_runs`, in the modes of mutation_mode(). The unchanged kernel must be correct.
// `on_mutant(done, total)` is called before each.
MutationScore score_mutants(const EmulatedKernel& kernel, const MutationPlan& plan = {},
                            const std::function<void(size_t, size_t)>& on_mutant = {});

}  // namespace pagoda::emulate
