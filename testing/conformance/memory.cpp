// Memory of test tensors.
#include "testing/conformance/memory.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <sys/mman.h>
#include <utility>

#include "core/element.hpp"

namespace pagoda::conformance {
namespace {

constexpr std::byte kPoison{0xff};  // all ones: a NaN in every type
constexpr std::align_val_t kAlignment{64};
constexpr int64_t kGuardElements = 256;  // on either side of an output

}  // namespace

Memory::Memory(int64_t bytes) : bytes_(bytes) {
  if (is_sparse()) {
    void* p = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(p);
  } else {
    data_ = static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kAlignment));
  }
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  if (is_sparse()) {
    munmap(data_, static_cast<size_t>(bytes_));
  } else {
    ::operator delete(data_, kAlignment);
  }
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      touched_(std::move(other.touched_)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(touched_, other.touched_);
  return *this;
}

void Memory::fill_with_nan(DType dtype) const {
  if (is_sparse() || bytes_ == 0) return;
  core::store_element(data_, dtype, 0, std::numeric_limits<float>::quiet_NaN());
  for (int64_t filled = size_bytes(dtype); filled < bytes_;) {
    const int64_t count = std::min(filled, bytes_ - filled);
    std::memcpy(data_ + filled, data_, static_cast<size_t>(count));
    filled += count;
  }
}

uint64_t Memory::checksum() const {
  if (is_sparse()) return 0;
  // FNV-1a of words of 8 bytes. A step has an inverse, so that no change of one word is lost.
  uint64_t sum = 0xcbf29ce484222325U;
  for (int64_t i = 0; i < bytes_; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data_ + i, static_cast<size_t>(std::min<int64_t>(8, bytes_ - i)));
    sum = (sum ^ word) * 0x100000001b3U;
  }
  return sum;
}

OutputTensor::OutputTensor(DType dtype, std::initializer_list<int64_t> shape, int64_t inner_gap,
                           int64_t middle_gap) {
  tensor_ = Tensor::contiguous(nullptr, dtype, shape);
  const auto rank = static_cast<size_t>(tensor_.rank);
  int64_t stride = tensor_.shape[rank - 1] + inner_gap;
  for (size_t d = rank - 1; d-- > 0;) {
    tensor_.strides[d] = stride;
    stride = stride * tensor_.shape[d] + middle_gap;
  }
  const int64_t elements = stride + 2 * kGuardElements;
  bytes_.resize(static_cast<size_t>(elements * size_bytes(dtype)));
  tensor_.data = bytes_.data() + kGuardElements * size_bytes(dtype);

  is_element_.assign(static_cast<size_t>(elements), false);
  int64_t count = 1;
  for (size_t d = 0; d < rank; ++d) count *= tensor_.shape[d];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t at = kGuardElements;
    for (size_t d = rank; d-- > 0;) {
      at += rest % tensor_.shape[d] * tensor_.strides[d];
      rest /= tensor_.shape[d];
    }
    is_element_[static_cast<size_t>(at)] = true;
  }
  poison();
}

void OutputTensor::poison() { std::fill(bytes_.begin(), bytes_.end(), kPoison); }

int64_t OutputTensor::offset(std::initializer_list<int64_t> index) const {
  int64_t at = 0;
  size_t d = 0;
  for (const int64_t i : index) at += i * tensor_.strides[d++];
  return at;
}

float OutputTensor::at(std::initializer_list<int64_t> index) const {
  return core::load_element(tensor_.data, tensor_.dtype, offset(index));
}

void OutputTensor::set(std::initializer_list<int64_t> index, float value) {
  core::store_element(tensor_.data, tensor_.dtype, offset(index), value);
}

std::string OutputTensor::stray_write() const {
  const auto size = static_cast<size_t>(size_bytes(tensor_.dtype));
  for (size_t i = 0; i < bytes_.size(); ++i) {
    if (bytes_[i] == kPoison || is_element_[i / size]) continue;
    return "element " + std::to_string(static_cast<int64_t>(i / size) - kGuardElements) +
           " outside the tensor was written";
  }
  return {};
}

}  // namespace pagoda::conformance
