// Mutants: which there are, and the hunt for a run that shows each.
#include "kernels/emulated/mutation_score.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace pagoda::emulated {
namespace {

using emulator::kModes;
using emulator::MutationSites;

// A mutant may run on for ever: it gets so many times the steps of the kernel as it is.
constexpr uint64_t kStepFactor = 20;

// Runs the mutant until a run shows it.
void hunt(const EmulatedKernel& kernel, MutationSites& sites, uint64_t max_steps, int max_runs,
          Mutant& mutant) {
  while (!mutant.is_killed() && mutant.runs < max_runs) {
    mutant.seed = static_cast<uint64_t>(++mutant.runs);
    mutant.mode = emulator::mutation_mode(mutant.seed);
    const Outcome outcome = kernel.run({.mode = mutant.mode,
                                        .seed = mutant.seed,
                                        .max_reports = 1,
                                        .max_steps = max_steps,
                                        .mutation = &sites});
    if (!outcome.result.is_clean()) {
      mutant.killed_by = name(outcome.result.reports.front().kind);
    } else if (outcome.mismatches != 0) {
      mutant.killed_by = "wrong result";
    }
  }
}

}  // namespace

size_t MutationScore::killed() const {
  return static_cast<size_t>(std::count_if(
      mutants.begin(), mutants.end(), [](const Mutant& mutant) { return mutant.is_killed(); }));
}

MutationScore score_mutants(const EmulatedKernel& kernel, int max_runs,
                            const std::function<void(size_t, size_t)>& on_mutant) {
  const auto start = std::chrono::steady_clock::now();
  MutationSites sites;
  uint64_t steps = 0;
  MutationScore score;
  for (const emulator::Mode mode : kModes) {
    const Outcome outcome = kernel.run({.mode = mode, .mutation = &sites});
    steps = std::max(steps, outcome.result.statistics.steps);
    // A site's executions are those of the first mode that came there.
    for (size_t i = score.mutants.size(); i < sites.sites().size(); ++i) {
      score.mutants.push_back({.site = sites.sites()[i], .killed_by = {}});
    }
  }
  for (size_t i = 0; i < score.mutants.size(); ++i) {
    if (on_mutant) on_mutant(i, score.mutants.size());
    sites.drop(static_cast<int>(i));
    hunt(kernel, sites, steps * kStepFactor, max_runs, score.mutants[i]);
  }
  std::stable_sort(score.mutants.begin(), score.mutants.end(),
                   [](const Mutant& a, const Mutant& b) {
                     return std::tie(a.site.file, a.site.line) < std::tie(b.site.file, b.site.line);
                   });
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return score;
}

}  // namespace pagoda::emulated
