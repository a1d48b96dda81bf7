// Attention: one call over a batch of sequences, and the functions that plan and run it.
//
//   O = softmax(mask(softmax_scale * Q K^T) + bias) V
//
// Edge cases. A row without visible keys (empty sequence, zero keys, fully masked) gives O = 0 and
// LSE = row_max = -infinity; with a sink, LSE = row_max = the sink. A padding row (i >=
// seqlens_q[b]) gives O = 0 and LSE = row_max = -infinity, with or without a sink.
//
// Placement. BackendInfo::memory is the kind of memory that a back end reads. Each tensor and each
// array of a call (lengths, offsets, page tables, scales, sinks, slopes, masks) names its device,
// which must be of that kind, and on a GPU the device of q. Otherwise the call is rejected with the
// name of the first one elsewhere. For a GPU the host reads none of these arrays. It checks shapes
// and sizes but no contents, and a plan depends on shapes and maxima, never on lengths. One plan,
// or one captured CUDA graph, therefore serves lengths and page tables that change from run to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "pagoda/array_view.hpp"
#include "pagoda/device.hpp"
#include "pagoda/executor.hpp"
#include "pagoda/functor.hpp"
#include "pagoda/kv_cache.hpp"
#include "pagoda/mask.hpp"
#include "pagoda/score_mod.hpp"
#include "pagoda/status.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda {

// The base of the logarithms in an LSE.
enum class LogBase : uint8_t { kE, k2 };

// The arguments of one call. Q is ragged when `cu_seqlens_q` is given and padded otherwise.
struct Attention {
  ConstTensor q{};                    // ragged [total_q, num_q_heads, head_dim_qk]
                                      // padded [batch, seqlen_q, num_q_heads, head_dim_qk]
  ArrayView<int32_t> cu_seqlens_q{};  // ragged: [batch + 1], starts at 0, non-decreasing
  // Optional: [batch], used rows of each sequence, at most those that it has in q. The others are
  // padding rows: they may hold anything, and their rows of the outputs are written (see above).
  ArrayView<int32_t> seqlens_q{};
  KVCache kv{};
  // Optional: [batch], left padding: rows of K and V of each sequence (slots of its pages) before
  // its first key, at most its used length. They may hold anything and belong to no key: seqlen_kv
  // is the used length without them, and positions, masks and biases count keys from 0 as in a call
  // without padding.
  ArrayView<int32_t> leftpad_kv{};
  KVScales kv_scales{};

  // [batch]: tokens in the cache before this call = the position of query row 0 of each sequence.
  // Negative where a sequence has more queries than keys, at least -seqlen_q. Empty: seqlen_kv -
  // seqlen_q (bottom-right alignment). Under a causal mask, a sequence with cache_length =
  // seqlen_kv sees all of its keys: causal per sequence.
  ArrayView<int32_t> cache_lengths{};

  // Upper bounds of the query rows (ragged Q: padding rows included) and of the keys of every
  // sequence, in tokens; 0 = not given.
  // They matter where lengths are in GPU memory: launches are sized by these bounds instead of by
  // the shapes (ragged Q: total_q; padded Q: seqlen_q; block table: max_pages_per_seq * page_size;
  // CSR pages: indices.size() * page_size; ragged KV: total_kv; dense KV: max_seqlen_kv). In host
  // memory the lengths are compared with them; on a GPU a longer sequence has an undefined result.
  int32_t max_seqlen_q = 0;
  int32_t max_seqlen_kv = 0;

  float q_scale = 1.0F;  // fp8 queries: value = q_scale * stored element
  // fp8 queries, optional, replaces q_scale: fp32 [num_q_heads] or [num_kv_heads] (one for each
  // group of query heads), or [batch, either]; any strides, 0 shares a value.
  ConstTensor q_scale_per_head{};
  std::optional<float> softmax_scale{};  // default 1 / sqrt(head_dim_qk)
  Mask mask{};
  ScoreMod score_mod{};
  // A functor of the user, registered by its name (functor.hpp). Its mask is intersected with
  // `mask`, its score modification comes last. With one, GPU kernels serve interval masks (none,
  // causal, window, chunked, padding and their intersections), no soft cap and no ALiBi.
  FunctorCall functor{};
  // [num_q_heads] or empty: logits that enter the softmax's denominator and have no value row
  // (Xiao et al. 2023; gpt-oss).
  ArrayView<float> sinks{};

