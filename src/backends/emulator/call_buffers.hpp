// CallBuffers: the memory of a call, as a launch on the emulator declares it. Tensors of a call may be
// views of one allocation; the emulator wants each byte in one buffer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emulator/machine/machine.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda::emulator {

class CallBuffers {
 public:
  // Absent and empty ones are left out.
  CallBuffers& reads(std::string name, const ConstTensor& tensor);
  CallBuffers& writes(std::string name, const Tensor& tensor);  // nothing in it may be read before
  CallBuffers& updates(std::string name, const Tensor& tensor);
  template <typename T>
  CallBuffers& reads(std::string name, std::span<const T> values) {
    return add(std::move(name), reinterpret_cast<const std::byte*>(values.data()),
               values.size_bytes(), emulator::Permission::kRead, true);
  }
  // A workspace: its first bytes are zero, the others are nothing.
  CallBuffers& workspace(std::span<std::byte> memory, int64_t zeroed);

  // What overlaps is one buffer: writable where one of its parts is, known where one of them is.
  [[nodiscard]] std::vector<emulator::GlobalBuffer> merged() const;

 private:
  CallBuffers& add(std::string name, const std::byte* begin, size_t bytes,
                   emulator::Permission permission, bool is_written);
  CallBuffers& add(std::string name, const ConstTensor& tensor, emulator::Permission permission,
                   bool is_written);

  std::vector<emulator::GlobalBuffer> buffers_;
};

}  // namespace pagoda::emulator
