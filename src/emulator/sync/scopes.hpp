// Releases and acquires at scopes: of atomics, of fences, and of arrivals from other CTAs at a
// barrier. The two synchronise only where each scope includes the other's thread ("morally strong",
// PTX memory model); other pairs are recorded to explain races.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "arch/layout/where.hpp"
#include "emulator/memory/shadow_memory.hpp"
#include "emulator/sync/scope.hpp"
#include "emulator/sync/vector_clock.hpp"

namespace pagoda::emulator {

struct Cta;
struct Thread;

// What a thread of one CTA has released at one scope.
struct Released {
  Clocks clocks;
  uint32_t cta = 0;
  Scope scope = Scope::kCta;
  const char* primitive = "";  // of the last release that was joined
  Where where;
};

class Scopes {
 public:
  explicit Scopes(uint32_t cluster_size) : cluster_size_(cluster_size) {}

  // Joins `released` into the entry of its CTA and scope.
  static void release_to(std::vector<Released>& target, const Released& released);
  // `thread` acquires at `scope` those of `source` that it synchronises with.
  void acquire(Thread& thread, const std::vector<Released>& source, Scope scope,
               const char* primitive, const Where& where);

  // An atomic access of `thread` to the word at `address`: what it releases and acquires (release
  // and acquire patterns of the PTX memory model, those by fences included).
  struct AtomicUse {
    Scope scope;
    bool reads, writes, acquires, releases;
  };
  void synchronise(Thread& thread, const void* address, AtomicUse use, const char* primitive,
                   const Where& where);
  void thread_fence(Thread& thread, Scope scope, const Where& where);
  // Forgets the words in the shared memory of a CTA that has ended: another may get that memory.
  void forget(const Cta& cta);

  // The release and the acquire that would have ordered the access `earlier`, had their scopes been
  // wide enough; empty: there are none.
  [[nodiscard]] std::string narrow_link(const Stamp& earlier) const;

 private:
  // A release and the acquire that observed it, at scopes too narrow to synchronise.
  struct NarrowLink {
    Released released;
    uint32_t cta = 0;  // of the acquire, as what follows
    Scope scope = Scope::kCta;
    const char* primitive = "";
    Where where;
  };

  uint32_t cluster_size_;
  std::unordered_map<const void*, std::vector<Released>> words_;  // released by atomics, by address
  std::vector<NarrowLink> narrow_links_;                          // by the two lines
};

}  // namespace pagoda::emulator
