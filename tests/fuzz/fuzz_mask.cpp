// Leaf masks with memory of exactly their size, combined at random.
#include "fuzz_mask.hpp"

#include <algorithm>
#include <limits>

namespace pagoda::fuzz {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t longest(std::span<const int32_t> lengths) {
  int64_t n = 0;
  for (const int32_t length : lengths) n = std::max<int64_t>(n, length);
  return n;
}

void fill(Memory& memory, const ConstTensor& t, bool may_mask) {
  if (t.data == nullptr) return;
  auto* to = static_cast<float*>(const_cast<void*>(t.data));
  const int64_t outer = t.rank == 4 ? t.shape[0] : 1;
  const auto d = static_cast<size_t>(t.rank == 4 ? 1 : 0);
  const bool is_matrix = t.rank == 2;
  for (int64_t a = 0; a < outer; ++a) {
    for (int64_t b = 0; b < (is_matrix ? 1 : t.shape[d]); ++b) {
      for (int64_t r = 0; r < t.shape[is_matrix ? 0 : d + 1]; ++r) {
        for (int64_t c = 0; c < t.shape[is_matrix ? 1 : d + 2]; ++c) {
          const int64_t row = is_matrix ? r * t.strides[0]
                                        : (t.rank == 4 ? a * t.strides[0] : 0) + b * t.strides[d] +
                                              r * t.strides[d + 1];
          const float value = memory.value();
          to[row + c] = may_mask && value > 1.5F ? -kInfinity : value;
        }
      }
    }
  }
}

Mask make_additive(FuzzedDataProvider& data, Memory& memory, const MaskShape& shape,
                   int64_t error) {
  const auto batch = static_cast<int64_t>(shape.seqlens_q.size());
  const int64_t rows = longest(shape.seqlens_q) + data.ConsumeIntegralInRange<int64_t>(0, 1);
  const int64_t keys = longest(shape.seqlens_kv) + data.ConsumeIntegralInRange<int64_t>(0, 2);
  const int64_t b = data.ConsumeBool() ? 1 : batch;
  const int64_t h = data.ConsumeBool() ? 1 : shape.num_q_heads;
  ConstTensor t =
      data.ConsumeBool()
          ? Memory::view(data, DType::kF32, {b, rows, std::max<int64_t>(keys + error, 0)})
          : Memory::view(data, DType::kF32, {b, h, std::max<int64_t>(rows + error, 0), keys});
  memory.back(t);
  if (memory.is_backed) fill(memory, t, true);
  return Mask::additive(t);
}

Mask make_bits(FuzzedDataProvider& data, Memory& memory, const MaskShape& shape, int64_t error) {
  std::vector<int64_t> offsets{data.ConsumeIntegralInRange<int64_t>(0, 2)};
  for (size_t b = 0; b < shape.seqlens_q.size(); ++b) {
    const int64_t words = int64_t{shape.seqlens_q[b]} * ((shape.seqlens_kv[b] + 31) / 32);
    offsets.push_back(offsets.back() + words + data.ConsumeIntegralInRange<int64_t>(0, 1));
  }
  std::vector<uint32_t> words(static_cast<size_t>(std::max<int64_t>(offsets.back() + error, 0)));
  for (uint32_t& word : words) word = data.ConsumeIntegral<uint32_t>();
  const auto kept = memory.keep(words);
  return Mask::bits(kept, memory.keep(offsets));
}

Mask make_leaf(FuzzedDataProvider& data, Memory& memory, const MaskShape& shape, bool has_bias,
               bool is_spoiled) {
  const auto reach = [&] {
    return is_spoiled ? nasty_number(data) : data.ConsumeIntegralInRange<int64_t>(-2, 40);
  };
  const int64_t error = is_spoiled ? data.ConsumeIntegralInRange<int64_t>(-2, 1) : 0;
  switch (data.ConsumeIntegralInRange<int>(0, has_bias ? 8 : 6)) {
    case 0: return Mask::none();
    case 1: return Mask::causal();
    case 2: return Mask::window(reach(), reach());
    case 3: return Mask::chunked(is_spoiled ? reach() : std::max<int64_t>(reach(), 1));
    case 4: {
      std::vector<int32_t> lengths;
      for (size_t b = 0; b < shape.seqlens_q.size(); ++b) {
        lengths.push_back(static_cast<int32_t>(std::max<int64_t>(reach(), is_spoiled ? -1 : 0)));
      }
      if (error < 0 && !lengths.empty()) lengths.pop_back();
      return Mask::padding(memory.keep(lengths));
    }
    case 5: return make_bits(data, memory, shape, error);
    case 6:
      return Mask::functor([](void*, int32_t sequence, int32_t head, int64_t q, int64_t k) {
        return (q + 2 * k + sequence + head) % 3 != 0;
      });
    case 7: return make_additive(data, memory, shape, error);
    default: {
      const int64_t extent = data.ConsumeIntegralInRange<int64_t>(0, 20);
      ConstTensor t = Memory::view(data, DType::kF32, {shape.num_q_heads, 2 * extent + 1 + error});
      memory.back(t);
      if (memory.is_backed) fill(memory, t, false);
      return Mask::relative_bias(t);
    }
  }
}

}  // namespace

Mask make_mask(FuzzedDataProvider& data, Memory& memory, const MaskShape& shape, bool is_spoiled) {
  const bool has_or = data.ConsumeBool();
  Mask mask = make_leaf(data, memory, shape, !has_or || is_spoiled, is_spoiled);
  for (int joins = data.ConsumeIntegralInRange<int>(0, 4); joins > 0; --joins) {
    const Mask leaf = make_leaf(data, memory, shape, !has_or || is_spoiled, is_spoiled);
    const bool is_or = has_or && data.ConsumeBool();
    if (data.ConsumeBool()) {
      mask = is_or ? mask | leaf : mask & leaf;
    } else {
      mask = is_or ? leaf | mask : leaf & mask;
    }
  }
  return mask;
}

}  // namespace pagoda::fuzz
