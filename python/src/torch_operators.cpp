// Each kernel reads its arguments, views the tensors and runs the C ABI. No Python, no GIL.
#include "python/src/torch_operators.hpp"

#include <array>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pagoda/pagoda.h"
#include "python/src/call.hpp"
#include "python/src/errors.hpp"
#include "python/src/torch_arguments.hpp"

namespace pagoda_python {
namespace {

using torch_abi::StableValue;
using torch_abi::TensorObject;

void check_operator(const pagoda_status& status) {
  if (status.code != PAGODA_OK) fail_operator(status.code, status.field, status.message);
}

void check_number(const std::optional<BadNumber>& bad) {
  if (bad) fail_operator_invalid(bad->name, bad->value, bad->limit);
}

// The members of the schema's `arrays`, in order.
constexpr std::array<ArrayIndex, 12> kOtherArrays = {
    kSeqlensQ, kCacheLengths, kCuSeqlensKv, kIndptr, kIndices,   kLastPageLen,
    kKPerHead, kVPerHead,     kAlibiSlopes, kSinks,  kLeftpadKv, kQScalePerHead};
// The members of `numbers`: layout, page_size, lse_base, schedule, num_kv_splits,
// is_batch_invariant, checks_indices, zero_padding_rows.
constexpr size_t kNumNumbers = 8;
// The members of `scales`: softcap, q_scale, k_scale, v_scale, out_scale.
constexpr size_t kNumScales = 5;

template <typename List>
void check_length(const char* name, const List& list, size_t length) {
  if (!list.empty() && list.size() != length) {
    fail_operator_invalid(name, "of " + std::to_string(list.size()) + " elements",
                          "must have " + std::to_string(length));
  }
}

// One call of the operator `attention`: its arguments, in the order of the schema.
struct AttentionArguments {
  explicit AttentionArguments(const StableValue* values) : from(values) {}

  TorchArguments from;
  TensorObject* q = from.tensor();
  TensorObject* k = from.tensor();
  TensorObject* v = from.tensor();
  TensorObject* out = from.tensor();
  TensorObject* seqlens_kv = from.optional_tensor();
  TensorObject* block_table = from.optional_tensor();
  bool is_causal = from.flag();
  std::optional<double> softmax_scale = from.optional_number();
  TensorObject* cu_seqlens_q = from.optional_tensor();
  int64_t max_seqlen_q = from.integer();
  int64_t max_seqlen_kv = from.integer();
  TensorObject* lse = from.optional_tensor();
  TensorObject* row_max = from.optional_tensor();
  std::vector<int64_t> mask = from.optional_integers();
  std::vector<TensorObject*> mask_arrays = from.optional_tensors();
  std::vector<TensorObject*> arrays = from.optional_tensors_or_none();
  std::vector<int64_t> numbers = from.optional_integers();
  std::vector<double> scales = from.optional_numbers();
  std::string backend = from.optional_text();
  std::string kernel = from.optional_text();
};

// The structs of a call, which views the tensors of its arguments.
class OperatorCall {
 public:
  explicit OperatorCall(const AttentionArguments& a) {
    check_length("arrays", a.arrays, kOtherArrays.size());
    check_length("numbers", a.numbers, kNumNumbers);
    check_length("scales", a.scales, kNumScales);
    view(kQ, a.q);
    view(kOut, a.out);
    view(kLse, a.lse);
    view(kRowMax, a.row_max);
    view(kK, a.k);
    view(kV, a.v);
    view(kSeqlensKv, a.seqlens_kv);
    view(kBlockTable, a.block_table);
    view(kCuSeqlensQ, a.cu_seqlens_q);
    for (size_t i = 0; i < a.arrays.size(); ++i) view(kOtherArrays[i], a.arrays[i]);
    set_mask(a);
    set_numbers(a);
  }

  void run() {
    const pagoda_options options = how_.get(current_stream(views_[kQ]));
    pagoda_status status = empty_status();
    pagoda_run(&structs_.attention, &options, &status);
    check_operator(status);
  }

 private:
  void view(ArrayIndex index, TensorObject* tensor) {
    if (tensor == nullptr) return;
    views_[index] = to_view(kArrayNames[index], tensor);
    structs_.slot(index) = &views_[index];
  }

  void set_mask(const AttentionArguments& a) {
    static constexpr int64_t kCausal[] = {PAGODA_MASK_CAUSAL, 0, 0};
    if (a.is_causal && !a.mask.empty()) {
      fail_operator_invalid("is_causal", "True", "must be False: mask is given");
    }
    if (!a.is_causal && a.mask.empty()) return;
    mask_.assign(a.is_causal ? std::span<const int64_t>(kCausal) : a.mask);
    const std::vector<const char*>& names = mask_.array_names();
    if (a.mask_arrays.size() < names.size()) {
      fail_operator_invalid(names[a.mask_arrays.size()], "absent", "the mask must have its arrays");
    }
    std::vector<const pagoda_tensor*> tensors(names.size());
    mask_views_.resize(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      mask_views_[i] = to_view(names[i], a.mask_arrays[i]);
      tensors[i] = &mask_views_[i];
    }
    mask_.set_arrays(tensors);
    structs_.attention.mask = mask_.get();
  }

