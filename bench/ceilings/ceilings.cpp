// Times the loops of kernels.hpp: best of several repeats, one thread and all threads, pinned.
#include "bench/ceilings/ceilings.hpp"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>

#include "bench/buffer.hpp"
#include "bench/ceilings/kernels.hpp"
#include "bench/machine.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRepeats = 5;

struct ComputeKernel {
  const char* dtype;
  const char* isa;
  const char* instruction;
  int64_t (*rounds)(int64_t);
};
constexpr std::array<ComputeKernel, 7> kComputeKernels = {{
    {"fp32", "scalar", "mulps + addps (xmm)", fp32_rounds_scalar},
    {"fp32", "avx2", "vfmadd (ymm)", fp32_rounds_avx2},
    {"fp32", "avx512", "vfmadd (zmm)", fp32_rounds_avx512},
    {"bf16", "avx512_bf16", "vdpbf16ps (zmm)", bf16_rounds_avx512_bf16},
    {"bf16", "amx", "tdpbf16ps (tile)", bf16_rounds_amx},
    {"exp", "avx2", "degree 5 (ymm)", exp_rounds_avx2},
    {"exp", "avx512", "degree 5 (zmm)", exp_rounds_avx512},
}};
constexpr std::array<const char*, 5> kLevels = {"scalar", "avx2", "avx512", "avx512_bf16", "amx"};

size_t rank(const std::string& level) {
  return static_cast<size_t>(std::find(kLevels.begin(), kLevels.end(), level) - kLevels.begin());
}

// Linux grants tile registers to a process on request only.
bool permit_tiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h, Linux 5.16
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// Runs `body(worker)` on every worker of the pool and returns the best wall time.
template <typename Body>
double best_seconds(PinnedPool& pool, int32_t workers, Body body) {
  double best = 1e300;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto start = Clock::now();
    pool.parallel(
        workers, [](void* context, int32_t i) { (*static_cast<Body*>(context))(i); }, &body);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

double measure_flops(PinnedPool& pool, int32_t workers, const ComputeKernel& kernel) {
  // Rounds for about 8 ms: long compared with the start of a parallel region.
  int64_t rounds = 1000;
  for (;; rounds *= 4) {
    const auto start = Clock::now();
    kernel.rounds(rounds);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds > 2e-3) {
      rounds = static_cast<int64_t>(static_cast<double>(rounds) * 8e-3 / seconds) + 1;
      break;
    }
  }
  int64_t operations = 0;
  const double seconds = best_seconds(pool, workers, [&](int32_t i) {
    const int64_t done = kernel.rounds(rounds);
    if (i == 0) operations = done;
  });
  return static_cast<double>(operations) * workers / seconds;
}

using ReadFunction = uint64_t (*)(const void*, int64_t);

ReadFunction widest_read(const std::vector<std::string>& levels) {
  const auto has = [&](const char* level) {
    return std::find(levels.begin(), levels.end(), level) != levels.end();
  };
  if (has("avx512")) return read_avx512;
  return has("avx2") ? read_avx2 : read_scalar;
}

// Every worker reads its own part, `passes` times.
double measure_read(PinnedPool& pool, int32_t workers, ReadFunction read, const std::byte* data,
                    int64_t bytes, int64_t passes) {
  volatile uint64_t sink = 0;
  const double seconds = best_seconds(pool, workers, [&](int32_t i) {
    uint64_t all = 0;
    for (int64_t pass = 0; pass < passes; ++pass) all ^= read(data + i * bytes, bytes) + 1;
    if (i == 0) sink = all;
  });
  static_cast<void>(sink);
  return static_cast<double>(bytes) * static_cast<double>(passes) * workers / seconds;
}

int64_t round_to_kib(int64_t bytes) { return bytes / 1024 * 1024; }

