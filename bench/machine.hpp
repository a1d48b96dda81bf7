// Properties of the machine: names, counts, caches. ceilings.hpp measures its limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda::bench {

struct Cache {
  int32_t level = 0;
  std::string type;         // "Data", "Instruction", "Unified"
  int64_t bytes = 0;        // of one instance
  int32_t shared_cpus = 1;  // logical CPUs that share one instance
};

struct Machine {
  std::string cpu_model;     // "unknown" if the system does not report it
  std::string architecture;  // "x86_64"
  std::string operating_system;
  int32_t logical_cpus = 0;    // online
  int32_t allowed_cpus = 0;    // this process's affinity mask
  int32_t physical_cores = 0;  // 0 = unknown
  int64_t memory_bytes = 0;
  int64_t free_memory_bytes = 0;  // without swapping
  std::vector<Cache> caches;      // of CPU 0, without instruction caches
  double nominal_mhz = 0;         // as reported now; 0 = not reported

  // Bytes of the data or unified cache of a level; 0 = none.
  [[nodiscard]] int64_t cache_bytes(int32_t level) const;
  [[nodiscard]] int64_t largest_cache_bytes() const;
};

[[nodiscard]] Machine describe_machine();

}  // namespace pagoda::bench
