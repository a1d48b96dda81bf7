// The attention parameters of a model: heads, layers, windows, sinks. No weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pagoda/mask.hpp"
#include "pagoda/status.hpp"

namespace pagoda::replay {

struct ModelShape {
  std::string name;
  int32_t num_q_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t num_layers = 0;
  int32_t window = 0;  // keys that even layers see, the query's own included; 0 = all layers full
  bool has_sinks = false;
  float softcap = 0;        // 0 = off
  float softmax_scale = 0;  // 0 = 1 / sqrt(head_dim)

  // Layers that share masks share plans: kind 0 sees everything, kind 1 through the window.
  [[nodiscard]] int32_t layer_kind(int32_t layer) const {
    return window > 0 && layer % 2 == 0 ? 1 : 0;
  }
  [[nodiscard]] Mask mask(int32_t kind) const {
    return kind == 0 ? Mask::causal() : Mask::window(window - 1, 0);
  }
  [[nodiscard]] float scale() const;
};

// The shapes that are known by name.
[[nodiscard]] std::span<const ModelShape> known_models();
[[nodiscard]] Result<ModelShape> find_model(std::string_view name);

// The heads of one of `ranks` devices under tensor parallelism. KV heads are replicated if there
// are fewer of them than ranks.
[[nodiscard]] Result<ModelShape> tensor_parallel_share(ModelShape model, int32_t ranks);

// kInvalidArgument names a field that no attention kernel could serve.
[[nodiscard]] Status validate(const ModelShape& model);

}  // namespace pagoda::replay
