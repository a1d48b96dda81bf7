// Lists the mutants of a kernel and searches a run that detects each.
#include "testing/emulate/mutation_score.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace pagoda::emulate {
namespace {

using emulator::kModes;
using emulator::Mutation;
using emulator::MutationSites;

// A mutant may never end: its limit is this multiple of the unchanged kernel's steps.
constexpr uint64_t kStepFactor = 4;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs the mutant until a run detects it.
void find_killer(const EmulatedKernel& kernel, MutationSites& sites, uint64_t max_steps,
                 int max_runs, Mutant& mutant) {
  const auto start = std::chrono::steady_clock::now();
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
  mutant.seconds = seconds_since(start);
}

struct Planned {
  int site;
  Mutation kind;
};

std::vector<Planned> plan_mutants(const MutationSites& sites, const MutationPlan& plan) {
  std::vector<Planned> planned;
  for (size_t i = 0; i < sites.sites().size(); ++i) {
    const size_t turn = i + plan.offset;
    if (plan.is_sample && turn % plan.stride != 0) continue;
    std::vector<Planned> of_site;
    for (const Mutation kind : emulator::kMutations) {
      if (sites.sites()[i].kinds.has(kind)) of_site.push_back({static_cast<int>(i), kind});
    }
    if (plan.is_sample) of_site = {of_site[turn / plan.stride % of_site.size()]};
    planned.insert(planned.end(), of_site.begin(), of_site.end());
  }
  return planned;
}

}  // namespace

std::string to_string(const Mutant& mutant) {
  const emulator::MutationSite& site = mutant.site;
  std::string text = site.primitive + " at " + site.file + ":" + std::to_string(site.line);
  if (!site.role.empty()) text += " (role " + site.role + ")";
  return text + ": " + std::string(name(mutant.kind));
}

size_t MutationScore::killed() const {
  return static_cast<size_t>(std::count_if(
      mutants.begin(), mutants.end(), [](const Mutant& mutant) { return mutant.is_killed(); }));
}

MutationScore score_mutants(const EmulatedKernel& kernel, const MutationPlan& plan,
                            const std::function<void(size_t, size_t)>& on_mutant) {
  const auto start = std::chrono::steady_clock::now();
  MutationSites sites;
  uint64_t steps = 0;
  std::vector<emulator::MutationSite> noted;
  for (const emulator::Mode mode : kModes) {
    const Outcome outcome = kernel.run({.mode = mode, .mutation = &sites});
    steps = std::max(steps, outcome.result.statistics.steps);
    // A site's executions are counted in the first mode that executes it.
    noted.insert(noted.end(), sites.sites().begin() + static_cast<std::ptrdiff_t>(noted.size()),
                 sites.sites().end());
  }
  MutationScore score;
  const std::vector<Planned> planned = plan_mutants(sites, plan);
  for (size_t i = 0; i < planned.size(); ++i) {
    if (on_mutant) on_mutant(i, planned.size());
    Mutant mutant{.site = noted[static_cast<size_t>(planned[i].site)],
                  .kind = planned[i].kind,
                  .killed_by = {}};
    const int max_runs = plan.max_runs_of ? plan.max_runs_of(mutant) : plan.max_runs;
    sites.apply(planned[i].site, planned[i].kind);
    find_killer(kernel, sites, steps * kStepFactor, max_runs, mutant);
    score.mutants.push_back(std::move(mutant));
  }
  std::stable_sort(score.mutants.begin(), score.mutants.end(),
                   [](const Mutant& a, const Mutant& b) {
                     return std::tie(a.site.file, a.site.line) < std::tie(b.site.file, b.site.line);
                   });
  score.seconds = seconds_since(start);
  return score;
}

}  // namespace pagoda::emulate
