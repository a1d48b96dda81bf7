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

// Whether bf16 calls are faster in fp32 than by vdpbf16ps. Known by the maker: Intel's cores give
// vdpbf16ps half the rate of fp32 FMA (measured: README.md), AMD's since Zen 4 twice. Asked where
// the machine has no AMX; a cap that names the level is a wish for it.
[[nodiscard]] bool is_f32_faster_than_bf16_dot(IsaLevel detected, IsaLevel cap, bool is_intel);
[[nodiscard]] bool is_f32_faster_than_bf16_dot();

}  // namespace pagoda::cpu
