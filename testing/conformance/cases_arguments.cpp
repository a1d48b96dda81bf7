// Cases about arguments beside the shapes: used lengths of ragged tensors, queries that outnumber
// their keys, the order and the base of LSEs, scales.
#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"

namespace pagoda::conformance {
namespace {

Case causal(DType dtype) {
  Case c;
  c.q_dtype = c.kv_dtype = dtype;
  c.mask = {"causal", [](MaskMaterial&) { return Mask::causal(); }};
  return c;
}

}  // namespace

// Unused rows and keys hold NaN. The last batch has more queries than keys, and says so.
void add_used_lengths(CaseList& list) {
  const NamedLengths lengths{"used", {{1, 100}, {33, 40}, {0, 17}, {70, 70}, {5, 0}}};
  const NamedLengths negative{"negative", {{9, 4, -5}, {3, 20, 17}, {70, 1, -70}}};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Case c = causal(dtype);
    c.kv_layout = KVLayout::kRagged;
    c.lengths = lengths;
    c.padding_rows = 3;
    c.tag = "usedq";
    list.add(c);
    c.padding_keys = 7;
    c.sinks = 0.5F;
    c.tag = "usedqk";
    list.add(c);
    c.padding_rows = 0;
    c.tag = "usedk";
    list.add(c);
    Case queries = causal(dtype);
    queries.lengths = negative;
    list.add(queries);
    queries.kv_layout = KVLayout::kDense;
    queries.is_q_ragged = false;
    list.add(queries);
  }
}

void add_statistics(CaseList& list) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool is_ragged : {true, false}) {
      Case c = causal(dtype);
      c.is_q_ragged = is_ragged;
      c.q_heads = 6;
      c.kv_heads = 3;
      c.lengths = mixed_lengths();
      c.has_heads_first = true;
      c.tag = "headsfirst";
      list.add(c);
      c.lse_base = LogBase::k2;
      c.outputs_have_gaps = true;
      c.tag = "headsfirst_log2";
      list.add(c);
    }
  }
}

void add_scales(CaseList& list) {
  Case c = causal(DType::kBF16);
  c.lengths = mixed_lengths();
  c.kv_heads = 2;
  c.q_heads = 4;
  for (const Scales scales : {Scales::kPerTensor, Scales::kPerHead}) {
    c.scales = scales;
    list.add(c);
  }
  c.scales = Scales::kPerTensor;
  c.softcap = 5;
  list.add(c);
  c.softcap = 0;
  c.q_dtype = c.kv_dtype = DType::kF8E4M3;
  c.q_scale = 0.6F;
  c.tag = "qscale";
  list.add(c);
}

}  // namespace pagoda::conformance
