// What softmax does to a batch of a row's scores in registers; where they come from and where P goes is
// each kernel's.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/math.hpp"
#include "kernels/common/kinds.hpp"
#include "kernels/common/row.hpp"
#include "kernels/common/row_epilogue.hpp"
#include "kernels/common/work_ring.hpp"
#include "softmax/exp2.hpp"

namespace pagoda::kernels::sm100 {

// A part of the exponentials is a polynomial, but on sm_103, which computes twice as many a cycle.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1030
inline constexpr bool kHasPolynomials = false;
#else
inline constexpr bool kHasPolynomials = true;
#endif

// General scores: products become scores in log2 units. Hidden keys become -infinity.
template <ScoreClass scores_class, bool is_masked, int batch, class Row>
PAGODA_DEVICE void change_scores(const AttentionParams& params, const WorkReader& reader,
                                 const Row& row, int32_t column, uint32_t (&s)[batch]) {
  uint32_t keep = row.keys.keep32(column);
  if constexpr (scores_class == ScoreClass::kGeneral) {
    const Work work = reader.work();
    const float k_scale = params.kv_scales.k_scale(work.kv_head);
    float scores[batch];
    PAGODA_UNROLL
    for (int i = 0; i < batch; ++i) {
      scores[i] = params.score_map(core::bits_to_float(s[i]) * k_scale);
    }
    if (row.is_valid) {
      add_biases<batch>(
          params, work.rows, row, [&scores](int i) -> float& { return scores[i]; },
          [column](int i) { return column + i; });
      if (is_masked && keep != 0) {
        keep = params.mask.row(work.rows, row.token, row.q_head).keep32(column);
      }
    }
    PAGODA_UNROLL
    for (int i = 0; i < batch; ++i) s[i] = core::float_to_bits(scores[i]);
  }
  if constexpr (is_masked) {
    keep = arch::mutable_value("one key dropped", keep, keep & keep >> 1U);
    keep = arch::mutable_value("one hidden key kept", keep, keep | keep << 1U);
    constexpr uint32_t hidden = 0xff800000U;  // -infinity
    PAGODA_UNROLL
    for (int i = 0; i < batch; ++i) {
      if ((keep >> static_cast<uint32_t>(i) & 1U) == 0) s[i] = hidden;
    }
  }
}

template <int batch>
PAGODA_DEVICE float max_of(const uint32_t (&s)[batch], float largest) {
  float chains[4] = {largest, core::bits_to_float(s[0]), core::bits_to_float(s[1]),
                     core::bits_to_float(s[2])};
  PAGODA_UNROLL
  for (int i = 3; i + 1 < batch; i += 2) {
    float& chain = chains[i / 2 % 4];
    chain = arch::max3(chain, core::bits_to_float(s[i]), core::bits_to_float(s[i + 1]));
  }
  chains[0] = arch::max3(chains[0], chains[1], core::bits_to_float(s[batch - 1]));
  return arch::max3(chains[0], chains[2], chains[3]);
}

// P of a batch, packed, and its sums in four chains. Where `has_polynomials`, a quarter of the
// exponentials are a polynomial: the special-function unit has 16 a cycle, the other pipes are idle.
template <class T, int batch>
PAGODA_DEVICE void soften_scores(const uint32_t (&s)[batch], float scale, float offset,
                                 bool has_polynomials, float (&sums)[4],
                                 uint32_t (&p)[batch * sizeof(T) / 4]) {
  PAGODA_UNROLL
  for (int i = 0; i < batch; i += 2) {
    float pair[2];
    PAGODA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float x = core::bits_to_float(s[i + e]) * scale + offset;
      const bool is_polynomial = kHasPolynomials && has_polynomials && i % 8 == 6;
      pair[e] = is_polynomial ? softmax::exp2_polynomial(x) : arch::exp2_approx(x);
      sums[i % 4 + e] += pair[e];
    }
    if constexpr (sizeof(T) == 1) {
      const uint32_t packed = arch::pack_e4m3(pair[0], pair[1]);
      if (i % 4 == 0) {
        p[i / 4] = packed;
      } else {
        p[i / 4] |= packed << 16U;
      }
    } else {
      p[i / 2] = pack_pair<T>(pair[0], pair[1]);
    }
  }
}

}  // namespace pagoda::kernels::sm100
