// CallBuffers: the memory of a call, as a launch on the emulator declares it. Tensors of a call
// may be views of one allocation; the emulator wants each byte in one buffer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/array_elements.hpp"
#include "emulator/machine/machine.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda::emulator {

class CallBuffers {
 public:
  // Absent and empty tensors are skipped.
  CallBuffers& reads(std::string name, const ConstTensor& tensor);
  CallBuffers& writes(std::string name, const Tensor& tensor);  // uninitialised until written
  CallBuffers& updates(std::string name, const Tensor& tensor);
  template <typename T>
  CallBuffers& reads(std::string name, std::span<const T> values) {
    return add(std::move(name), reinterpret_cast<const std::byte*>(values.data()),
               values.size_bytes(), emulator::Permission::kRead, true);
  }
  template <typename T>
  CallBuffers& reads(std::string name, const ArrayView<T>& values) {
    return reads(std::move(name), core::elements(values));
  }
  // A workspace: its prefix is zero, the rest is uninitialised.
  CallBuffers& workspace(std::span<std::byte> memory, int64_t zeroed);

  // Overlapping ranges become one buffer: writable if one part is, initialised if one part is.
  [[nodiscard]] std::vector<emulator::GlobalBuffer> merged() const;

 private:
  CallBuffers& add(std::string name, const std::byte* begin, size_t bytes,
                   emulator::Permission permission, bool is_written);
  CallBuffers& add(std::string name, const ConstTensor& tensor, emulator::Permission permission,
                   bool is_written);

  std::vector<emulator::GlobalBuffer> buffers_;
};

}  // namespace pagoda::emulator
