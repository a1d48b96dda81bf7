// is_v_inside_k(): whether V is the first columns of K, in the same memory, as in latent attention.
#pragma once

#include "core/problem.hpp"

namespace pagoda::core {

[[nodiscard]] inline bool is_v_inside_k(const Problem& p) {
  return p.v.data == p.k.data && p.v.dtype == p.k.dtype && p.head_dim_vo <= p.head_dim_qk &&
         p.v.outer_stride == p.k.outer_stride && p.v.row_stride == p.k.row_stride &&
         p.v.head_stride == p.k.head_stride;
}

// Head dims up to which no kernel depends on it.
inline constexpr int32_t kMostDimsOfSeparateV = 256;

}  // namespace pagoda::core
