// Builds the valid calls.
#include "valid_call.hpp"

#include <algorithm>
#include <random>

#include "core/element.hpp"

namespace pagoda::test {
namespace {

constexpr std::byte kPoison{0xa5};

size_t count(std::initializer_list<int64_t> extents) {
  size_t n = 1;
  for (const int64_t extent : extents) n *= static_cast<size_t>(extent);
  return n;
}

}  // namespace

ConstTensor ValidCall::input(DType dtype, std::initializer_list<int64_t> extents) {
  std::mt19937 random(static_cast<uint32_t>(inputs_.size()));
  std::normal_distribution<float> normal;
  const size_t n = count(extents);
  auto& memory = inputs_.emplace_back(n * static_cast<size_t>(size_bytes(dtype)));
  for (size_t i = 0; i < n; ++i) {
    core::store_element(memory.data(), dtype, static_cast<int64_t>(i), normal(random));
  }
  return ConstTensor::contiguous(memory.data(), dtype, extents);
}

Tensor ValidCall::output(DType dtype, std::initializer_list<int64_t> extents) {
  auto& memory =
      outputs_.emplace_back(count(extents) * static_cast<size_t>(size_bytes(dtype)), kPoison);
  return Tensor::contiguous(memory.data(), dtype, extents);
}

bool ValidCall::outputs_are_untouched() const {
  return std::all_of(outputs_.begin(), outputs_.end(), [](const auto& memory) {
    return std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == kPoison; });
  });
}

ValidCall::ValidCall(Base base) {
  const bool is_padded = base == Base::kDense || base == Base::kCsr;
  const DType dtype = base == Base::kCsr   ? DType::kF16
                      : base == Base::kFp8 ? DType::kBF16
                                           : DType::kF32;
  const DType cache = base == Base::kFp8 ? DType::kF8E4M3 : dtype;
  if (is_padded) {
    a.q = input(dtype, {kBatch, kRows, kQHeads, kDimQk});
    a.out = output(dtype, {kBatch, kRows, kQHeads, kDimVo});
    a.lse = output(DType::kF32, {kBatch, kRows, kQHeads});
    a.row_max = output(DType::kF32, {kBatch, kRows, kQHeads});
  } else {
    a.q = input(dtype, {kTotalQ, kQHeads, kDimQk});
    a.out = output(dtype, {kTotalQ, kQHeads, kDimVo});
    a.lse = output(DType::kF32, {kTotalQ, kQHeads});
    a.row_max = output(DType::kF32, {kTotalQ, kQHeads});
    a.cu_seqlens_q = cu_seqlens_q;
  }
  switch (base) {
    case Base::kDense:
      a.kv = DenseKV{.k = input(cache, {kBatch, kKeys, kKvHeads, kDimQk}),
                     .v = input(cache, {kBatch, kKeys, kKvHeads, kDimVo}),
                     .seqlens_kv = seqlens_kv};
      break;
    case Base::kRagged:
      a.kv = RaggedKV{.k = input(cache, {kTotalKv, kKvHeads, kDimQk}),
                      .v = input(cache, {kTotalKv, kKvHeads, kDimVo}),
                      .cu_seqlens_kv = cu_seqlens_kv};
      break;
    case Base::kBlockTable:
    case Base::kFp8:
      a.kv = PagedKV{
          .k = input(cache, {kPages, kPageSize, kKvHeads, kDimQk}),
          .v = input(cache, {kPages, kPageSize, kKvHeads, kDimVo}),
          .table = BlockTable{{pages.data(), kBatch, kTableWidth, kTableWidth}, seqlens_kv}};
      break;
    case Base::kCsr:
      a.kv = PagedKV{.k = input(cache, {kPages, kKvHeads, kPageSize, kDimQk}),
                     .v = input(cache, {kPages, kKvHeads, kPageSize, kDimVo}),
                     .layout = PageLayout::kHND,
                     .table = CsrPages{indptr, pages, last_page_len}};
      break;
  }
  a.mask = Mask::causal();
}

}  // namespace pagoda::test
