// PagedBatch: one step of a server as host arrays over a paged bf16 cache, with the result of the
// CPU back end in fp32. Unused slots hold NaN, unused table entries hold invalid page ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagoda/attention.hpp"

namespace pagoda::cuda_tests {

// What a plan, or a captured graph, fixes.
struct BatchShape {
  int32_t batch = 1;
  bool is_ragged = false;  // Q ragged with cu_seqlens_q; otherwise padded, [batch, max_q, ...]
  int64_t total_q = 0;     // rows of Q when ragged: at least those of any step
  int32_t max_q = 1;
  int32_t max_kv = 0;
  int32_t q_heads = 8, kv_heads = 2, dim = 128, page_size = 64;

  [[nodiscard]] int64_t rows() const { return is_ragged ? total_q : int64_t{batch} * max_q; }
  [[nodiscard]] int64_t pages_a_sequence() const { return (max_kv + page_size - 1) / page_size; }
  [[nodiscard]] int64_t num_pages() const { return batch * pages_a_sequence() + 3; }
};

// What may change between replays. A padded batch has max_q rows of every sequence.
struct StepLengths {
  std::vector<int32_t> q, kv;  // [batch]
};

// Where a call's arrays are.
struct BatchMemory {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void *out = nullptr, *lse = nullptr;
  const int32_t *cu_seqlens_q = nullptr, *seqlens_kv = nullptr, *table = nullptr;
  DType dtype = DType::kBF16;
  Device device{};
};
[[nodiscard]] Attention attention_over(const BatchShape& shape, const BatchMemory& memory);

class PagedBatch {
 public:
  PagedBatch(const BatchShape& shape, const StepLengths& lengths, uint32_t seed);

  std::vector<uint16_t> q, k, v;                  // bf16
  std::vector<int32_t> cu_seqlens_q;              // [batch + 1]
  std::vector<int32_t> seqlens_kv;                // [batch]
  std::vector<int32_t> table;                     // [batch, pages_a_sequence]
  std::vector<float> expected_out, expected_lse;  // by the CPU back end

  // The first difference, or a written element outside of all sequences; empty = none.
  [[nodiscard]] std::string difference(const std::vector<uint16_t>& out,
                                       const std::vector<float>& lse) const;

  static constexpr uint16_t kUntouched = 0xffff;  // the poison of out; of lse: four bytes of 0xff

 private:
  void hand_out_pages(const StepLengths& lengths, uint32_t seed);
  void compute_expected();
  [[nodiscard]] int64_t first_row(int32_t b) const;

  BatchShape shape_;
};

}  // namespace pagoda::cuda_tests
