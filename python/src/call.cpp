// From Python's tuples to structs. pagoda.h's own checks name what is wrong with their contents.
#include "python/src/call.hpp"

#include <cmath>
#include <cstdio>
#include <utility>

#include "python/src/errors.hpp"
#include "python/src/values.hpp"

namespace pagoda_python {
namespace {

constexpr size_t kIntegersOfNode = 3;

struct NodeArrays {
  const char* names[2];  // null: no more
};

NodeArrays arrays_of(pagoda_mask_kind kind) {
  switch (kind) {
    case PAGODA_MASK_PADDING: return {{"mask.valid_lengths", nullptr}};
    case PAGODA_MASK_ADDITIVE: return {{"mask.bias", nullptr}};
    case PAGODA_MASK_RELATIVE_BIAS: return {{"mask.table", nullptr}};
    case PAGODA_MASK_BITS: return {{"mask.words", "mask.row_offsets"}};
    default: return {{nullptr, nullptr}};
  }
}

// Gives the node its arrays, the first of `arrays`. Returns how many it has.
size_t take_arrays(pagoda_mask_node& node, const pagoda_tensor* const* arrays) {
  switch (node.kind) {
    case PAGODA_MASK_PADDING: node.valid_lengths = arrays[0]; return 1;
    case PAGODA_MASK_ADDITIVE:
    case PAGODA_MASK_RELATIVE_BIAS: node.tensor = arrays[0]; return 1;
    case PAGODA_MASK_BITS:
      node.words = arrays[0];
      node.row_offsets = arrays[1];
      return 2;
    default: return 0;
  }
}

// Integer `i` of a mask's program, as pagoda.h names it.
std::string name_of_integer(const nb::tuple& program, size_t i) {
  const size_t node = i / kIntegersOfNode;
  int64_t kind = 0;
  const bool is_chunk =
      nb::try_cast(program[node * kIntegersOfNode], kind) && kind == PAGODA_MASK_CHUNKED;
  const char* const names[kIntegersOfNode] = {"kind", is_chunk ? "chunk" : "left", "right"};
  return "mask.nodes[" + std::to_string(node) + "]." + names[i % kIntegersOfNode];
}

// False where a float32 of `number` is 0 or infinite.
bool is_kept_by_float(double number) {
  const auto stored = static_cast<float>(number);
  return stored != 0 && !std::isinf(stored);
}

std::string to_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

// The numbers of Python's tuple (calls.py, _Call).
CallNumbers to_numbers(const nb::tuple& n) {
  CallNumbers to;
  to.layout = to_value<int32_t>("kv.layout", n[0]);
  to.page_size = to_value<int32_t>("kv.page_size", n[1]);
  to.max_seqlen_q = to_value<int32_t>("max_seqlen_q", n[2]);
  to.max_seqlen_kv = to_value<int32_t>("max_seqlen_kv", n[3]);
  if (const nb::object scale = n[4]; !scale.is_none()) {
    to.softmax_scale = to_value<double>("softmax_scale", scale);
  }
  to.softcap = to_value<double>("softcap", n[5]);
  to.q_scale = to_value<double>("q_scale", n[6]);
  to.k_scale = to_value<double>("k_scale", n[7]);
  to.v_scale = to_value<double>("v_scale", n[8]);
  to.out_scale = to_value<double>("out_scale", n[9]);
  to.lse_base = to_value<int32_t>("lse_base", n[10]);
  to.zero_padding_rows = to_value<bool>("zero_padding_rows", n[11]);
  if (const auto bad = to.bad_number()) raise_invalid(bad->name, bad->value, bad->limit);
  return to;
}

}  // namespace

CallOptions::CallOptions(const nb::tuple& options)
    : backend(to_value<std::string>("backend", options[0])),
      kernel(to_value<std::string>("kernel", options[1])),
      schedule(to_value<int32_t>("schedule", options[2])),
      num_kv_splits(to_value<int32_t>("num_kv_splits", options[3])),
      is_batch_invariant(to_value<bool>("is_batch_invariant", options[4])),
      checks_indices(to_value<bool>("checks_indices", options[5])) {}

pagoda_options CallOptions::get(void* stream) const {
  pagoda_options to{};
  to.struct_size = sizeof(to);
  to.backend = backend.c_str();
  to.kernel = kernel.c_str();
  to.stream = stream;
  to.is_batch_invariant = is_batch_invariant ? 1 : 0;
  to.checks_indices = checks_indices ? 1 : 0;
  to.schedule = schedule;
  to.num_kv_splits = num_kv_splits;
  return to;
}

void MaskNodes::assign(std::span<const int64_t> program) {
  nodes_.reserve(program.size() / kIntegersOfNode);
  for (; program.size() >= kIntegersOfNode; program = program.subspan(kIntegersOfNode)) {
    pagoda_mask_node& node = nodes_.emplace_back();
    node.struct_size = sizeof(node);
    node.kind = static_cast<pagoda_mask_kind>(program[0]);
    node.left = node.chunk = program[1];
    node.right = program[2];
    for (const char* name : arrays_of(node.kind).names) {
      if (name != nullptr) array_names_.push_back(name);
    }
  }
  mask_ = {.struct_size = sizeof(mask_),
           .nodes = nodes_.data(),
           .num_nodes = static_cast<int64_t>(nodes_.size())};
}

void MaskNodes::set_arrays(std::span<const pagoda_tensor* const> arrays) {
  const pagoda_tensor* const* next = arrays.data();
  for (pagoda_mask_node& node : nodes_) next += take_arrays(node, next);
}

std::optional<BadNumber> bad_scale(const char* name, double scale) {
  if (is_kept_by_float(scale)) return std::nullopt;
  return BadNumber{name, to_text(scale), "must be finite and above 0 as float32"};
}

std::optional<BadNumber> CallNumbers::bad_number() const {
  const std::pair<const char*, double> scales[] = {{"softmax_scale", softmax_scale.value_or(1)},
                                                   {"q_scale", q_scale},
                                                   {"k_scale", k_scale},
                                                   {"v_scale", v_scale},
                                                   {"out_scale", out_scale}};
  for (const auto& [name, scale] : scales) {
    if (auto bad = bad_scale(name, scale)) return bad;
  }
  if (softcap == 0 || is_kept_by_float(softcap)) return std::nullopt;
  return BadNumber{"softcap", to_text(softcap), "must be 0 (off) or finite and above 0 as float32"};
}

Structs::Structs() : kv{}, scales{}, score_mod{}, attention{} {
  kv.struct_size = sizeof(kv);
  scales.struct_size = sizeof(scales);
  score_mod.struct_size = sizeof(score_mod);
  attention.struct_size = sizeof(attention);
  attention.kv = &kv;
  attention.kv_scales = &scales;
  attention.score_mod = &score_mod;
}

Structs::Structs(const Structs& other)
    : kv(other.kv), scales(other.scales), score_mod(other.score_mod), attention(other.attention) {
  attention.kv = &kv;
  attention.kv_scales = &scales;
  attention.score_mod = &score_mod;
}

const pagoda_tensor*& Structs::slot(size_t index) {
  switch (static_cast<ArrayIndex>(index)) {
    case kQ: return attention.q;
    case kOut: return attention.out;
    case kLse: return attention.lse;
    case kRowMax: return attention.row_max;
    case kK: return kv.k;
    case kV: return kv.v;
    case kSeqlensKv: return kv.seqlens_kv;
    case kCuSeqlensKv: return kv.cu_seqlens_kv;
    case kBlockTable: return kv.block_table;
    case kIndptr: return kv.indptr;
    case kIndices: return kv.indices;
    case kLastPageLen: return kv.last_page_len;
    case kCuSeqlensQ: return attention.cu_seqlens_q;
    case kSeqlensQ: return attention.seqlens_q;
    case kCacheLengths: return attention.cache_lengths;
    case kKPerHead: return scales.k_per_head;
    case kVPerHead: return scales.v_per_head;
    case kAlibiSlopes: return score_mod.alibi_slopes;
    case kSinks: return attention.sinks;
    case kLeftpadKv: return attention.leftpad_kv;
    case kQScalePerHead:
    case kNumArrays: break;
  }
  return attention.q_scale_per_head;
}

void Structs::set_numbers(const CallNumbers& n) {
  kv.layout = n.layout;
  kv.page_size = n.page_size;
  attention.max_seqlen_q = n.max_seqlen_q;
  attention.max_seqlen_kv = n.max_seqlen_kv;
  if (n.softmax_scale) attention.softmax_scale = static_cast<float>(*n.softmax_scale);
  score_mod.softcap = static_cast<float>(n.softcap);
  attention.q_scale = static_cast<float>(n.q_scale);
  scales.k = static_cast<float>(n.k_scale);
  scales.v = static_cast<float>(n.v_scale);
  attention.out_scale = static_cast<float>(n.out_scale);
  attention.lse_base = n.lse_base;
  attention.zero_padding_rows = n.zero_padding_rows ? 1 : 0;
}

AttentionCall::AttentionCall(const nb::tuple& arrays, const nb::tuple& mask_program,
                             const nb::tuple& mask_arrays, const nb::tuple& numbers,
                             const StreamArgument& stream) {
  set_mask(mask_program, mask_arrays, stream);
  if (arrays.size() != kNumArrays) throw nb::value_error("a call has as many arrays as names");
  for (size_t i = 0; i < kNumArrays; ++i) {
    const nb::object array = arrays[i];
    if (array.is_none()) continue;
    views_[i].assign(kArrayNames[i], array, access_of(i), stream);
    structs_.slot(i) = views_[i].tensor();
  }
  structs_.set_numbers(to_numbers(numbers));
  structs_.attention.mask = mask_.get();
}

void AttentionCall::check_memory(const nb::tuple& arrays, const nb::tuple& mask_arrays,
                                 Structs& used) const {
  const auto check = [](const View& view, nb::handle array, const char* name, const char* limit) {
    if (!view.is_current(array)) raise_invalid(std::string(name) + ".data", "moved", limit);
  };
  for (size_t i = 0; i < kNumArrays; ++i) {
    const pagoda_tensor* const tensor = views_[i].tensor();
    if (tensor == nullptr || used.slot(i) != tensor) continue;
    check(views_[i], arrays[i], kArrayNames[i],
          "must be where it was when the plan was made; or pass the array to run()");
  }
  for (size_t i = 0; i < mask_views_.size(); ++i) {
    check(mask_views_[i], mask_arrays[i], mask_.array_names()[i],
          "must be where it was when the plan was made");
  }
}

void AttentionCall::set_mask(const nb::tuple& program, const nb::tuple& arrays,
                             const StreamArgument& stream) {
  if (program.empty()) return;
  std::vector<int64_t> integers;
  integers.reserve(program.size());
  for (size_t i = 0; i < program.size(); ++i) {
    int64_t integer = 0;
    if (!nb::try_cast(program[i], integer)) {
      raise_value(name_of_integer(program, i), program[i], wanted_of<int64_t>());
    }
    integers.push_back(integer);
  }
  mask_.assign(integers);
  const std::vector<const char*>& names = mask_.array_names();
  if (arrays.size() < names.size()) {
    raise_invalid(names[arrays.size()], "absent", "the mask must have its arrays");
  }
  mask_views_.resize(names.size());
  std::vector<const pagoda_tensor*> tensors;
  for (size_t i = 0; i < names.size(); ++i) {
    mask_views_[i].assign(names[i], arrays[i], Access::kRead, stream);
    tensors.push_back(mask_views_[i].tensor());
  }
  mask_.set_arrays(tensors);
}

}  // namespace pagoda_python
