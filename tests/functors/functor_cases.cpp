// The cases, and the functors that they name.
#include "tests/functors/functor_cases.hpp"

#include <utility>

#include "examples/functors/causal.hpp"
#include "examples/functors/documents.hpp"
#include "examples/functors/head_decay.hpp"

namespace pagoda::functor_tests {
namespace {

using conformance::Case;
using conformance::Sequence;

template <class T>
ArrayView<T> view(const std::vector<T>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

Documents documents_value() {
  return {view(kDocuments), static_cast<int32_t>(kDocuments.size()), kPrefix};
}

Case make(const char* name, FunctorCall (*functor)(), std::vector<Sequence> sequences) {
  Case c;
  c.name = name;
  c.q_dtype = c.kv_dtype = DType::kBF16;
  c.q_heads = 4;
  c.kv_heads = 2;
  c.dim_qk = c.dim_vo = 128;
  for (size_t i = 0; i < sequences.size(); ++i) sequences[i].id = i + 1;
  c.lengths = {"functor", std::move(sequences)};
  c.functor = functor;
  return c;
}

FunctorCall gentle_decay() { return head_decay(); }

}  // namespace

FunctorCall documents() { return functor("documents", documents_value(), view(kDocuments)); }

Mask documents_on_the_cpu() {
  return Mask::functor([](void*, int32_t, int32_t, int64_t q, int64_t k) {
    int64_t begin = 0;
    for (const int32_t first : kDocuments) begin = first <= q ? first : begin;
    return k < kPrefix || (begin <= k && k <= q);
  });
}

FunctorCall head_decay(bool is_steeper) {
  static const std::vector<float> kSteeper = [] {
    std::vector<float> slopes = kSlopes;
    for (float& slope : slopes) slope *= 1.02F;
    return slopes;
  }();
  const std::vector<float>& slopes = is_steeper ? kSteeper : kSlopes;
  return functor("head_decay", HeadDecay{view(slopes), 120}, view(slopes));
}

FunctorCall causal() { return functor("causal", CausalAgain{}); }

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&all](Case c) -> Case& { return all.emplace_back(std::move(c)); };
  add(make("documents_prefill", documents, {{130, 700}, {70, 75}, {0, 9}}));
  add(make("documents_long_prefill", documents, {{330, 330}})).kv_layout =
      conformance::KVLayout::kDense;
  add(make("documents_decode", documents, {{1, 760}, {1, 600}, {1, 40}, {1, 0}}));
  Case& split = add(make("documents_split", documents, {{100, 900}}));
  split.num_kv_splits = 3;
  Case& window = add(make("documents_window", documents, {{90, 720}, {3, 200}}));
  window.mask = {"window", [](conformance::MaskMaterial&) { return Mask::window(300, 20); }};
  Case& padded = add(make("documents_padded_rows", documents, {{80, 650}, {3, 64}}));
  padded.is_q_ragged = false;
  padded.padding_rows = 5;
  padded.kv_layout = conformance::KVLayout::kCsr;
  Case& rows = add(make("documents_pages_of_one", documents, {{70, 610}, {2, 600}}));
  rows.page_size = 1;
  Case& fp8 = add(make("documents_fp8_cache", documents, {{2, 700}, {1, 560}}));
  fp8.kv_dtype = DType::kF8E4M3;
  fp8.scales = conformance::Scales::kPerHead;
  Case& gathered = add(make("documents_fp8_gathered", documents, {{70, 620}}));
  gathered.kv_dtype = DType::kF8E4M3;
  Case& invariant = add(make("documents_batch_invariant", documents, {{3, 600}, {1, 200}}));
  invariant.demand = conformance::Demand::kBatchInvariant;
  Case& sms = add(make("documents_148_sms", documents, {{1, 900}, {66, 700}}));
  sms.num_sms = 148;
  sms.sinks = 0.5F;
  const auto add_wide = [&](Case c) -> Case& {  // sm90.d256, sm100.d256
    c.dim_qk = c.dim_vo = 256;
    return add(std::move(c));
  };
  add_wide(make("documents_d256_prefill", documents, {{70, 700}, {0, 9}}));
  add_wide(make("documents_d256_decode", documents, {{1, 760}, {1, 40}, {1, 0}})).page_size = 1;
  add_wide(make("documents_d256_split", documents, {{40, 900}})).num_kv_splits = 3;
  add_wide(make("decay_d256", gentle_decay, {{60, 200}, {3, 90}}));
  add_wide(make("causal_d256", causal, {{150, 257}, {20, 9}}));
  add(make("decay_prefill", gentle_decay, {{200, 200}, {3, 90}}));
  add(make("decay_decode", gentle_decay, {{1, 500}, {1, 33}})).page_size = 64;
  Case& decay = add(make("decay_causal", gentle_decay, {{140, 300}}));
  decay.mask = {"causal", [](conformance::MaskMaterial&) { return Mask::causal(); }};
  Case& small = add(make("decay_fp8_cache", gentle_decay, {{1, 400}, {2, 64}}));
  small.kv_dtype = DType::kF8E4M3;
  small.scales = conformance::Scales::kPerTensor;
  add(make("causal_prefill", causal, {{257, 257}, {100, 300}, {40, 9}}));
  add(make("causal_decode", causal, {{1, 300}, {5, 70}})).demand = conformance::Demand::kRepeats;
  return all;
}

bool may_skip(const Case& c, std::string_view backend) {
  if (backend == "cpu" || backend == "reference") return c.num_kv_splits > 1;
  if (c.dim_qk > 128 && backend != "emu:sm90" && backend != "emu:sm100") return true;
  return backend == "emu:sm80" && c.kv_dtype != c.q_dtype;
}

}  // namespace pagoda::functor_tests
