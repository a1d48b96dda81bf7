// Byte ranges of strided tensors, and the union of overlapping ranges.
#include "backends/emulator/call_buffers.hpp"

#include <algorithm>
#include <utility>

namespace pagoda::emulator {

using emulator::GlobalBuffer;
using emulator::Permission;

CallBuffers& CallBuffers::add(std::string name, const std::byte* begin, size_t bytes,
                              Permission permission, bool is_written) {
  if (bytes == 0) return *this;
  buffers_.push_back({.name = std::move(name),
                      .begin = const_cast<std::byte*>(begin),
                      .bytes = bytes,
                      .permission = permission,
                      .is_written = is_written,
                      .shadow = nullptr});
  return *this;
}

// The call is valid, so offsets fit in 63 bits.
CallBuffers& CallBuffers::add(std::string name, const ConstTensor& tensor, Permission permission,
                              bool is_written) {
  if (!tensor.present()) return *this;
  int64_t low = 0, high = 1;
  for (size_t d = 0; d < static_cast<size_t>(tensor.rank); ++d) {
    if (tensor.shape[d] == 0) return *this;
    const int64_t step = (tensor.shape[d] - 1) * tensor.strides[d];
    (step < 0 ? low : high) += step;
  }
  const int64_t size = size_bytes(tensor.dtype);
  return add(std::move(name), static_cast<const std::byte*>(tensor.data) + low * size,
             static_cast<size_t>((high - low) * size), permission, is_written);
}

CallBuffers& CallBuffers::reads(std::string name, const ConstTensor& tensor) {
  return add(std::move(name), tensor, Permission::kRead, true);
}
CallBuffers& CallBuffers::writes(std::string name, const Tensor& tensor) {
  return add(std::move(name), tensor, Permission::kReadWrite, false);
}
CallBuffers& CallBuffers::updates(std::string name, const Tensor& tensor) {
  return add(std::move(name), tensor, Permission::kReadWrite, true);
}
CallBuffers& CallBuffers::workspace(std::span<std::byte> memory, int64_t zeroed) {
  const auto prefix = static_cast<size_t>(zeroed);
  add("workspace counters", memory.data(), prefix, Permission::kReadWrite, true);
  return add("workspace", memory.data() + prefix, memory.size() - prefix, Permission::kReadWrite,
             false);
}

std::vector<GlobalBuffer> CallBuffers::merged() const {
  std::vector<GlobalBuffer> sorted = buffers_, merged;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const GlobalBuffer& a, const GlobalBuffer& b) { return a.begin < b.begin; });
  for (GlobalBuffer& buffer : sorted) {
    if (merged.empty() || buffer.begin >= merged.back().begin + merged.back().bytes) {
      merged.push_back(std::move(buffer));
      continue;
    }
    GlobalBuffer& last = merged.back();
    last.name += " and " + buffer.name;
    last.bytes =
        std::max(last.bytes, static_cast<size_t>(buffer.begin - last.begin) + buffer.bytes);
    if (buffer.permission == Permission::kReadWrite) last.permission = buffer.permission;
    last.is_written = last.is_written || buffer.is_written;
  }
  return merged;
}

}  // namespace pagoda::emulator