void measure_memory(PinnedPool& pool, const Machine& machine,
                    const std::vector<std::string>& levels, Ceilings& result) {
  const ReadFunction read = widest_read(levels);
  const int32_t threads = result.threads;
  // DRAM: four times the last cache in all, at most 1 GiB and a quarter of the free memory.
  const int64_t dram_total = std::min(
      {std::max<int64_t>(4 * machine.largest_cache_bytes(), int64_t{256} << 20), int64_t{1} << 30,
       std::max<int64_t>(machine.free_memory_bytes / 4, int64_t{64} << 20)});
  const Buffer buffer(dram_total);
  if (buffer.data() == nullptr) return;
  std::memset(buffer.data(), 1, static_cast<size_t>(dram_total));
  const auto measure = [&](const char* level, int64_t capacity, int64_t one, int64_t all,
                           int64_t passes) {
    one = round_to_kib(one);
    all = round_to_kib(all);
    if (all <= 0) return;
    MemoryCeiling ceiling{.level = level,
                          .working_set_bytes = all,
                          .capacity_bytes = capacity,
                          .is_shared = std::string_view(level) == "L3",
                          .bytes = {}};
    ceiling.bytes.one_thread = measure_read(pool, 1, read, buffer.data(), one, passes);
    ceiling.bytes.all_threads = measure_read(pool, threads, read, buffer.data(), all, passes);
    result.memory.push_back(ceiling);
  };
  const int64_t l2 = machine.cache_bytes(2);
  const int64_t l3 = machine.cache_bytes(3);
  if (l2 > 0) measure("L2", l2, l2 / 2, l2 / 2, 32);
  // A quarter of the last cache, shared by the workers, but beyond the private caches of each.
  const int64_t l3_piece = std::max(l3 / 4 / threads, 2 * l2);
  if (l3 > 4 * l2 && l3_piece * threads < l3) measure("L3", l3, l3_piece, l3_piece, 2);
  measure("DRAM", 0, dram_total, dram_total / threads, 1);
}

double measure_clock() {
  double best = 1e300;
  constexpr int64_t kRounds = 300000;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto start = Clock::now();
    count_cycles_scalar(kRounds);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return static_cast<double>(kRounds) * 16 / best;
}

}  // namespace

double Rate::at(int32_t threads, int32_t all) const {
  if (threads <= 1 || all <= 1) return one_thread;
  if (threads >= all) return all_threads;
  return one_thread + (all_threads - one_thread) * (threads - 1) / (all - 1);
}

Rate Ceilings::flops(const std::string& dtype, const std::string& isa) const {
  Rate best;
  for (const ComputeCeiling& ceiling : compute) {
    const bool counts = ceiling.dtype == "fp32" || (ceiling.dtype == "bf16" && dtype == "bf16");
    if (counts && rank(ceiling.isa) <= rank(isa) && ceiling.flops.one_thread > best.one_thread) {
      best = ceiling.flops;
    }
  }
  return best;
}

Rate Ceilings::exponentials(const std::string& isa) const {
  Rate best;
  for (const ComputeCeiling& ceiling : compute) {
    if (ceiling.dtype == "exp" && rank(ceiling.isa) <= rank(isa)) best = ceiling.flops;
  }
  return best;
}

Rate Ceilings::dram() const { return memory.empty() ? Rate{} : memory.back().bytes; }

Ceilings measure_ceilings(int32_t threads) {
  Ceilings result;
  result.threads = threads;
  const std::vector<std::string> levels = cpu_isa_levels();
  const bool has_tiles = permit_tiles();  // before the pool: threads inherit it
  PinnedPool pool(threads);
  for (const ComputeKernel& kernel : kComputeKernels) {
    const std::string isa = kernel.isa;
    if (std::find(levels.begin(), levels.end(), isa) == levels.end()) continue;
    if (isa == "amx" && !has_tiles) continue;
    result.compute.push_back(
        {kernel.dtype, isa, kernel.instruction,
         Rate{measure_flops(pool, 1, kernel), measure_flops(pool, threads, kernel)}});
  }
  result.clock_hz = measure_clock();
  measure_memory(pool, describe_machine(), levels, result);
  return result;
}

}  // namespace pagoda::bench
