// Attention: one call over a batch of sequences, and the functions that plan and run it.
//
//   O = softmax(mask(softmax_scale * Q K^T) + bias) V
//
// Edges: a row that sees no key (empty sequence, zero keys, fully masked) gives O = 0 and
// LSE = -infinity; with a sink O = 0 and LSE = the sink. row_max is then -infinity (or the sink).
// A padded row past its sequence's seqlens_q gives O = 0, LSE = -infinity and row_max = -infinity,
// sink or not.
//
// Placement: the back end says where a call's memory is (BackendInfo::memory). Everything that a
// call points to lies there, and for a device on q's device: tensors, lengths, offsets, page tables,
// scales, sinks, slopes, mask arrays. The host then reads none of it: shapes and sizes are checked,
// contents are not, and a plan depends on shapes and maxima, never on lengths. So one plan, or one
// captured CUDA graph, serves lengths and page tables that change from run to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "pagoda/device.hpp"
#include "pagoda/executor.hpp"
#include "pagoda/kv_cache.hpp"
#include "pagoda/mask.hpp"
#include "pagoda/score_mod.hpp"
#include "pagoda/status.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda {

// The arguments of one call. Q is ragged when `cu_seqlens_q` is given and padded otherwise.
struct Attention {
  ConstTensor q{};                          // ragged [total_q, num_q_heads, head_dim_qk]
                                            // padded [batch, seqlen_q, num_q_heads, head_dim_qk]
  std::span<const int32_t> cu_seqlens_q{};  // ragged: [batch + 1], starts at 0, non-decreasing
  std::span<const int32_t> seqlens_q{};     // padded, optional: [batch] valid rows; others: O = 0
  KVCache kv{};
  KVScales kv_scales{};

  // Tokens in the cache before this call = the position of query row 0 of each sequence.
  // Empty: seqlen_kv - seqlen_q (bottom-right alignment). [batch]
  std::span<const int32_t> cache_lengths{};

  // No sequence has more query rows, or keys, than this; 0 = no promise. Of use where lengths lie on
  // a device: launches are sized by these instead of by what the shapes allow (ragged Q: total_q;
  // padded: seqlen_q; block table: max_pages_per_seq * page_size; compressed rows: indices.size() *
  // page_size; ragged KV: total_kv; dense: its extent). On the host they are compared with the
  // lengths; on a device a longer sequence is the caller's error, and its result is undefined.
  int32_t max_seqlen_q = 0;
  int32_t max_seqlen_kv = 0;

  std::optional<float> softmax_scale{};  // default 1 / sqrt(head_dim_qk)
  Mask mask{};
  ScoreMod score_mod{};
  std::span<const float>
      sinks{};  // [num_q_heads] or empty: a logit that joins the denominator only

  Tensor out{};      // like Q with head_dim_vo last; Q's dtype (bf16 when Q is fp8)
  Tensor lse{};      // optional, fp32 [total_q, num_q_heads] / [batch, seqlen_q, num_q_heads],
                     // natural logarithm of the denominator, sink included
  Tensor row_max{};  // optional, same shape: the largest score of the row (sink included)
};

// How to choose and to run; independent of the data.
struct Options {
  std::string backend = "cpu";   // see backend.hpp for the list
  std::string kernel{};          // force one kernel by name; empty = choose
  Executor* executor = nullptr;  // CPU back end; nullptr = default_executor()
  Stream stream{};               // device back ends: of run(attention, options) and what follows it

  // A sequence's result does not depend on the rest of the batch, nor on the number of workers.
  bool is_batch_invariant = false;

  // Checked mode: also validate the contents of index arrays (page ids in range, no page table
  // entry missing). Offsets and lengths are always validated where the host may read them; of a
  // device's, only whether they lie there is looked at.
  bool checks_indices = false;
};

// A prepared call: kernel, tiles, splits. Valid for every Attention of the same shapes, lengths,
// strides and dtypes; pointers may differ, and so may lengths that lie on a device, up to the planned
// maxima. Copies share one immutable state.
class Plan {
 public:
  struct State;  // engine/plan.hpp
  explicit Plan(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  // Bytes of scratch that run() needs from the caller: fp32 partials of split rows and their
  // counters, 0 when no row is split. Worker threads keep a fixed tile buffer of their own besides
  // (worker_scratch_bytes() each, allocated once per thread).
  [[nodiscard]] int64_t workspace_bytes() const;
  // How many bytes at the start of the workspace must be zero before its first run; every run leaves
  // them zero again. 0 on back ends cpu and reference.
  [[nodiscard]] int64_t zeroed_workspace_bytes() const;
  [[nodiscard]] int64_t worker_scratch_bytes() const;
  [[nodiscard]] const std::string& kernel() const;
  [[nodiscard]] int64_t num_work_items() const;
  [[nodiscard]] int64_t num_split_rows() const;
  // 2 * visible (query, key) pairs * (dim_qk + dim_vo), and the bytes of K and V that a perfect kernel
  // reads once. Where lengths lie on a device: of sequences as long as the maxima allow.
  [[nodiscard]] double flops() const;
  [[nodiscard]] double kv_bytes() const;
  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// Validates the whole call and decides how it will run. Writes nothing.
[[nodiscard]] Result<Plan> plan(const Attention& attention, const Options& options = {});

// Runs a planned call. `workspace` needs plan.workspace_bytes() bytes where the back end's memory is,
// aligned to 64; but for the zeroed prefix its contents are scratch. Fails, before anything is
// written, where `attention` is not what was planned.
//
// On a device: launches into `stream` and returns; allocates nothing, waits for nothing, and can be
// captured in a CUDA graph. Runs that may overlap need workspaces of their own. Status tells of what
// the launch itself met; faults of the running kernel come to light where the stream is waited for.
[[nodiscard]] Status run(const Plan& plan, const Attention& attention,
                         std::span<std::byte> workspace, Stream stream = {});

// plan() and run() in one call, with a workspace that is kept per thread, on a device per stream.
[[nodiscard]] Status run(const Attention& attention, const Options& options = {});

// Writes new keys and values into a paged cache, converting to the cache's dtype.
struct AppendKV {
  ConstTensor k_new{};  // [num_tokens, num_kv_heads, head_dim_qk]; fp32, fp16 or bf16
  ConstTensor v_new{};  // [num_tokens, num_kv_heads, head_dim_vo]
  std::span<const int64_t> slot_mapping{};  // [num_tokens]: page * page_size + row; negative = skip
  Tensor k_cache{};                         // by `layout`; fp32, fp16, bf16 or fp8 e4m3
  Tensor v_cache{};
  PageLayout layout = PageLayout::kNHD;
  KVScales kv_scales{};  // fp8: stored element = value / scale, rounded to nearest even, saturated
};
[[nodiscard]] Status append_kv(const AppendKV& append, const Options& options = {});

// Combines attention over disjoint sets of keys: softmax-weighted by the partial LSEs, in a fixed
// order. A part whose LSE is -infinity does not count, whatever its O holds.
struct MergeStates {
  ConstTensor partial_out{};  // [num_parts, total_q, num_q_heads, head_dim_vo]
  ConstTensor partial_lse{};  // fp32 [num_parts, total_q, num_q_heads], natural logarithm
  Tensor out{};               // [total_q, num_q_heads, head_dim_vo]
  Tensor lse{};               // optional, fp32 [total_q, num_q_heads]
};
[[nodiscard]] Status merge_states(const MergeStates& merge, const Options& options = {});

}  // namespace pagoda
