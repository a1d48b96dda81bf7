// The synchronising calls of a kernel, and the mutant of a run: a change to one of them. A site is
// a call in the source, a kind is a way to do it wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arch/layout/where.hpp"
#include "emulator/machine/options.hpp"

namespace pagoda::emulator {

using arch::Where;

enum class Mutation : uint8_t {
  kNone,
  kDrop,          // the call is left out
  kParity,        // a wait for the other parity
  kMore,          // waits for an arrival, 16 bytes or a warp more; allows a group more in flight
  kFewer,         // waits for an arrival, 16 bytes or a warp fewer
  kNarrow,        // the next narrower scope that excludes a thread of the launch
  kOtherBarrier,  // arrives at the mbarrier before it in shared memory
  kShared,        // the memory of another stage or stream: a fault by name (arch/fault.hpp)
  kValue,         // a wrong value in the arithmetic (arch/fault.hpp)
};
inline constexpr Mutation kMutations[] = {
    Mutation::kDrop,   Mutation::kParity,       Mutation::kMore,   Mutation::kFewer,
    Mutation::kNarrow, Mutation::kOtherBarrier, Mutation::kShared, Mutation::kValue};
[[nodiscard]] std::string_view name(Mutation kind);

// A set of kinds.
class Mutations {
 public:
  constexpr Mutations() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a kind is the set of itself
  constexpr Mutations(Mutation kind)
      : bits_(kind == Mutation::kNone ? 0 : 1U << static_cast<uint32_t>(kind)) {}
  friend constexpr Mutations operator|(Mutations a, Mutations b) {
    Mutations both;
    both.bits_ = a.bits_ | b.bits_;
    return both;
  }
  [[nodiscard]] constexpr bool has(Mutation kind) const {
    return (bits_ & Mutations(kind).bits_) != 0;
  }
  [[nodiscard]] constexpr bool is_empty() const { return bits_ == 0; }

 private:
  uint32_t bits_ = 0;
};
[[nodiscard]] constexpr Mutations operator|(Mutation a, Mutation b) {
  return Mutations(a) | Mutations(b);
}

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
  Mutations kinds;          // that change at least one execution
  uint64_t executions = 0;  // by one thread each
};

class MutationSites {
 public:
  // Counts an execution of a call that can be done wrong in `kinds`. Returns the kind under test if
  // this is its site.
  Mutation at(const char* primitive, const Where& where, const char* role, Mutations kinds);
  // The same for a fault by name: all lines and roles that name it are one site.
  Mutation at_name(const char* fault, const Where& where, Mutations kinds);

  [[nodiscard]] const std::vector<MutationSite>& sites() const { return sites_; }
  void apply(int site, Mutation kind) {
    site_ = site;
    kind_ = kind;
  }
  void drop(int site) { apply(site, Mutation::kDrop); }
  void apply_none() { site_ = -1; }

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
  int site_of(std::string key, const char* primitive, const Where& where, const char* role);
  Mutation note(int site, Mutations kinds);

  std::vector<MutationSite> sites_;
  std::unordered_map<Call, int, HashOfCall> known_calls_;
  std::unordered_map<std::string, int> index_;
  int site_ = -1;  // under test
  Mutation kind_ = Mutation::kNone;
};

}  // namespace pagoda::emulator
