// Views, their sizes and their memory.
#include "fuzz_memory.hpp"

#include <cstring>

namespace pagoda::fuzz {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

using Wide = __int128;  // no product of two 64-bit numbers overflows

}  // namespace

int64_t nasty_number(FuzzedDataProvider& data) {
  constexpr int64_t kNumbers[] = {
      0,         1,         -1,        2,         3,         7,         8,         16,
      INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1LL << 31, 1LL << 32, 1LL << 62, -(1LL << 40)};
  if (data.ConsumeBool()) return data.ConsumeIntegralInRange<int64_t>(-4, 40);
  return data.PickValueInArray(kNumbers);
}

ConstTensor Memory::view(FuzzedDataProvider& data, DType dtype,
                         std::initializer_list<int64_t> extents) {
  ConstTensor tensor{.dtype = dtype};
  for (const int64_t extent : extents) tensor.shape[static_cast<size_t>(tensor.rank++)] = extent;
  int64_t stride = 1;
  for (int32_t d = tensor.rank - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    tensor.strides[i] = stride;
    stride = stride * tensor.shape[i] + data.ConsumeIntegralInRange<int64_t>(0, 3);
  }
  return tensor;
}

void* Memory::allocate(const ConstTensor& tensor) {
  void* const nowhere = reinterpret_cast<void*>(uintptr_t{1} << 46);  // never mapped
  Wide low = 0, high = 1;
  for (int32_t d = 0; d < std::min(tensor.rank, kMaxRank); ++d) {
    const auto i = static_cast<size_t>(d);
    if (tensor.shape[i] <= 0) return nullptr;
    const Wide reach = Wide{tensor.shape[i] - 1} * tensor.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const Wide bytes = (high - low) * size_bytes(tensor.dtype);
  if (bytes > kMostBytes) {
    is_backed = false;
    return nowhere;
  }
  const auto size = static_cast<size_t>(bytes);
  auto& block = blocks_.emplace_back(new std::byte[size]);
  std::memset(block.get(), 0xff, size);
  return block.get() - static_cast<int64_t>(low) * size_bytes(tensor.dtype);
}

void Memory::back(ConstTensor& tensor) { tensor.data = allocate(tensor); }
void Memory::back(Tensor& tensor) { tensor.data = allocate(tensor); }

}  // namespace pagoda::fuzz
