// The five kinds of finding. A report names the thread, the primitive, the line and the fault.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/machine/options.hpp"

namespace pagoda::emulator {

enum class ReportKind : uint8_t {
  kRace,           // two accesses, one of them a write, that nothing orders
  kDeadlock,       // nothing can run any more
  kUninitialised,  // a read of memory that nothing wrote
  kBounds,         // outside of the memory, or not aligned as the instruction requires
  kProtocol,       // an instruction used against its rules
};
[[nodiscard]] std::string_view name(ReportKind kind);

struct Report {
  ReportKind kind;
  std::string kernel;
  std::string who;        // "CTA 0, warp 4, lane 0, role load"
  std::string primitive;  // "tma_load"
  std::string file;       // of the call that was being executed
  uint32_t line = 0;
  std::string message;     // one line, then what helps, indented
  std::string other_file;  // of the earlier access of a race
  uint32_t other_line = 0;
  Mode mode = Mode::kRandom;  // mode and seed replay the run
  uint64_t seed = 0;
};

// "race at roles.hpp:41 ..." with the message below.
[[nodiscard]] std::string to_string(const Report& report);

}  // namespace pagoda::emulator
