// CPU feature detection and the process-wide cap; the public functions of backend.hpp about it.
#include "backends/cpu/isa_level.hpp"

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "pagoda/backend.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace pagoda::cpu {
namespace {

constexpr const char* kNames[kNumIsaLevels] = {"scalar", "avx2", "avx512", "avx512_bf16", "amx"};

#if defined(__x86_64__)
struct Cpuid {
  unsigned a = 0, b = 0, c = 0, d = 0;
  Cpuid(unsigned leaf, unsigned subleaf) { __get_cpuid_count(leaf, subleaf, &a, &b, &c, &d); }
};

constexpr bool bit(unsigned word, int index) { return ((word >> index) & 1U) != 0; }

uint64_t enabled_state() {  // XCR0: the register state that the operating system saves
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Linux grants the 8 KiB of tile data per process and on request only.
bool amx_permitted() {
#if defined(__linux__)
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
#else
  return false;
#endif
}

IsaLevel detect() {
  const Cpuid leaf1(1, 0);
  if (!bit(leaf1.c, 27)) return IsaLevel::kScalar;  // OSXSAVE: without it xgetbv faults
  const uint64_t state = enabled_state();
  const Cpuid leaf7(7, 0);
  const bool has_avx2 = (state & 0x6) == 0x6 && bit(leaf7.b, 5) && bit(leaf1.c, 12) &&
                        bit(leaf1.c, 29) && bit(leaf1.c, 28);  // AVX2, FMA, F16C, AVX
  if (!has_avx2) return IsaLevel::kScalar;
  const bool has_avx512 = (state & 0xe6) == 0xe6 && bit(leaf7.b, 16) && bit(leaf7.b, 17) &&
                          bit(leaf7.b, 30) && bit(leaf7.b, 31);  // F, DQ, BW, VL
  if (!has_avx512) return IsaLevel::kAvx2;
  const Cpuid leaf7_1(7, 1);
  if (!bit(leaf7_1.a, 5)) return IsaLevel::kAvx512;
  const bool has_amx = (state & 0x60000) == 0x60000 && bit(leaf7.d, 24) && bit(leaf7.d, 22);
  return has_amx && amx_permitted() ? IsaLevel::kAmx : IsaLevel::kAvx512Bf16;
}
#else
IsaLevel detect() { return IsaLevel::kScalar; }
#endif

std::optional<IsaLevel> parse(const std::string& text) {
  for (int i = 0; i < kNumIsaLevels; ++i) {
    if (text == kNames[i]) return static_cast<IsaLevel>(i);
  }
  return std::nullopt;
}

constexpr const char* kMustBe = "must be scalar, avx2, avx512, avx512_bf16 or amx";

// PAGODA_ISA as of the first call.
const std::string& environment_isa() {
  static const std::string text = [] {
    const char* value = std::getenv("PAGODA_ISA");
    return std::string(value == nullptr ? "" : value);
  }();
  return text;
}

// Aligned to its size: otherwise clang calls libatomic.
struct alignas(2) Cap {
  IsaLevel level = IsaLevel::kAmx;
  bool is_valid = true;  // false: PAGODA_ISA names no level
};

Cap initial_cap() {
  if (environment_isa().empty()) return {};
  const std::optional<IsaLevel> parsed = parse(environment_isa());
  return {parsed.value_or(IsaLevel::kAmx), parsed.has_value()};
}

std::atomic<Cap>& cap() {
  static std::atomic<Cap> value{initial_cap()};
  return value;
}

bool is_intel() {
#if defined(__x86_64__)
  const Cpuid leaf0(0, 0);
  return leaf0.b == signature_INTEL_ebx && leaf0.c == signature_INTEL_ecx &&
         leaf0.d == signature_INTEL_edx;
#else
  return false;
#endif
}

}  // namespace

const char* name(IsaLevel level) { return kNames[static_cast<int>(level)]; }

IsaLevel detected_isa_level() {
  static const IsaLevel level = detect();
  return level;
}

IsaLevel active_isa_level() {
  const IsaLevel limit = cap().load(std::memory_order_relaxed).level;
  return limit < detected_isa_level() ? limit : detected_isa_level();
}

bool is_f32_faster_than_bf16_dot(IsaLevel detected, IsaLevel cap, bool is_intel) {
  return is_intel && detected == IsaLevel::kAvx512Bf16 && cap != IsaLevel::kAvx512Bf16;
}

bool is_f32_faster_than_bf16_dot() {
  static const bool kIsIntel = is_intel();
  const Cap limit = cap().load(std::memory_order_relaxed);
  return is_f32_faster_than_bf16_dot(detected_isa_level(), limit.level, kIsIntel);
}

}  // namespace pagoda::cpu

namespace pagoda {

std::vector<std::string> cpu_isa_levels() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(cpu::detected_isa_level()); ++i) {
    names.emplace_back(cpu::kNames[i]);
  }
  return names;
}

std::string cpu_isa_level() { return cpu::name(cpu::active_isa_level()); }

Status set_cpu_isa_level(const std::string& level) {
  const auto parsed = cpu::parse(level);
  if (!parsed) {
    return Status::invalid("level", "\"" + level + "\"", cpu::kMustBe);
  }
  if (*parsed > cpu::detected_isa_level()) {
    return Status::invalid(
        "level", level,
        std::string("this machine goes up to ") + cpu::name(cpu::detected_isa_level()));
  }
  cpu::cap().store({.level = *parsed}, std::memory_order_relaxed);
  return {};
}

Status check_cpu_isa() {
  if (cpu::cap().load(std::memory_order_relaxed).is_valid) return {};
  return Status::invalid("PAGODA_ISA", "\"" + cpu::environment_isa() + "\"", cpu::kMustBe);
}

}  // namespace pagoda