  Tensor out{};  // ragged [total_q, num_q_heads, head_dim_vo]
                 // padded [batch, seqlen_q, num_q_heads, head_dim_vo]; of any dtype. GPUs store Q's
                 // dtype (bf16 where Q is fp8) fastest
  // fp8 output: stored element = value / out_scale, rounded to nearest even, saturated at +-448.
  // Above 1 / FLT_MAX = 2.9e-39. Other dtypes require 1.
  float out_scale = 1.0F;
  // Optional, fp32 [total_q, num_q_heads] / [batch, seqlen_q, num_q_heads]: logarithm of the
  // denominator, sink included. The order of the shape is fixed, that in memory is not; any strides
  // are allowed. Heads before rows:
  //   a.lse = Tensor::contiguous(p, DType::kF32, {batch, num_q_heads, seqlen_q}).transposed(1, 2);
  Tensor lse{};
  LogBase lse_base = LogBase::kE;
  Tensor row_max{};  // optional, as lse: the row's largest score, sink included; natural units
  // Ragged Q: rows cu_seqlens_q[batch] .. total_q - 1 of the outputs are written as padding rows.
  // Without it they keep what they hold in GPU memory; in host memory there must be none.
  bool zero_padding_rows = false;
};

// How a GPU kernel assigns work tiles, the query rows that a CTA computes together, to CTAs.
enum class Schedule : uint8_t {
  kAutomatic,   // the kernel chooses by the shapes
  kTransient,   // one CTA for each work tile
  kPersistent,  // CTA i takes work tiles i, i + CTAs, ...
  kQueue,       // CTAs draw work tiles from a counter
  kStreamK,     // every CTA takes the same number of KV tiles
};

[[nodiscard]] constexpr const char* name(Schedule schedule) {
  switch (schedule) {
    case Schedule::kAutomatic: return "automatic";
    case Schedule::kTransient: return "transient";
    case Schedule::kPersistent: return "persistent";
    case Schedule::kQueue: return "queue";
    case Schedule::kStreamK: return "stream-k";
  }
  return "?";
}

// Which back end and kernel a call uses, and how they run it.
struct Options {
  // A name that backends() lists. Empty = the back end of the memory of the call's first tensor (q,
  // k_new or partial_out): "cpu" for host memory, "cuda" or "hip" for theirs.
  std::string backend{};
  // A name that kernels(backend) lists, or how names begin and a *: "sm80.*" = the engine chooses
  // among these. Empty = it chooses among all.
  std::string kernel{};
  Executor* executor = nullptr;  // CPU; nullptr = default_executor(). Must outlive plans
  Stream stream{};               // GPU back ends: where run(attention, options), append_kv() and
                                 // merge_states() launch; run(plan, ...) has an argument instead

  // A sequence's result does not depend on the rest of the batch, nor on the number of workers.
  bool is_batch_invariant = false;

  // The kernels that do not have the schedule do not serve the call. The CPU has kAutomatic.
  Schedule schedule = Schedule::kAutomatic;
  // Into how many parts the keys of a work tile are split over CTAs or CPU workers, in [0, 128], at
  // most one for each KV tile: 0 = the kernel chooses, 1 = none; kStreamK allows these two. The CPU
  // may take fewer, and in batch-invariant mode as many as its keys ask for, unless this is 1.
  int32_t num_kv_splits = 0;

  // Checked mode, not of run(plan, ...). Host memory: also validate the contents of page tables and
  // slot mappings (offsets and lengths are always validated), and that a functor's visible() agrees
  // with its keep() for every row, head and key. GPU memory: validate that every pointer of the
  // call points to memory that the GPU can read, as its device claims; contents stay unread.
  bool checks_indices = false;
};

