// Case: one row of the conformance table, a complete description of one attention call. Values
// only; problem_data.hpp turns a Case into memory, runner.hpp runs it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pagoda/attention.hpp"
#include "pagoda/dtype.hpp"
#include "pagoda/kv_cache.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::conformance {

class MaskMaterial;

// One sequence of the batch. Its data depend on the case's seed and on `id` only, so that the same
// sequence can be put into another batch.
struct Sequence {
  static constexpr int32_t kOmitted = INT32_MIN;
  int32_t q = 0;
  int32_t kv = 0;
  int32_t cache_length = kOmitted;  // kOmitted = kv - q, and the call omits it
  uint64_t id = 0;                  // add() numbers them
};

enum class KVLayout : uint8_t { kDense, kRagged, kBlockTable, kCsr };

enum class KVStorage : uint8_t {
  kSeparate,     // two allocations
  kInterleaved,  // one: [pages, 2, ...]
  kVInsideK,     // V is the first head_dim_vo elements of K's rows (latent attention)
};

// kPerSequence: of each sequence and KV head, in memory heads first.
enum class Scales : uint8_t { kNone, kPerTensor, kPerHead, kPerSequence };

// Requirements in addition to agreement with the reference.
enum class Demand : uint8_t {
  kAgreement,
  kRepeats,         // 16 runs, identical bits
  kBatchInvariant,  // identical bits alone, in other batches, with other numbers of workers
};

struct NamedMask {
  std::string name = "full";
  std::function<Mask(MaskMaterial&)> make;  // empty = no mask
};

struct NamedLengths {
  std::string name;
  std::vector<Sequence> sequences;
};

struct Case {
  std::string name;
  std::string seed;  // all random numbers come from this; the name unless set

  DType q_dtype = DType::kF32;
  DType kv_dtype = DType::kF32;
  std::optional<DType> out;  // default: Q's, bf16 where Q is fp8
  float out_scale = 1;       // fp8 outputs
  int32_t q_heads = 2;
  int32_t kv_heads = 1;
  int32_t dim_qk = 64;
  int32_t dim_vo = 64;
  NamedLengths lengths;
  NamedMask mask;

  bool is_q_ragged = true;
  // Unused rows of Q: past the longest sequence where padded, after each sequence where ragged.
  int32_t padding_rows = 0;
  int32_t zeroed_rows = 0;  // ragged: rows past the last offset, which the call zeroes
  KVLayout kv_layout = KVLayout::kBlockTable;
  int32_t padding_keys = 0;  // dense: keys past the longest sequence; ragged: after each
  // Rows before key 0 of sequence i: i + 1 times this, modulo 3 times it.
  int32_t leftpad = 0;
  int32_t page_size = 16;
  PageLayout page_layout = PageLayout::kNHD;
  KVStorage storage = KVStorage::kSeparate;
  // Unused elements after each innermost vector, middle extent and outer extent.
  int64_t inner_gap = 0, middle_gap = 0, outer_gap = 0;
  int64_t page_id_step = 1;  // physical page ids are multiples of this
  int64_t q_outer_gap = 0;   // padded Q only, input only
  bool outputs_have_gaps = false;

  std::optional<float> softmax_scale;
  float amplitude = 1;  // standard deviation of Q
  float softcap = 0;
  bool has_alibi = false;
  bool has_score_functor = false;
  // Makes the call's functor over arrays that outlive the case; empty = none.
  std::function<FunctorCall()> functor;
  std::optional<float> sinks;  // centre of the sinks
  Scales scales = Scales::kNone;
  float q_scale = 1;
  // kPerHead: [num_q_heads]; kPerSequence: [batch, num_kv_heads]; otherwise q_scale.
  Scales q_scales = Scales::kNone;
  bool wants_statistics = true;  // LSE and row_max
  // With wants_statistics. add() takes it from every second case: kernels may then leave out the
  // maxima of their scores.
  bool wants_row_max = true;
  bool has_heads_first = false;  // LSE and row_max in memory: heads before rows
  LogBase lse_base = LogBase::kE;
  Demand demand = Demand::kAgreement;
  // Options::schedule and Options::num_kv_splits.
  Schedule schedule = Schedule::kAutomatic;
  int32_t num_kv_splits = 0;
  // Multiprocessors of the emulated GPU, which determine grids and KV splits; 0 = as registered.
  // Ignored by other back ends.
  int32_t num_sms = 0;
  std::string tag;  // last part of the name

  [[nodiscard]] bool is_paged() const {
    return kv_layout == KVLayout::kBlockTable || kv_layout == KVLayout::kCsr;
  }
  [[nodiscard]] DType out_dtype() const {
    if (out) return *out;
    return q_dtype == DType::kF8E4M3 ? DType::kBF16 : q_dtype;
  }
};

// The whole table, in a fixed order, names unique.
[[nodiscard]] const std::vector<Case>& all_cases();

// The cases whose name contains `pattern` or, if it has * or ?, matches it as a whole.
[[nodiscard]] std::vector<const Case*> select_cases(std::string_view pattern,
                                                    const std::vector<Case>& from = all_cases());

}  // namespace pagoda::conformance
