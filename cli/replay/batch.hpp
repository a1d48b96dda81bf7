// The arrays that describe one step to append_kv() and to the attention call: the same for every
// layer, because all layers keep a token in the same page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/replay/content.hpp"
#include "cli/replay/scheduler.hpp"

namespace pagoda::replay {

struct Batch {
  std::vector<int32_t> cu_seqlens_q;   // [chunks + 1]
  std::vector<int32_t> page_indptr;    // [chunks + 1]
  std::vector<int32_t> page_indices;   // [page_indptr[chunks]]
  std::vector<int32_t> last_page_len;  // [chunks]
  std::vector<int64_t> slots;          // [tokens], where new keys and values go
  std::vector<uint64_t> token_keys;    // [tokens]

  [[nodiscard]] int64_t tokens() const { return std::ssize(slots); }
  // The longest of its sequences, in new tokens and in keys.
  [[nodiscard]] int32_t max_seqlen_q() const;
  [[nodiscard]] int32_t max_seqlen_kv(int64_t page_size) const;
};

// `contents` by sequence number.
[[nodiscard]] Batch make_batch(const Step& step, const Scheduler& scheduler,
                               std::span<const RequestContent> contents, int64_t page_size);

}  // namespace pagoda::replay
