// The bf16 tile operations for AVX512_BF16: dot products of pairs (vdpbf16ps).
#if defined(__x86_64__)

#include "backends/cpu/isa/bf16_ops.hpp"
#include "backends/cpu/isa/gemm.hpp"

namespace pagoda::cpu {
namespace {

struct Bf16Dot {
  static constexpr int kRows = 8;
  static constexpr int kAccumulators = 16;
  static __m512bh broadcast(const float* word) {
    return reinterpret_cast<__m512bh>(_mm512_set1_ps(*word));
  }
  static Vec multiply_add(__m512bh a, Vec b, Vec c) {
    return {_mm512_dpbf16_ps(c.v, a, reinterpret_cast<__m512bh>(b.v))};
  }
};

void begin() {}
void end() {}

}  // namespace

const TileOps kTileOpsAvx512Bf16 = {.is_bf16 = true,
                                    .depth_align = kBf16Align,
                                    .column_align = kBf16Align,
                                    .begin = begin,
                                    .end = end,
                                    .pack_q = bf16_pack_q,
                                    .pack_k = pack_k_panels<Bf16Convert>,
                                    .pack_v = bf16_pack_v,
                                    .gemm = gemm<Bf16Dot, Bf16Probabilities>,
                                    .direct_k_rows = kDirectRows,
                                    .direct_v_rows = kDirectRows,
                                    .direct_scores = bf16_direct_scores,
                                    .direct_output = bf16_direct_output,
                                    .softmax = softmax_tile<Bf16Probabilities>,
                                    .modify = modify_scores,
                                    .blend = blend_rows,
                                    .store = bf16_store_row};

}  // namespace pagoda::cpu

#endif
