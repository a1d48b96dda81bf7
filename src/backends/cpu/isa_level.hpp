// Which instruction sets this machine can run (CPUID and XGETBV) and which one is in use.
#pragma once

#include <cstdint>

namespace pagoda::cpu {

// In order: each level contains those before it.
enum class IsaLevel : uint8_t { kScalar, kAvx2, kAvx512, kAvx512Bf16, kAmx };

inline constexpr int kNumIsaLevels = 5;

[[nodiscard]] const char* name(IsaLevel level);

// The highest level that processor and operating system both support. Asks Linux once for
// permission to use AMX tile data.
[[nodiscard]] IsaLevel detected_isa_level();

// The level in use: detected, capped by PAGODA_ISA or set_cpu_isa_level().
[[nodiscard]] IsaLevel active_isa_level();

// Whether bf16 calls are faster in fp32 than with vdpbf16ps, by CPU vendor: on Intel cores
// vdpbf16ps has half the rate of fp32 FMA (measured: README.md), on AMD cores since Zen 4 twice
// the rate. False on machines with AMX, and where PAGODA_ISA or set_cpu_isa_level() names the bf16
// level.
[[nodiscard]] bool is_f32_faster_than_bf16_dot(IsaLevel detected, IsaLevel cap, bool is_intel);
[[nodiscard]] bool is_f32_faster_than_bf16_dot();

}  // namespace pagoda::cpu
