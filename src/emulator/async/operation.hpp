// An operation of an asynchronous engine, and the queues that order operations.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "arch/layout/where.hpp"
#include "emulator/memory/shadow_memory.hpp"
#include "emulator/sync/vector_clock.hpp"

namespace pagoda::emulator {

struct Cta;
struct Thread;

// A thread issues it; it completes later.
struct AsyncOperation {
  const char* primitive = "";
  std::string details;  // for traces: what distinguishes it from others of its primitive
  Where where;
  Thread* issuer = nullptr;
  Cta* cta = nullptr;      // whose agent it uses
  Agent agent = kNoAgent;  // that makes its accesses
  uint32_t time = 0;
  uint64_t issued_step = 0;             // for traces
  std::shared_ptr<const Clocks> known;  // the clocks of the issuer
  bool is_detached = false;             // the CTA may end before a thread has waited for it
  bool may_touch_global = true;         // as its issuer might
  // Executes it: makes its accesses, checked by Memory, and arrives at barriers.
  std::function<void(AsyncOperation&)> run;

  [[nodiscard]] Access access(Proxy proxy = Proxy::kAsync) const;
  [[nodiscard]] Clocks completion() const;  // that it has happened
};

// Operations that one engine executes in order. Two queues are unordered.
struct AsyncQueue {
  std::deque<std::unique_ptr<AsyncOperation>> operations;
  bool is_listed = false;  // in AsyncEngines::ready_
};

}  // namespace pagoda::emulator
