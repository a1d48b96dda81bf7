// Converts and multiplies; AVX2 where the machine has it.
#include "emulator/async/matrix_math.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "core/element.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define PAGODA_MATRIX_AVX2 1
#else
#define PAGODA_MATRIX_AVX2 0
#endif

namespace pagoda::emulator {
namespace {

template <class Element, class Convert>
void decode(const void* from, int count, float* to, int stride, Convert convert) {
  const auto* source = static_cast<const std::byte*>(from);
  for (int i = 0; i < count; ++i) {
    Element bits;
    std::memcpy(&bits, source + static_cast<size_t>(i) * sizeof(Element), sizeof(Element));
    to[static_cast<ptrdiff_t>(i) * stride] = convert(bits);
  }
}

// core::f16_to_float without branches.
float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const float scaled = std::bit_cast<float>(static_cast<uint32_t>(half & 0x7fffU) << 13) * 0x1p112F;
  const uint32_t special = (half & 0x7c00U) == 0x7c00U ? 0x7f800000U : 0U;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | sign | special);
}

const std::array<float, 256>& float8_values() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = core::f8e4m3_to_float(static_cast<uint8_t>(i));
    }
    return values;
  }();
  return table;
}

// The sum of a row stays in order: n runs inside k.
void multiply_plainly(int m, int n, int k, const float* a, const float* b, float* d) {
  for (int row = 0; row < m; ++row) {
    for (int i = 0; i < k; ++i) {
      const float factor = a[row * k + i];
      for (int column = 0; column < n; ++column) d[row * n + column] += factor * b[i * n + column];
    }
  }
}

// Fused multiply-add changes nothing where products are exact (all but those of bf16 that fall out
// of fp32's range).
#if PAGODA_MATRIX_AVX2
#define PAGODA_AVX2 __attribute__((target("avx2,fma")))

using Vector [[gnu::vector_size(32)]] = float;
using Unaligned [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
constexpr int kLanes = 8;

// Rows x 8 Vectors elements of d, kept in registers over all k.
template <int Rows, int Vectors>
PAGODA_AVX2 void multiply_block(int n, int k, const float* a, const float* b, float* d) {
  Vector sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) {
      sum[r][v] = *reinterpret_cast<const Unaligned*>(d + r * n + v * kLanes);
    }
  }
  for (int i = 0; i < k; ++i) {
    for (int v = 0; v < Vectors; ++v) {
      const Vector line = *reinterpret_cast<const Unaligned*>(b + i * n + v * kLanes);
      for (int r = 0; r < Rows; ++r) sum[r][v] += a[r * k + i] * line;
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) {
      *reinterpret_cast<Unaligned*>(d + r * n + v * kLanes) = sum[r][v];
    }
  }
}

PAGODA_AVX2 void multiply_avx2(int m, int n, int k, const float* a, const float* b, float* d) {
  for (int column = 0; column < n;) {
    const bool is_wide = n - column >= 2 * kLanes;
    for (int row = 0; row < m; row += 4) {
      const float* const a_rows = a + row * k;
      float* const d_rows = d + row * n + column;
      if (is_wide) {
        multiply_block<4, 2>(n, k, a_rows, b + column, d_rows);
      } else {
        multiply_block<4, 1>(n, k, a_rows, b + column, d_rows);
      }
    }
    column += is_wide ? 2 * kLanes : kLanes;
  }
}

#undef PAGODA_AVX2
#endif

}  // namespace

void decode_elements(ElementType type, const void* from, int count, float* to, int stride) {
  switch (type) {
    case ElementType::kBFloat16:
      decode<uint16_t>(from, count, to, stride, core::bf16_to_float);
      return;
    case ElementType::kHalf: decode<uint16_t>(from, count, to, stride, half_to_float); return;
    case ElementType::kFloat8E4M3: {
      const auto& values = float8_values();
      decode<uint8_t>(from, count, to, stride, [&](uint8_t bits) { return values[bits]; });
      return;
    }
    case ElementType::kTFloat32:
      decode<uint32_t>(from, count, to, stride,
                       [](uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000U); });
      return;
    case ElementType::kFloat8E5M2:  // the upper half of an fp16
      decode<uint8_t>(from, count, to, stride,
                      [](uint8_t bits) { return half_to_float(static_cast<uint16_t>(bits << 8)); });
      return;
    case ElementType::kUInt8:
      decode<uint8_t>(from, count, to, stride,
                      [](uint8_t bits) { return static_cast<float>(bits); });
      return;
    case ElementType::kInt8:
      decode<int8_t>(from, count, to, stride,
                     [](int8_t value) { return static_cast<float>(value); });
      return;
  }
}

void multiply_accumulate(int m, int n, int k, const float* a, const float* b, float* d) {
  assert(m % 4 == 0 && n % 8 == 0);
#if PAGODA_MATRIX_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2) return multiply_avx2(m, n, k, a, b, d);
#endif
  multiply_plainly(m, n, k, a, b, d);
}

}  // namespace pagoda::emulator
