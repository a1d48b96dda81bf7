// Chooses any field; lengths move a little past their limits as often as far.
#include "fuzz_spoil.hpp"

#include "core/array_elements.hpp"

namespace pagoda::fuzz {
namespace {

int64_t number(FuzzedDataProvider& data, int64_t least, int64_t most) {
  return data.ConsumeIntegralInRange<int64_t>(least, most);
}

void spoil_lengths(FuzzedDataProvider& data, Memory& memory, ArrayView<int32_t>& lengths) {
  const std::span<const int32_t> before = core::host_elements(lengths);
  std::vector<int32_t> values(before.begin(), before.end());
  if (values.empty() || number(data, 0, 7) == 0) {
    values.resize(static_cast<size_t>(number(data, 0, 6)),
                  static_cast<int32_t>(number(data, -1, 3)));
  } else {
    const auto last = static_cast<int64_t>(values.size()) - 1;
    int32_t& value = values[static_cast<size_t>(number(data, 0, last))];
    const int64_t near = value + number(data, -2, 5);  // just past a limit is where mistakes are
    value = static_cast<int32_t>(data.ConsumeBool() ? near : nasty_number(data));
  }
  lengths = memory.keep(values);
}

// Not the strides: validation reads scales, and their memory has its size already.
void spoil_scales(FuzzedDataProvider& data, ConstTensor& scales) {
  const std::array<int64_t, kMaxRank> strides = scales.strides;
  spoil(data, scales);
  scales.strides = strides;
}

}  // namespace

Tensor writable(const ConstTensor& t) {
  return {const_cast<void*>(t.data), t.dtype, t.rank, t.shape, t.strides, t.device};
}

void spoil(FuzzedDataProvider& data, ConstTensor& tensor) {
  const auto d = static_cast<size_t>(number(data, 0, kMaxRank - 1));
  switch (number(data, 0, 3)) {
    case 0: tensor.shape[d] = nasty_number(data); return;
    case 1: tensor.strides[d] = nasty_number(data); return;
    case 2: tensor.rank = static_cast<int32_t>(number(data, -1, 7)); return;
    default: tensor.dtype = static_cast<DType>(number(data, 0, 5)); return;
  }
}

void spoil(FuzzedDataProvider& data, Memory& memory, Attention& a) {
  const auto spoil_writable = [&](Tensor& tensor) {
    ConstTensor t = tensor;
    spoil(data, t);
    tensor = writable(t);
  };
  switch (number(data, 0, 20)) {
    case 0: spoil(data, a.q); return;
    case 1: spoil_writable(a.out); return;
    case 2: spoil_writable(a.lse); return;
    case 3: spoil_writable(a.row_max); return;
    case 4: std::visit([&](auto& kv) { spoil(data, kv.k); }, a.kv); return;
    case 5: std::visit([&](auto& kv) { spoil(data, kv.v); }, a.kv); return;
    case 6: spoil_lengths(data, memory, a.cu_seqlens_q); return;
    case 7: spoil_lengths(data, memory, a.seqlens_q); return;
    case 8: spoil_lengths(data, memory, a.cache_lengths); return;
    case 9: a.softmax_scale = data.ConsumeFloatingPoint<float>(); return;
    case 10: a.kv_scales.k = data.ConsumeFloatingPoint<float>(); return;
    case 11: spoil_lengths(data, memory, a.leftpad_kv); return;
    case 12: spoil_scales(data, a.kv_scales.k_per_head); return;
    case 13: spoil_scales(data, a.q_scale_per_head); return;
    default: break;
  }
  if (auto* dense = std::get_if<DenseKV>(&a.kv))
    return spoil_lengths(data, memory, dense->seqlens_kv);
  if (auto* ragged = std::get_if<RaggedKV>(&a.kv))
    return spoil_lengths(data, memory, ragged->cu_seqlens_kv);
  PageTable& table = std::get<PagedKV>(a.kv).table;
  if (auto* csr = std::get_if<CsrPages>(&table)) {
    spoil_lengths(data, memory,
                  number(data, 0, 2) == 0 ? csr->indptr
                  : data.ConsumeBool()    ? csr->indices
                                          : csr->last_page_len);
    return;
  }
  // The table keeps its memory, so the width may only shrink.
  auto& block_table = std::get<BlockTable>(table);
  if (data.ConsumeBool()) return spoil_lengths(data, memory, block_table.seqlens_kv);
  int64_t& width = block_table.pages.columns;
  width = number(data, -1, width);
}

}  // namespace pagoda::fuzz
