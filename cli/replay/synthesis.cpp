// Tables of normal numbers and where a vector lies in them.
#include "cli/replay/synthesis.hpp"

#include <cstring>

#include "core/element.hpp"

namespace pagoda::replay {

namespace {

constexpr int kPlaceBits = 16;  // 65,536 places: the tables stay in the L2 cache

// Standard normal to within 12 uniforms (Irwin-Hall); integer arithmetic up to one exact division,
// so that every machine gets the same bits.
float normal(uint64_t key) {
  int64_t sum = 0;
  for (uint64_t word = 0; word < 3; ++word) {
    const uint64_t bits = mix(key, word);
    for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>((bits >> (16 * i)) & 0xffffU);
  }
  return static_cast<float>(sum - 6 * 0xffff) / 65536.0F;
}

}  // namespace

Synthesis::Synthesis(const ModelShape& model, DType dtype, DType kv_dtype, uint64_t seed)
    : head_dim_(model.head_dim),
      element_bytes_(static_cast<size_t>(size_bytes(dtype))),
      seed_(mix(seed, 0x73796e7468U)) {
  if (kv_dtype == DType::kF8E4M3) {  // largest value 6: well inside the 448 of e4m3
    kv_scales_.k = 1.0F / 32;
    kv_scales_.v = 1.0F / 16;
  }
  for (const Operand operand : {Operand::kQuery, Operand::kKey, Operand::kValue}) {
    tables_[static_cast<size_t>(operand)] = make_table(operand, dtype, kv_dtype);
  }
  if (model.has_sinks) {  // about as large as the sum of a few thousand keys, or far below
    for (int32_t head = 0; head < model.num_q_heads; ++head) {
      sinks_.push_back(4.0F +
                       2.0F * normal(mix(seed_, 0x73696e6b00U + static_cast<uint64_t>(head))));
    }
  }
}

Synthesis::Table Synthesis::make_table(Operand operand, DType dtype, DType kv_dtype) const {
  const size_t size = (size_t{1} << kPlaceBits) + static_cast<size_t>(head_dim_);
  Table table{.elements = std::vector<std::byte>(size * element_bytes_),
              .values = std::vector<float>(size)};
  const uint64_t key = mix(seed_, static_cast<uint64_t>(operand));
  const float scale = operand == Operand::kKey ? kv_scales_.k : kv_scales_.v;
  for (size_t i = 0; i < size; ++i) {
    const auto index = static_cast<int64_t>(i);
    core::store_element(table.elements.data(), dtype, index, normal(mix(key, i)));
    float value = core::load_element(table.elements.data(), dtype, index);
    if (operand != Operand::kQuery && kv_dtype != dtype) {
      uint32_t stored = 0;
      core::store_element(&stored, kv_dtype, 0, value / scale);
      value = core::load_element(&stored, kv_dtype, 0) * scale;
    }
    table.values[i] = value;
  }
  return table;
}

size_t Synthesis::place(Operand operand, uint64_t token_key, int32_t layer, int32_t head) const {
  const uint64_t where = static_cast<uint64_t>(operand) << 60 | static_cast<uint64_t>(layer) << 32 |
                         static_cast<uint64_t>(head);
  return mix(token_key ^ seed_ ^ mix(where)) >> (64 - kPlaceBits);
}

void Synthesis::write(Operand operand, uint64_t token_key, int32_t layer, int32_t head,
                      std::byte* out) const {
  const Table& table = tables_[static_cast<size_t>(operand)];
  std::memcpy(out, table.elements.data() + place(operand, token_key, layer, head) * element_bytes_,
              static_cast<size_t>(head_dim_) * element_bytes_);
}

const float* Synthesis::values(Operand operand, uint64_t token_key, int32_t layer,
                               int32_t head) const {
  return tables_[static_cast<size_t>(operand)].values.data() +
         place(operand, token_key, layer, head);
}

}  // namespace pagoda::replay
