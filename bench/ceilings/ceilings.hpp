// Measured limits of this machine: the most that a kernel can reach, independent of data sheets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/pinned_pool.hpp"

namespace pagoda::bench {

// A rate with one thread and with all of them, in units per second.
struct Rate {
  double one_thread = 0;
  double all_threads = 0;
  [[nodiscard]] double at(int32_t threads, int32_t all) const;  // linear between the two
};

struct ComputeCeiling {
  std::string dtype;        // "fp32" or "bf16"; "exp": exponentials instead of operations
  std::string isa;          // a level of cpu_isa_levels()
  std::string instruction;  // "vfmadd (zmm)"
  Rate flops;
};

struct MemoryCeiling {
  std::string level;              // "L2", "L3", "DRAM"
  int64_t working_set_bytes = 0;  // that each thread read
  int64_t capacity_bytes = 0;     // of one instance; 0 = no limit
  bool is_shared = false;         // one instance for all threads
  Rate bytes;
};

struct Ceilings {
  int32_t threads = 1;                  // threads of the parallel rates
  double clock_hz = 0;                  // measured, one busy core
  std::vector<ComputeCeiling> compute;  // lowest level first
  std::vector<MemoryCeiling> memory;    // nearest first

  // The highest compute ceiling of a dtype at or below an ISA level; bf16 falls back to fp32 on a
  // machine without bf16 instructions. Zero rates if nothing was measured.
  [[nodiscard]] Rate flops(const std::string& dtype, const std::string& isa) const;
  // Exponentials of the widest vectors at or below an ISA level.
  [[nodiscard]] Rate exponentials(const std::string& isa) const;
  [[nodiscard]] Rate dram() const;
};

// Measures every ISA level this machine has (CPUID, by cpu_isa_levels()); executes no other
// instruction. About one second.
[[nodiscard]] Ceilings measure_ceilings(int32_t threads);

}  // namespace pagoda::bench
