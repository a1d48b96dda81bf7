// AttentionCall: the arguments of one attention call from Python as structs of pagoda.h.
#pragma once

#include <array>
#include <nanobind/nanobind.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pagoda/pagoda.h"
#include "python/src/views.hpp"

namespace pagoda_python {

// The arrays of a call, in the order of the tuple that Python passes (ATTENTION_ARRAYS). Names are
// those of pagoda.h.
enum ArrayIndex : size_t {
  kQ,
  kOut,
  kLse,
  kRowMax,
  kK,
  kV,
  kSeqlensKv,
  kCuSeqlensKv,
  kBlockTable,
  kIndptr,
  kIndices,
  kLastPageLen,
  kCuSeqlensQ,
  kSeqlensQ,
  kCacheLengths,
  kKPerHead,
  kVPerHead,
  kAlibiSlopes,
  kSinks,
  kLeftpadKv,
  kQScalePerHead,
  kNumArrays,
};

inline constexpr std::array<const char*, kNumArrays> kArrayNames = {"q",
                                                                    "out",
                                                                    "lse",
                                                                    "row_max",
                                                                    "kv.k",
                                                                    "kv.v",
                                                                    "kv.seqlens_kv",
                                                                    "kv.cu_seqlens_kv",
                                                                    "kv.block_table",
                                                                    "kv.indptr",
                                                                    "kv.indices",
                                                                    "kv.last_page_len",
                                                                    "cu_seqlens_q",
                                                                    "seqlens_q",
                                                                    "cache_lengths",
                                                                    "kv_scales.k_per_head",
                                                                    "kv_scales.v_per_head",
                                                                    "score_mod.alibi_slopes",
                                                                    "sinks",
                                                                    "leftpad_kv",
                                                                    "q_scale_per_head"};

constexpr Access access_of(size_t array) {
  return array == kOut || array == kLse || array == kRowMax ? Access::kWrite : Access::kRead;
}

// Which kernel runs a call, and how.
struct CallOptions {
  std::string backend, kernel;
  int32_t schedule = 0, num_kv_splits = 0;
  bool is_batch_invariant = false, checks_indices = false;

  CallOptions() = default;
  // From Python's tuple of the same six. `this` must outlive the result.
  explicit CallOptions(const nb::tuple& options);
  [[nodiscard]] pagoda_options get(void* stream) const;
};

// A mask as Python has it: three integers for each node in postfix order, its kind and two
// parameters, and the nodes' arrays in order.
class MaskNodes {
 public:
  MaskNodes() = default;
  MaskNodes(const MaskNodes&) = delete;
  MaskNodes& operator=(const MaskNodes&) = delete;

  void assign(std::span<const int64_t> program);
  // The names of the arrays that the nodes have.
  [[nodiscard]] const std::vector<const char*>& array_names() const { return array_names_; }
  // One array for each of array_names(), which must outlive this.
  void set_arrays(std::span<const pagoda_tensor* const> arrays);

  [[nodiscard]] const pagoda_mask* get() const { return nodes_.empty() ? nullptr : &mask_; }

 private:
  std::vector<pagoda_mask_node> nodes_;
  std::vector<const char*> array_names_;
  pagoda_mask mask_{};
};

// A number that a call must refuse: "NAME is VALUE; LIMIT".
struct BadNumber {
  const char* name;
  std::string value;
  const char* limit;
};

// Refuses a scale that is 0 or infinite as a float32. pagoda.h has float32, and takes 0 for "not
// given": a scale of 0, or of 1e-50, would become the default.
[[nodiscard]] std::optional<BadNumber> bad_scale(const char* name, double scale);

// The numbers of a call, with the defaults of pagoda.h.
struct CallNumbers {
  int32_t layout = 0, page_size = 0, max_seqlen_q = 0, max_seqlen_kv = 0, lse_base = 0;
  std::optional<double> softmax_scale;
  double softcap = 0, q_scale = 1, k_scale = 1, v_scale = 1, out_scale = 1;
  bool zero_padding_rows = false;

  // The first number that bad_scale() or a soft cap's limit refuses.
  [[nodiscard]] std::optional<BadNumber> bad_number() const;
};

// The structs of a call, of which `attention` points to the others.
struct Structs {
  pagoda_kv_cache kv;
  pagoda_kv_scales scales;
  pagoda_score_mod score_mod;
  pagoda_attention attention;

  Structs();
  Structs(const Structs& other);
  Structs& operator=(const Structs&) = delete;

  // Where the pointer to array `index` stands.
  const pagoda_tensor*& slot(size_t index);
  void set_numbers(const CallNumbers& numbers);
};

// One call: what pagoda_run(), pagoda_plan_create() and pagoda_explain() take. It views the arrays;
// the caller keeps them.
class AttentionCall {
 public:
  AttentionCall(const nb::tuple& arrays, const nb::tuple& mask_program,
                const nb::tuple& mask_arrays, const nb::tuple& numbers,
                const StreamArgument& stream);

  [[nodiscard]] const Structs& structs() const { return structs_; }
  [[nodiscard]] const View& q() const { return views_[kQ]; }
  // InvalidArgument where an array of this call that `used` has, too, has other memory by now.
  void check_memory(const nb::tuple& arrays, const nb::tuple& mask_arrays, Structs& used) const;

 private:
  void set_mask(const nb::tuple& program, const nb::tuple& arrays, const StreamArgument& stream);

  std::array<View, kNumArrays> views_;
  std::vector<View> mask_views_;
  MaskNodes mask_;
  Structs structs_;
};

// The stream to launch into: the one that was given, else the current one of the framework of `q`.
inline void* launch_stream(const StreamArgument& given, const View& q) {
  return given.is_given ? given.handle : q.current_stream();
}

}  // namespace pagoda_python
