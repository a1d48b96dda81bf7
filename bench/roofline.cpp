// The slowest of arithmetic, exponentials and memory, each as if it were alone.
#include "bench/roofline.hpp"

namespace pagoda::bench {
namespace {

double divide(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

// The nearest level whose capacity holds the working set; the last one holds everything. Repeated
// calls then find their data there.
const MemoryCeiling* level_for(const Ceilings& ceilings, double bytes, int32_t threads) {
  for (const MemoryCeiling& level : ceilings.memory) {
    const double share = level.is_shared ? bytes : bytes / threads;
    if (level.capacity_bytes == 0 || share <= static_cast<double>(level.capacity_bytes)) {
      return &level;
    }
  }
  return nullptr;
}

}  // namespace

Bound roofline(const Ceilings& ceilings, const Work& work, const std::string& isa,
               int32_t threads) {
  Bound bound;
  const auto at = [&](const Rate& rate) { return rate.at(threads, ceilings.threads); };
  bound.compute_seconds = divide(work.flops, at(ceilings.flops(work.dtype, isa)));
  bound.exp_seconds = divide(work.exponentials, at(ceilings.exponentials(isa)));
  if (const MemoryCeiling* level = level_for(ceilings, work.bytes, threads)) {
    bound.memory_seconds = divide(work.bytes, at(level->bytes));
    bound.memory_level = level->level;
  }
  bound.seconds = bound.compute_seconds;
  bound.limit = "compute";
  if (bound.exp_seconds > bound.seconds) {
    bound.seconds = bound.exp_seconds;
    bound.limit = "exp";
  }
  if (bound.memory_seconds > bound.seconds) {
    bound.seconds = bound.memory_seconds;
    bound.limit = bound.memory_level == "DRAM" ? "DRAM" : bound.memory_level == "L3" ? "L3" : "L2";
  }
  return bound;
}

}  // namespace pagoda::bench
