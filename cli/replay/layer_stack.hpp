// The engine of a replay: the page pools of the layers that are run, and one step through them:
// append the new keys and values, then one attention call over the whole mixed batch, per layer.
// All memory of a call is memory that the back end reads. On a GPU many layers are launched at a
// time, with one synchronisation for their appends and one for their attention.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cli/replay/batch.hpp"
#include "cli/replay/model_shape.hpp"
#include "cli/replay/synthesis.hpp"
#include "pagoda/attention.hpp"
#include "testing/mirror/block.hpp"

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

// The cost of a step. Seconds are measured.
struct StepCost {
  double attention_seconds = 0;  // plan and run; on a GPU until it is complete
  double append_seconds = 0;
  double synthesis_seconds = 0;  // making q, k and v: no part of serving
  double check_seconds = 0;      // likewise
  double flops = 0;
  double bytes = 0;  // K and V once, Q and O once

  StepCost& operator+=(const StepCost& other);
};

// The outputs of a layer, in the memory of the kernels; valid during the call that reports them.
class LayerOutput {
 public:
  // [tokens, num_q_heads] vectors of `vector_bytes`, and as many LSEs.
  LayerOutput(core::MemorySpace& space, const std::byte* out, const float* lse,
              int64_t vector_bytes)
      : space_(space), out_(out), lse_(lse), vector_bytes_(vector_bytes) {}

  // All vectors; only if the host can read them.
  [[nodiscard]] bool is_on_host() const { return space_.is_host(); }
  [[nodiscard]] const std::byte* out() const { return out_; }

  // One vector and its LSE, copied from a GPU if necessary.
  struct Row {
    std::vector<std::byte> out;
    float lse = 0;
  };
  [[nodiscard]] Row row(int64_t vector) const;

 private:
  core::MemorySpace& space_;
  const std::byte* out_;
  const float* lse_;
  int64_t vector_bytes_;
};

class LayerStack {
 public:
  // Called after each layer; its time counts as check_seconds.
  using Inspector = std::function<void(int32_t layer, const LayerOutput& output)>;

  // Allocates the pools and fills them with NaN. kOutOfMemory if they do not fit.
  [[nodiscard]] static Result<std::unique_ptr<LayerStack>> create(const StackConfig& config,
                                                                  const Synthesis& synthesis);

  [[nodiscard]] Result<StepCost> run(const Batch& batch, const Inspector& inspect);

  [[nodiscard]] const std::string& kernel() const { return kernel_; }  // of the last step

 private:
  using Plans = std::array<std::optional<Plan>, 2>;  // by kind of layer
  struct Pool {
    mirror::Block k, v;
  };
  // The rows of one layer in flight.
  struct Lane {
    explicit Lane(core::MemorySpace& space) : q(space), k(space), v(space) {}
    mirror::Staged q, k, v;
    mirror::Block out, lse;
  };
  // The arrays of a batch in the memory of the kernels.
  struct SeenBatch {
    ArrayView<int32_t> cu_seqlens_q, page_indptr, page_indices, last_page_len;
    ArrayView<int64_t> slots;
  };
  struct Arrays {
    explicit Arrays(core::MemorySpace& space)
        : cu_seqlens_q(space),
          page_indptr(space),
          page_indices(space),
          last_page_len(space),
          slots(space),
          sinks(space) {}
    mirror::Staged cu_seqlens_q, page_indptr, page_indices, last_page_len, slots, sinks;
  };

  LayerStack(core::MemorySpace& space, StackConfig config, const Synthesis& synthesis);
  void make_lanes(int64_t needed);  // tokens
  [[nodiscard]] Lane& lane(int32_t layer) {
    return lanes_[static_cast<size_t>(layer) % lanes_.size()];
  }
  [[nodiscard]] SeenBatch send(const Batch& batch);
  void synthesise(const Batch& batch, int32_t layer);
  [[nodiscard]] Status append(const SeenBatch& batch, int32_t layer);
  [[nodiscard]] Attention make_attention(const Batch& batch, const SeenBatch& seen, int32_t layer);
  [[nodiscard]] Status plan_layers(const Batch& batch, const SeenBatch& seen, Plans& plans);
  [[nodiscard]] Status count_cost(const Batch& batch, StepCost& cost);
  [[nodiscard]] Status run_attention(const Attention& attention, int32_t layer, const Plans& plans);
  [[nodiscard]] Result<StepCost> run_step(const Batch& batch, const Inspector& inspect);
  [[nodiscard]] Status run_layers(const Batch& batch, const SeenBatch& seen, int32_t first,
                                  Plans& plans, StepCost& cost, const Inspector& inspect);

  core::MemorySpace& space_;
  StackConfig config_;
  const Synthesis& synthesis_;
  std::vector<Pool> pools_;
  std::vector<Lane> lanes_;
  int64_t lane_tokens_ = 0;
  Arrays arrays_;
  ArrayView<float> sinks_;                   // in the memory of the kernels
  std::array<mirror::Block, 2> workspaces_;  // by kind of layer: each has its own zeroed prefix
  std::string kernel_;
};

}  // namespace pagoda::replay
