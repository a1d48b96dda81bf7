// ScoreMod: changes a score between Q K^T and the softmax, in this order (q.k in fp32):
//   s = softmax_scale * q.k;  s = softcap * tanh(s / softcap);  s += alibi_slope * (k - q);
//   s += mask bias;  s = functor(s)
#pragma once

#include <cstdint>

#include "pagoda/array_view.hpp"

namespace pagoda {

// Returns the new value of one score; CPU back end only. Must be pure and safe to call from
// several threads.
using ScoreFunctor = float (*)(void* context, float score, int32_t sequence, int32_t q_head,
                               int64_t q_position, int64_t k_position);

struct ScoreMod {
  float softcap = 0.0F;             // 0 = off, otherwise > 0 (Gemma 2: 50)
  ArrayView<float> alibi_slopes{};  // [num_q_heads] or empty; Press et al. 2022, section 3
  ScoreFunctor functor = nullptr;   // CPU back end only
  void* context = nullptr;

  [[nodiscard]] bool is_identity() const {
    return softcap == 0.0F && alibi_slopes.empty() && functor == nullptr;
  }
};

}  // namespace pagoda
