// Nothing here describes more memory than there is: a pointer or a length that lies would be the
// fuzzer's fault.
#include "c_spoil.hpp"

#include <cstring>
#include <iterator>

namespace pagoda::fuzz {
namespace {

int64_t number(FuzzedDataProvider& data, int64_t least, int64_t most) {
  return data.ConsumeIntegralInRange<int64_t>(least, most);
}

// Every view of a call, absent ones too.
std::vector<const pagoda_tensor**> views_of(test::CCall& c) {
  std::vector<const pagoda_tensor**> views{&c.attention.q,
                                           &c.attention.cu_seqlens_q,
                                           &c.attention.seqlens_q,
                                           &c.attention.sinks,
                                           &c.attention.cache_lengths,
                                           &c.attention.leftpad_kv,
                                           &c.attention.q_scale_per_head,
                                           &c.attention.out,
                                           &c.attention.lse,
                                           &c.attention.row_max,
                                           &c.kv.k,
                                           &c.kv.v,
                                           &c.kv.seqlens_kv,
                                           &c.kv.cu_seqlens_kv,
                                           &c.kv.block_table,
                                           &c.kv.indptr,
                                           &c.kv.indices,
                                           &c.kv.last_page_len,
                                           &c.kv_scales.k_per_head,
                                           &c.kv_scales.v_per_head,
                                           &c.score_mod.alibi_slopes};
  for (pagoda_mask_node& node : c.nodes) {
    views.insert(views.end(), {&node.valid_lengths, &node.tensor, &node.words, &node.row_offsets});
  }
  return views;
}

void spoil_node(FuzzedDataProvider& data, pagoda_mask_node& node) {
  switch (number(data, 0, 5)) {
    case 0: node.kind = static_cast<int32_t>(number(data, -1, 12)); return;
    case 1: node.left = nasty_number(data); return;
    case 2: node.right = nasty_number(data); return;
    case 3: node.chunk = nasty_number(data); return;
    case 4: node.functor = nullptr; return;
    default: node.reserved = static_cast<int32_t>(nasty_number(data)); return;
  }
}

void spoil_integer(FuzzedDataProvider& data, test::CCall& c) {
  const auto value = static_cast<int32_t>(nasty_number(data));
  void* const fields[] = {&c.attention.max_seqlen_q,
                          &c.attention.max_seqlen_kv,
                          &c.kv.layout,
                          &c.kv.page_size,
                          &c.attention.lse_base,
                          &c.attention.out_scale,
                          &c.attention.zero_padding_rows,
                          &c.attention.reserved,
                          &c.score_mod.reserved};
  std::memcpy(data.PickValueInArray(fields), &value, sizeof value);  // out_scale: any bits
}

}  // namespace

size_t struct_size(FuzzedDataProvider& data, size_t usual) {
  constexpr size_t kSizes[] = {0, 1, 7, 8, 12, 16, 24, 4088, 4096, 4097, 4104, SIZE_MAX - 7};
  switch (number(data, 0, 5)) {
    case 0: return data.PickValueInArray(kSizes);
    case 1: return usual + static_cast<size_t>(8 * number(data, 0, 4));
    case 2: return usual - static_cast<size_t>(8 * number(data, 0, 3));
    default: return usual;
  }
}

void spoil(FuzzedDataProvider& data, pagoda_tensor& tensor) {
  const auto d = number(data, 0, kMaxRank - 1);
  switch (number(data, 0, 9)) {
    case 0: tensor.ndim = static_cast<int32_t>(number(data, -1, 7)); return;
    case 1: tensor.dtype.lanes = static_cast<uint16_t>(number(data, 0, 3)); return;
    case 2: tensor.dtype.code = static_cast<uint8_t>(number(data, 5, 9)); return;
    case 3: tensor.device.device_type = static_cast<int32_t>(number(data, -1, 15)); return;
    case 4: tensor.device.device_id = static_cast<int32_t>(nasty_number(data)); return;
    case 5: tensor.data = nullptr; return;
    case 6: tensor.shape = nullptr; return;
    case 7: tensor.strides = nullptr; return;
    case 8: tensor.byte_offset = UINT64_MAX - static_cast<uint64_t>(number(data, 0, 3)); return;
    default:
      if (tensor.shape != nullptr) {
        int64_t& extent = test::edit_shape(&tensor)[d];
        extent = std::min(extent, nasty_number(data));
      }
  }
}

void spoil(FuzzedDataProvider& data, test::CCall& c) {
  const std::vector<const pagoda_tensor**> views = views_of(c);
  const auto any = [&] {
    return views[static_cast<size_t>(number(data, 0, static_cast<int64_t>(views.size()) - 1))];
  };
  switch (number(data, 0, 9)) {
    case 0: *any() = nullptr; return;
    case 1: *any() = *any(); return;
    case 2:
      spoil_node(
          data,
          c.nodes[static_cast<size_t>(number(data, 0, static_cast<int64_t>(c.nodes.size()) - 1))]);
      return;
    case 3: {
      const int64_t counts[] = {-1, 0, static_cast<int64_t>(c.nodes.size()) - 1, 17, INT64_MAX};
      c.mask.num_nodes = data.PickValueInArray(counts);
      return;
    }
    case 4: spoil_integer(data, c); return;
    case 5: c.attention.softmax_scale = data.ConsumeFloatingPoint<float>(); return;
    case 6: c.mask.nodes = nullptr; return;
    default:
      if (const pagoda_tensor* tensor = *any()) spoil(data, test::edit(tensor));
  }
}

pagoda_attention* lay_out(FuzzedDataProvider& data, Memory& memory, const test::CCall& c,
                          bool is_spoiled) {
  // At most one struct has another size: two rarely find more than the first.
  const int64_t which = is_spoiled ? number(data, 0, 8) : -1;
  const auto size = [&](int64_t index, size_t usual) {
    return index == which ? struct_size(data, usual) : usual;
  };
  pagoda_attention attention = c.attention;
  pagoda_mask mask = c.mask;
  if (mask.nodes != nullptr) {
    const size_t node_size = size(0, sizeof(pagoda_mask_node));
    const size_t distance = std::clamp<size_t>(node_size, 8, 4096);
    std::vector<std::byte> bytes(distance * c.nodes.size());
    for (size_t i = 0; i < c.nodes.size(); ++i) {
      pagoda_mask_node node = c.nodes[i];
      node.struct_size = node_size;
      std::memcpy(bytes.data() + i * distance, &node, std::min(distance, sizeof node));
    }
    mask.nodes = reinterpret_cast<const pagoda_mask_node*>(memory.keep(bytes).data());
  }
  attention.kv = lay_out(data, memory, c.kv, size(1, sizeof c.kv));
  attention.kv_scales = lay_out(data, memory, c.kv_scales, size(2, sizeof c.kv_scales));
  attention.mask = lay_out(data, memory, mask, size(3, sizeof mask));
  attention.score_mod = lay_out(data, memory, c.score_mod, size(4, sizeof c.score_mod));
  if (which == 5) attention.kv = nullptr;
  if (which == 6) attention.mask = nullptr;
  return lay_out(data, memory, attention, size(7, sizeof attention));
}

}  // namespace pagoda::fuzz