  void set_numbers(const AttentionArguments& a) {
    CallNumbers to;
    to.softmax_scale = a.softmax_scale;
    to.max_seqlen_q = to_int32("max_seqlen_q", a.max_seqlen_q);
    to.max_seqlen_kv = to_int32("max_seqlen_kv", a.max_seqlen_kv);
    if (!a.numbers.empty()) {
      const std::span n(a.numbers);
      to.layout = to_int32("kv.layout", n[0]);
      to.page_size = to_int32("kv.page_size", n[1]);
      to.lse_base = to_int32("lse_base", n[2]);
      how_.schedule = to_int32("schedule", n[3]);
      how_.num_kv_splits = to_int32("num_kv_splits", n[4]);
      how_.is_batch_invariant = n[5] != 0;
      how_.checks_indices = n[6] != 0;
      to.zero_padding_rows = n[7] != 0;
    }
    if (!a.scales.empty()) {
      to.softcap = a.scales[0];
      to.q_scale = a.scales[1];
      to.k_scale = a.scales[2];
      to.v_scale = a.scales[3];
      to.out_scale = a.scales[4];
    }
    check_number(to.bad_number());
    structs_.set_numbers(to);
    how_.backend = a.backend;
    how_.kernel = a.kernel;
  }

  std::array<pagoda_tensor, kNumArrays> views_;  // those that structs_ refers to
  std::vector<pagoda_tensor> mask_views_;
  MaskNodes mask_;
  Structs structs_;
  CallOptions how_;
};

void attention(StableValue* values, uint64_t, uint64_t) {
  const AttentionArguments arguments(values);
  OperatorCall(arguments).run();
}

// append_kv(Tensor k_new, Tensor v_new, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor
// slot_mapping, int layout, float k_scale, float v_scale, Tensor? k_per_head, Tensor? v_per_head,
// bool checks_indices)
void append_kv(StableValue* values, uint64_t, uint64_t) {
  static constexpr const char* kNames[] = {"k_new", "v_new", "k_cache", "v_cache", "slot_mapping"};
  TorchArguments from(values);
  std::array<TensorObject*, std::size(kNames)> tensors{};
  for (TensorObject*& tensor : tensors) tensor = from.tensor();
  const int64_t layout = from.integer();
  const double k_scale = from.number(), v_scale = from.number();
  TensorObject* const k_per_head = from.optional_tensor();
  TensorObject* const v_per_head = from.optional_tensor();
  const bool checks_indices = from.flag();

  check_number(bad_scale("k_scale", k_scale));
  check_number(bad_scale("v_scale", v_scale));
  std::array<pagoda_tensor, std::size(kNames)> views{};
  for (size_t i = 0; i < views.size(); ++i) views[i] = to_view(kNames[i], tensors[i]);
  pagoda_tensor k_scales, v_scales;
  pagoda_kv_scales scales{};
  scales.struct_size = sizeof(scales);
  scales.k = static_cast<float>(k_scale);
  scales.v = static_cast<float>(v_scale);
  if (k_per_head != nullptr) {
    k_scales = to_view("k_scale", k_per_head);
    scales.k_per_head = &k_scales;
  }
  if (v_per_head != nullptr) {
    v_scales = to_view("v_scale", v_per_head);
    scales.v_per_head = &v_scales;
  }
  pagoda_append_kv_args args{};
  args.struct_size = sizeof(args);
  args.k_new = views.data();
  args.v_new = &views[1];
  args.k_cache = &views[2];
  args.v_cache = &views[3];
  args.slot_mapping = &views[4];
  args.layout = to_int32("layout", layout);
  args.kv_scales = &scales;
  pagoda_options options{};
  options.struct_size = sizeof(options);
  options.checks_indices = checks_indices ? 1 : 0;
  options.stream = current_stream(views[2]);
  pagoda_status status = empty_status();
  pagoda_append_kv(&args, &options, &status);
  check_operator(status);
}

// merge_states(Tensor partial_out, Tensor partial_lse, Tensor(a!) out, Tensor(b!) lse, int
// lse_base, Tensor? row_mask)
void merge_states(StableValue* values, uint64_t, uint64_t) {
  static constexpr const char* kNames[] = {"partial_out", "partial_lse", "out", "lse"};
  TorchArguments from(values);
  std::array<TensorObject*, std::size(kNames)> tensors{};
  for (TensorObject*& tensor : tensors) tensor = from.tensor();
  const int64_t lse_base = from.integer();
  TensorObject* const row_mask = from.optional_tensor();

  std::array<pagoda_tensor, std::size(kNames)> views{};
  for (size_t i = 0; i < views.size(); ++i) views[i] = to_view(kNames[i], tensors[i]);
  pagoda_tensor mask_view;
  pagoda_merge_states_args args{};
  args.struct_size = sizeof(args);
  args.partial_out = views.data();
  args.partial_lse = &views[1];
  args.out = &views[2];
  args.lse = &views[3];
  args.lse_base = to_int32("lse_base", lse_base);
  if (row_mask != nullptr) {
    mask_view = to_view("row_mask", row_mask);
    args.row_mask = &mask_view;
  }
  pagoda_options options{};
  options.struct_size = sizeof(options);
  options.stream = current_stream(views[2]);
  pagoda_status status = empty_status();
  pagoda_merge_states(&args, &options, &status);
  check_operator(status);
}

}  // namespace

void register_torch_operators() {
  static constexpr std::pair<const char*, torch_abi::Kernel> kKernels[] = {
      {"attention", attention}, {"append_kv", append_kv}, {"merge_states", merge_states}};
  const auto& torch = torch_abi::functions();
  for (const char* key : {"CPU", "CUDA"}) {
    // Kept as long as the process: deleting it would take the kernels back.
    torch_abi::LibraryObject* library = nullptr;
    if (torch.aoti_torch_library_init_impl("pagoda", key, "torch_operators.cpp", 0, &library) !=
        0) {
      throw std::runtime_error("PyTorch refused the library pagoda");
    }
    for (const auto& [name, kernel] : kKernels) {
      if (torch.torch_library_impl(library, name, kernel, torch_abi::kAbiVersion) != 0) {
        throw std::runtime_error(std::string("PyTorch refused the kernel of pagoda::") + name);
      }
    }
  }
}

}  // namespace pagoda_python