// A prepared call: kernel, tiles, KV splits. Valid for every Attention of the same shapes, lengths,
// strides and dtypes. Pointers may differ (for a GPU: not in whether 16 bytes align Q, K and V); so
// may lengths in GPU memory, up to the planned maxima. Copies share one immutable state.
class Plan {
 public:
  struct State;  // engine/plan.hpp
  explicit Plan(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  // Bytes of scratch that run() needs from the caller: fp32 partial results of split rows and their
  // counters; 0 when no row is split.
  [[nodiscard]] int64_t workspace_bytes() const;
  // Bytes at the start of the workspace that must be zero before its first run; every run resets
  // them to zero. 0 on back ends cpu and reference.
  [[nodiscard]] int64_t zeroed_workspace_bytes() const;
  // Bytes of the tile buffer that each worker thread of the CPU back end allocates once and keeps.
  [[nodiscard]] int64_t worker_scratch_bytes() const;
  // The selected kernel's name, such as "sm90.d128.bf16"; valid while the plan lives.
  [[nodiscard]] const std::string& kernel() const;
  // CPU: work items that the threads take. GPU: CTAs of all launches.
  [[nodiscard]] int64_t num_work_items() const;
  // (query row, head) pairs whose keys are split over several work items.
  [[nodiscard]] int64_t num_split_rows() const;
  // flops: 2 * visible (query, key) pairs * (head_dim_qk + head_dim_vo). kv_bytes: bytes of the
  // visible K and V rows, each read once. With lengths in GPU memory, every sequence counts as
  // long as the maxima allow.
  [[nodiscard]] double flops() const;
  [[nodiscard]] double kv_bytes() const;
  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// Validates the whole call and decides how it will run. Writes nothing. Errors: kInvalidArgument,
// kUnsupported (no kernel serves the call), kNotFound (backend or kernel name), kOutOfMemory.
[[nodiscard]] Result<Plan> plan(const Attention& attention, const Options& options = {});

// Runs a planned call. `workspace` has at least plan.workspace_bytes() bytes of the back end's
// memory, aligned to 64 bytes; all but its zeroed prefix is scratch. Returns kInvalidArgument,
// before anything is written, if `attention` differs from the planned call.
//
// On a GPU: launches into `stream` and returns. It allocates nothing and does not synchronise, so
// a CUDA graph can capture it. Runs that may overlap need separate workspaces. The Status reports
// launch errors only; asynchronous errors surface when the caller synchronises the stream.
[[nodiscard]] Status run(const Plan& plan, const Attention& attention,
                         std::span<std::byte> workspace, Stream stream = {});

// plan() and run() in one call. The library keeps one workspace per thread, and on a GPU one for
// each of the 16 streams that ran last: a further stream frees the oldest one, which waits for the
// GPU. A capture can't allocate: kStreamCapturing if the stream has no workspace of this size yet.
// A workspace that a capture has used is kept until release_workspaces(). Errors: those of plan()
// and of run(plan, ..).
[[nodiscard]] Status run(const Attention& attention, const Options& options = {});

// Frees the workspaces that run(attention, options) keeps, of the calling thread and of all GPUs,
// after their work has ended. Graphs that captured such a run must not be launched any more.
[[nodiscard]] Status release_workspaces();

// Writes new keys and values into a paged cache, converting to the cache's dtype.
struct AppendKV {
  ConstTensor k_new{};                // [num_tokens, num_kv_heads, head_dim_qk]; fp32, fp16 or bf16
  ConstTensor v_new{};                // [num_tokens, num_kv_heads, head_dim_vo]
  ArrayView<int64_t> slot_mapping{};  // [num_tokens]: page * page_size + row; negative = skip
  Tensor k_cache{};  // shape by `layout` (kv_cache.hpp); fp32, fp16, bf16 or fp8 e4m3
  Tensor v_cache{};  // the same; head_dim_vo
  PageLayout layout = PageLayout::kNHD;
  // fp8: stored element = value / scale, rounded to nearest even, saturated; scales per head only.
  KVScales kv_scales{};
};
// Errors: those of plan(), before anything is written. On a GPU: launches into options.stream and
// returns, as run(plan, ..) does.
[[nodiscard]] Status append_kv(const AppendKV& append, const Options& options = {});

// Merges attention over disjoint sets of keys: O = sum_p exp(LSE_p - LSE) O_p with LSE = log(sum_p
// exp(LSE_p)), in the order of the parts (FlashDecoding). A part with LSE_p = -infinity is
// ignored, whatever its O holds. LSEs may have any strides. In place: `out` and `lse` may each be
// one of the parts (partial_out[p], partial_lse[p], of the same strides and dtype).
struct MergeStates {
  ConstTensor partial_out{};       // [num_parts, total_q, num_q_heads, head_dim_vo]
  ConstTensor partial_lse{};       // fp32 [num_parts, total_q, num_q_heads]
  Tensor out{};                    // [total_q, num_q_heads, head_dim_vo]
  Tensor lse{};                    // optional, fp32 [total_q, num_q_heads]
  LogBase lse_base = LogBase::kE;  // of partial_lse and lse
  // [total_q] or empty: rows with 0 are skipped; their out and lse keep what they hold.
  ArrayView<uint8_t> row_mask{};
};
// Errors and GPUs: as append_kv().
[[nodiscard]] Status merge_states(const MergeStates& merge, const Options& options = {});

}  // namespace pagoda
