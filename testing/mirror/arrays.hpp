// Visits every array of a call: its name, its pointer and the bytes that it covers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/array_elements.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::mirror {

// One array: bytes [low, high) relative to `data`; low < 0 if a stride is negative.
struct Array {
  std::string name;
  std::byte* data = nullptr;
  int64_t low = 0;
  int64_t high = 0;
  bool is_output = false;
};

// Calls visit(const Array&) for each present array and stores the returned pointer in the call.
// Sets the device of all of them to `device`.
template <typename Visit>
void replace_arrays(Attention& attention, Device device, const Visit& visit);

// The mask with these nodes.
[[nodiscard]] Mask mask_of(std::span<const MaskNode> nodes);

namespace detail {

template <typename Void>
Array array_of(std::string name, const BasicTensor<Void>& tensor, bool is_output) {
  Array array{.name = std::move(name),
              .data = static_cast<std::byte*>(const_cast<void*>(tensor.data)),
              .is_output = is_output};
  int64_t low = 0, high = 1;
  for (size_t d = 0; d < static_cast<size_t>(tensor.rank); ++d) {
    if (tensor.shape[d] == 0) return array;
    const int64_t step = (tensor.shape[d] - 1) * tensor.strides[d];
    (step < 0 ? low : high) += step;
  }
  array.low = low * size_bytes(tensor.dtype);
  array.high = high * size_bytes(tensor.dtype);
  return array;
}

template <typename Visit>
class Replacer {
 public:
  Replacer(Device device, const Visit& visit) : device_(device), visit_(visit) {}

  template <typename Void>
  void tensor(const char* name, BasicTensor<Void>& tensor, bool is_output = false) const {
    if (!tensor.present()) return;
    tensor.data = visit_(array_of(name, tensor, is_output));
    tensor.device = device_;
  }
  template <typename T>
  void array(const char* name, ArrayView<T>& array) const {
    if (array.data() == nullptr) return;
    array = {replaced(name, array.data(), array.size()), array.size(), device_};
  }
  template <typename T>
  void matrix(const char* name, MatrixView<T>& matrix) const {
    matrix.device = device_;
    if (matrix.data == nullptr) return;
    matrix.data = replaced(name, matrix.data, core::extent(matrix));
  }

  void table(DenseKV& kv) const { array("kv.seqlens_kv", kv.seqlens_kv); }
  void table(RaggedKV& kv) const {
    array("kv.cu_seqlens_kv", kv.cu_seqlens_kv);
    array("kv.seqlens_kv", kv.seqlens_kv);
  }
  void table(PagedKV& kv) const {
    if (auto* csr = std::get_if<CsrPages>(&kv.table)) {
      array("kv.table.indptr", csr->indptr);
      array("kv.table.indices", csr->indices);
      array("kv.table.last_page_len", csr->last_page_len);
      return;
    }
    auto& block = std::get<BlockTable>(kv.table);
    matrix("kv.table.pages", block.pages);
    array("kv.table.seqlens_kv", block.seqlens_kv);
  }
  void node(MaskNode& node) const {
    array("mask.valid_lengths", node.valid_lengths);
    tensor("mask.tensor", node.tensor);
    array("mask.words", node.words);
    array("mask.row_offsets", node.row_offsets);
  }

  // The words of the value that hold the address of one of its arrays (DeviceArray) follow it.
  void functor(FunctorCall& functor) const {
    for (size_t i = 0; i < static_cast<size_t>(functor.num_arrays); ++i) {
      FunctorCall::Array& array = functor.arrays[i];
      const auto* const before = static_cast<const std::byte*>(array.data);
      const std::byte* const after = replaced("functor.arrays", before, array.bytes);
      for (size_t at = 0; at < functor.value.size(); at += sizeof before) {
        if (std::memcmp(&functor.value[at], &before, sizeof before) != 0) continue;
        std::memcpy(&functor.value[at], &after, sizeof after);
      }
      array.data = after;
      array.device = device_;
    }
  }

 private:
  template <typename T>
  const T* replaced(const char* name, const T* data, int64_t count) const {
    return reinterpret_cast<const T*>(
        visit_(Array{.name = name,
                     .data = reinterpret_cast<std::byte*>(const_cast<T*>(data)),
                     .high = count * static_cast<int64_t>(sizeof(T))}));
  }

  Device device_;
  const Visit& visit_;
};

}  // namespace detail

template <typename Visit>
void replace_arrays(Attention& a, Device device, const Visit& visit) {
  const detail::Replacer<Visit> replace(device, visit);
  replace.tensor("q", a.q);
  replace.array("cu_seqlens_q", a.cu_seqlens_q);
  replace.array("seqlens_q", a.seqlens_q);
  std::visit(
      [&](auto& kv) {
        replace.tensor("kv.k", kv.k);
        replace.tensor("kv.v", kv.v);
        replace.table(kv);
      },
      a.kv);
  replace.array("leftpad_kv", a.leftpad_kv);
  replace.tensor("q_scale_per_head", a.q_scale_per_head);
  replace.tensor("kv_scales.k_per_head", a.kv_scales.k_per_head);
  replace.tensor("kv_scales.v_per_head", a.kv_scales.v_per_head);
  replace.array("cache_lengths", a.cache_lengths);
  std::vector<MaskNode> nodes = a.mask.nodes();
  for (MaskNode& node : nodes) replace.node(node);
  a.mask = mask_of(nodes);
  replace.array("score_mod.alibi_slopes", a.score_mod.alibi_slopes);
  replace.array("sinks", a.sinks);
  replace.functor(a.functor);
  replace.tensor("out", a.out, /*is_output=*/true);
  replace.tensor("lse", a.lse, /*is_output=*/true);
  replace.tensor("row_max", a.row_max, /*is_output=*/true);
}

}  // namespace pagoda::mirror
