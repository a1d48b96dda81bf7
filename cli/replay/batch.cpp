// From chunks and page lists to offsets.
#include "cli/replay/batch.hpp"

#include <algorithm>

namespace pagoda::replay {

int32_t Batch::max_seqlen_q() const {
  int32_t longest = 0;
  for (size_t i = 0; i + 1 < cu_seqlens_q.size(); ++i) {
    longest = std::max(longest, cu_seqlens_q[i + 1] - cu_seqlens_q[i]);
  }
  return longest;
}

int32_t Batch::max_seqlen_kv(int64_t page_size) const {
  int64_t longest = 0;
  for (size_t i = 0; i < last_page_len.size(); ++i) {
    const int64_t full_pages = page_indptr[i + 1] - page_indptr[i] - 1;
    longest = std::max(longest, full_pages * page_size + last_page_len[i]);
  }
  return static_cast<int32_t>(longest);
}

Batch make_batch(const Step& step, const Scheduler& scheduler,
                 std::span<const RequestContent> contents, int64_t page_size) {
  Batch batch;
  batch.slots.reserve(static_cast<size_t>(step.tokens));
  batch.token_keys.reserve(static_cast<size_t>(step.tokens));
  batch.cu_seqlens_q.push_back(0);
  batch.page_indptr.push_back(0);
  for (const Chunk& chunk : step.chunks) {
    const std::vector<int32_t>& pages = scheduler.sequence(chunk.sequence).pages;
    const RequestContent& content = contents[static_cast<size_t>(chunk.sequence)];
    const int64_t end = chunk.start + chunk.tokens;
    for (int64_t position = chunk.start; position < end; ++position) {
      const int64_t page = pages[static_cast<size_t>(position / page_size)];
      batch.slots.push_back(page * page_size + position % page_size);
      batch.token_keys.push_back(content.token_key(position));
    }
    const int64_t used = (end + page_size - 1) / page_size;
    batch.page_indices.insert(batch.page_indices.end(), pages.begin(), pages.begin() + used);
    batch.page_indptr.push_back(static_cast<int32_t>(batch.page_indices.size()));
    batch.last_page_len.push_back(static_cast<int32_t>(end - (used - 1) * page_size));
    batch.cu_seqlens_q.push_back(static_cast<int32_t>(batch.slots.size()));
  }
  return batch;
}

}  // namespace pagoda::replay
