// Anonymous mappings; huge pages for buffers of 8 MiB and more.
#include "bench/buffer.hpp"

#include <sys/mman.h>

namespace pagoda::bench {

Buffer::Buffer(int64_t bytes) {
  const int64_t size = bytes < 1 ? 1 : bytes;
  void* memory = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = std::unique_ptr<std::byte, Unmapper>(static_cast<std::byte*>(memory), Unmapper{size});
  constexpr int64_t kLeastHugeBytes = int64_t{8} << 20;
  if (size >= kLeastHugeBytes) madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);
}

void Unmapper::operator()(std::byte* memory) const { munmap(memory, static_cast<size_t>(bytes)); }

}  // namespace pagoda::bench
