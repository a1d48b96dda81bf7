// How a kernel is emulated.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::emulator {

// The order in which threads run and operations complete. All modes are deterministic for a seed.
enum class Mode : uint8_t {
  kRoundRobin,  // threads in turn; an asynchronous operation completes every few switches
  kRandom,      // any thread that can run, or any operation that may complete
  kEager,       // asynchronous operations complete as soon as they are issued
  kLazy,        // asynchronous operations complete only when no thread can run
};
[[nodiscard]] std::string_view name(Mode mode);
[[nodiscard]] std::optional<Mode> parse_mode(std::string_view text);
inline constexpr Mode kModes[] = {Mode::kRoundRobin, Mode::kRandom, Mode::kEager, Mode::kLazy};

// Which MMAs of one thread are ordered by their issue (Blackwell's tcgen05.mma).
enum class MmaOrder : uint8_t {
  kIssue,  // all, in the order of their issue, as published kernels assume (docs/decisions/0026)
  kIsa,    // those that the ISA lists: the same cta_group, accumulator, shape and kind; and an MMA
           // after a copy into tensor memory. Others race if they touch the same columns.
};

class Tracer;
class MutationSites;

struct Options {
  Mode mode = Mode::kRandom;
  uint64_t seed = 1;
  int resident_clusters = 4;           // more of the grid starts as these end
  int max_reports = 8;                 // the run ends at this many
  uint64_t max_steps = 1'000'000'000;  // calls of synchronising primitives; then the run ends
  // Operands of matrix products that nothing wrote are poison (NaN). It reaches the result unless a
  // mask drops it. True: every such read is reported.
  bool report_unwritten_operands = false;
  MmaOrder mma_order = MmaOrder::kIssue;
  Tracer* tracer = nullptr;           // trace.hpp
  MutationSites* mutation = nullptr;  // mutation.hpp
};

}  // namespace pagoda::emulator
