// The engine of a replay: the page pools of the layers that are run, and one step through them:
// append the new keys and values, then one attention call over the whole mixed batch, per layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cli/replay/batch.hpp"
#include "cli/replay/model_shape.hpp"
#include "cli/replay/synthesis.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::replay {

struct StackConfig {
  ModelShape model;
  int32_t num_layers = 0;  // the first ones of the model
  DType dtype = DType::kBF16;
  DType kv_dtype = DType::kBF16;
  int64_t page_size = 64;
  int64_t num_pages = 0;
  Options options;

  // Bytes of keys and values of one token, all layers that are run.
  [[nodiscard]] int64_t token_bytes() const {
    return 2 * num_layers * model.num_kv_heads * int64_t{model.head_dim} * size_bytes(kv_dtype);
  }
};

// What a step cost. Seconds are measured.
struct StepCost {
  double attention_seconds = 0;  // plan and run
  double append_seconds = 0;
  double synthesis_seconds = 0;  // making q, k and v: no part of serving
  double check_seconds = 0;      // likewise
  double flops = 0;
  double bytes = 0;  // K and V once, Q and O once

  StepCost& operator+=(const StepCost& other);
};

// What a layer computed; valid during the call that reports it.
struct LayerOutput {
  const std::byte* out;  // [tokens, num_q_heads, head_dim] in dtype
  const float* lse;      // [tokens, num_q_heads]
};

class LayerStack {
 public:
  // Called after each layer; its time counts as check_seconds.
  using Inspector = std::function<void(int32_t layer, const LayerOutput& output)>;

  // Allocates the pools and fills them with NaN. Fails where memory is lacking.
  [[nodiscard]] static Result<std::unique_ptr<LayerStack>> create(const StackConfig& config,
                                                                  const Synthesis& synthesis);

  [[nodiscard]] Result<StepCost> run(const Batch& batch, const Inspector& inspect);

  [[nodiscard]] const std::string& kernel() const { return kernel_; }  // of the last step
  [[nodiscard]] int64_t max_workspace_bytes() const { return std::ssize(workspace_); }

 private:
  struct FreeDeleter {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, FreeDeleter>;
  using Plans = std::array<std::optional<Plan>, 2>;  // by kind of layer
  struct Pool {
    Memory k, v;
  };

  LayerStack(const StackConfig& config, const Synthesis& synthesis)
      : config_(config), synthesis_(synthesis) {}
  void reserve_rows(int64_t tokens);
  void synthesise(const Batch& batch, int32_t layer);
  [[nodiscard]] Status append(const Batch& batch, int32_t layer);
  [[nodiscard]] Attention make_attention(const Batch& batch, int32_t layer);
  [[nodiscard]] Status attend(const Attention& attention, int32_t kind, Plans& plans,
                              StepCost& cost);

  StackConfig config_;
  const Synthesis& synthesis_;
  std::vector<Pool> pools_;
  std::vector<std::byte> q_, k_, v_, out_;  // rows of one step and layer
  std::vector<float> lse_;
  std::vector<std::byte> workspace_;
  std::string kernel_;
};

}  // namespace pagoda::replay
