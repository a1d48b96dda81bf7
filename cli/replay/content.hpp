// Content: which tokens a request is made of, as 64-bit keys. Two tokens have equal keys only where
// the trace says that they have the same prefix, so keys decide both what may be shared and (in
// synthesis.hpp) which keys and values a token has.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/replay/trace.hpp"

namespace pagoda::replay {

// SplitMix64's finaliser (Steele, Lea, Flood 2014): every input bit reaches every output bit.
[[nodiscard]] constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}
[[nodiscard]] constexpr uint64_t mix(uint64_t a, uint64_t b) { return mix(mix(a) ^ b); }

class RequestContent {
 public:
  // `index` is the request's line in the trace; it makes the keys of its private tokens unique.
  RequestContent(const TraceRequest& request, int64_t index);

  // The key of the token at `position`, prompt or output.
  [[nodiscard]] uint64_t token_key(int64_t position) const {
    const auto block = static_cast<uint64_t>(position / kTraceBlockTokens);
    const uint64_t of_block = block < block_keys_.size() ? block_keys_[block] : private_key_;
    return mix(of_block, static_cast<uint64_t>(position));
  }

  // One key for each page that lies wholly in full 512-token blocks of the prompt: the pages that
  // other requests may share. Equal keys mean equal tokens from position 0 to the page's end.
  [[nodiscard]] std::vector<uint64_t> page_keys(int64_t page_size) const;

 private:
  std::vector<uint64_t> block_keys_;  // full blocks; each depends on all ids before it
  uint64_t private_key_;
};

}  // namespace pagoda::replay
