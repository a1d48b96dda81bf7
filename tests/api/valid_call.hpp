// ValidCall: small valid calls of every kind, with all their memory and poisoned outputs. Tests
// make one field at a time invalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda::test {

enum class Base : uint8_t {
  kDense,       // padded fp32 queries, dense cache
  kRagged,      // ragged fp32 queries, ragged cache
  kBlockTable,  // ragged fp32 queries, NHD pages by block table
  kCsr,         // padded fp16 queries, HND pages by compressed rows
  kFp8,         // ragged bf16 queries over an fp8 cache, NHD pages by block table
};

struct ValidCall {
  // 2 sequences: 3 and 2 query rows (padded: 3 and 3), 10 and 7 keys.
  static constexpr int64_t kBatch = 2, kRows = 3, kTotalQ = 5, kQHeads = 4, kKvHeads = 2;
  static constexpr int64_t kDimQk = 16, kDimVo = 8, kKeys = 10, kTotalKv = 17;
  static constexpr int64_t kPages = 6, kPageSize = 4, kTableWidth = 3;

  explicit ValidCall(Base base);
  ValidCall(const ValidCall&) = delete;
  ValidCall& operator=(const ValidCall&) = delete;

  [[nodiscard]] bool outputs_are_untouched() const;

  [[nodiscard]] DenseKV& dense() { return std::get<DenseKV>(a.kv); }
  [[nodiscard]] RaggedKV& ragged() { return std::get<RaggedKV>(a.kv); }
  [[nodiscard]] PagedKV& paged() { return std::get<PagedKV>(a.kv); }
  [[nodiscard]] BlockTable& block_table() { return std::get<BlockTable>(paged().table); }
  [[nodiscard]] CsrPages& csr() { return std::get<CsrPages>(paged().table); }

  Attention a;
  Options options{.backend = "reference", .checks_indices = true};

  std::vector<int32_t> cu_seqlens_q{0, 3, 5}, cu_seqlens_kv{0, 10, 17};
  std::vector<int32_t> seqlens_kv{10, 7}, pages{0, 3, 2, 5, 1, 4};
  std::vector<int32_t> indptr{0, 3, 5}, last_page_len{2, 3};

  // Memory for the values of an invalid field.
  std::vector<int32_t> ints;
  std::vector<int64_t> longs;
  std::vector<float> floats;
  std::vector<uint32_t> words;
  // `floats` as a tensor.
  [[nodiscard]] ConstTensor floats_of(std::initializer_list<int64_t> shape) const {
    return ConstTensor::contiguous(floats.data(), DType::kF32, shape);
  }

 private:
  ConstTensor input(DType dtype, std::initializer_list<int64_t> extents);
  Tensor output(DType dtype, std::initializer_list<int64_t> extents);

  std::vector<std::vector<std::byte>> inputs_, outputs_;
};

}  // namespace pagoda::test
