// Anonymous mappings; whole huge pages where a buffer is larger than a few of them.
#include "bench/buffer.hpp"

#include <sys/mman.h>

namespace pagoda::bench {

Buffer::Buffer(int64_t bytes) : bytes_(bytes < 1 ? 1 : bytes) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    bytes_ = 0;
    return;
  }
  data_ = static_cast<std::byte*>(memory);
  constexpr int64_t kWorthHugePages = int64_t{8} << 20;
  if (bytes_ >= kWorthHugePages) madvise(memory, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace pagoda::bench
