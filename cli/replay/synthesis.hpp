// Synthesis: queries, keys and values made from token keys, as a model would make them from tokens.
// Every vector is a window into a fixed table of normal numbers, its place chosen by a hash of
// (seed, token, layer, head): as cheap as a copy, the same on every machine, and a wrong page, head
// or layer has other numbers. Independent of the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/replay/content.hpp"
#include "cli/replay/model_shape.hpp"
#include "pagoda/dtype.hpp"
#include "pagoda/kv_cache.hpp"

namespace pagoda::replay {

enum class Operand : uint8_t { kQuery, kKey, kValue };

class Synthesis {
 public:
  // `dtype` is that of queries and of new keys and values, `kv_dtype` that of the cache.
  Synthesis(const ModelShape& model, DType dtype, DType kv_dtype, uint64_t seed);

  // Copies the vector [head_dim] of a token to `out`, in `dtype`.
  void write(Operand operand, uint64_t token_key, int32_t layer, int32_t head,
             std::byte* out) const;

  // The same vector as numbers: keys and values as they come back from a cache of `kv_dtype`.
  // Valid as long as this object; [head_dim].
  [[nodiscard]] const float* values(Operand operand, uint64_t token_key, int32_t layer,
                                    int32_t head) const;

  // What an fp8 cache stores is value / scale; powers of two, so that scaling never rounds.
  [[nodiscard]] const KVScales& kv_scales() const { return kv_scales_; }
  // [num_q_heads], empty where the model has none.
  [[nodiscard]] const std::vector<float>& sinks() const { return sinks_; }

 private:
  struct Table {
    std::vector<std::byte> elements;  // in dtype
    std::vector<float> values;        // after the cache's rounding
  };
  [[nodiscard]] Table make_table(Operand operand, DType dtype, DType kv_dtype) const;
  [[nodiscard]] size_t place(Operand operand, uint64_t token_key, int32_t layer,
                             int32_t head) const;

  int32_t head_dim_;
  size_t element_bytes_;
  uint64_t seed_;
  KVScales kv_scales_;
  std::vector<float> sinks_;
  Table tables_[3];
};

}  // namespace pagoda::replay
