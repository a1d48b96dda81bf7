// Which synchronisation a kernel executes, and the one of them that a run leaves out.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "arch/emu/runtime/options.hpp"
#include "arch/emu/runtime/shadow_memory.hpp"

namespace pagoda::emulator {

// The mode for one of the seeds 1, 2, ... with which a mutant is tried: each mode once, then
// random, which finds most.
[[nodiscard]] inline Mode mutation_mode(uint64_t seed) {
  return seed == 2   ? Mode::kRoundRobin
         : seed == 3 ? Mode::kEager
         : seed == 4 ? Mode::kLazy
                     : Mode::kRandom;
}

// A call of a synchronising primitive in the source. The same line in two roles is two sites.
struct MutationSite {
  std::string primitive;
  std::string file;
  uint32_t line = 0;
  std::string role;
  uint64_t executions = 0;  // by one thread each
};

class MutationSites {
 public:
  // Notes the execution. True: leave it out.
  bool is_dropped(const char* primitive, const Where& where, const char* role);

  [[nodiscard]] const std::vector<MutationSite>& sites() const { return sites_; }
  void drop(int site) { dropped_ = site; }
  void drop_none() { dropped_ = -1; }

 private:
  // A call as its executions see it: cheap to compare. Equal texts may have several addresses.
  struct Call {
    const void* primitive;
    const void* file;
    const void* role;
    uint32_t line, column;
    bool operator==(const Call&) const = default;
  };
  struct HashOfCall {
    size_t operator()(const Call& call) const;
  };
  int site_of(const char* primitive, const Where& where, const char* role);

  std::vector<MutationSite> sites_;
  std::unordered_map<Call, int, HashOfCall> known_calls_;
  std::unordered_map<std::string, int> index_;
  int dropped_ = -1;
};

}  // namespace pagoda::emulator
