// Keys of blocks and pages.
#include "cli/replay/content.hpp"

namespace pagoda::replay {

RequestContent::RequestContent(const TraceRequest& request, int64_t index)
    : private_key_(mix(0x70726976617465U, static_cast<uint64_t>(index))) {
  const int64_t full_blocks = request.input_length / kTraceBlockTokens;
  block_keys_.reserve(static_cast<size_t>(full_blocks));
  uint64_t chain = 0x736861726564U;
  for (int64_t block = 0; block < full_blocks; ++block) {
    chain = mix(chain, request.hash_ids[static_cast<size_t>(block)]);
    block_keys_.push_back(chain);
  }
}

std::vector<uint64_t> RequestContent::page_keys(int64_t page_size) const {
  const int64_t pages = std::ssize(block_keys_) * kTraceBlockTokens / page_size;
  std::vector<uint64_t> keys;
  keys.reserve(static_cast<size_t>(pages));
  // A page may reach over two blocks; the key of the later one depends on the earlier one.
  for (int64_t page = 0; page < pages; ++page)
    keys.push_back(token_key((page + 1) * page_size - 1));
  return keys;
}

}  // namespace pagoda::replay
