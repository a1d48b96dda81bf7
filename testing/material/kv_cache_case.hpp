// KVCacheCase: K or V of one sequence in a cache of any layout, with random elements. Every byte of
// the cache that is not an element of the sequence holds NaN, and each row is a buffer of its own:
// the emulator reports a read of anything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "operand/key_rows.hpp"
#include "operand/kv_tile.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::material {

struct CacheFormat {
  operand::KeyRowsKind kind = operand::KeyRowsKind::kDense;
  int page_size = 0;    // kPaged
  bool is_csr = false;  // kPaged: by CSR instead of a block table
  DType dtype = DType::kBF16;
  int dim = 128;
  int row_gap = 0;  // elements after each row
  int first = 0;    // elements before the first row

  [[nodiscard]] std::string name() const {
    static constexpr const char* kKinds[] = {"dense", "ragged", "paged"};
    return std::string(kKinds[static_cast<int>(kind)]) + ' ' + std::to_string(page_size) +
           (is_csr ? " CSR, " : ", ") + pagoda::name(dtype) + ", dim " + std::to_string(dim) +
           ", gap " + std::to_string(row_gap) + ", first " + std::to_string(first);
  }
};

class KVCacheCase {
 public:
  static constexpr int kSequence = 1;  // sequence 0, and 2 where there is one, hold NaN

  KVCacheCase(const CacheFormat& format, int num_keys, uint32_t seed = 1)
      : format_(format), num_keys_(num_keys) {
    using operand::KeyRowsKind;
    if (format.kind == KeyRowsKind::kPaged) {
      const int num_pages = (num_keys + format.page_size - 1) / format.page_size;
      table_.assign(static_cast<size_t>(format.is_csr ? 2 : num_pages), -1);  // of sequence 0
      first_page_ = {0, static_cast<int32_t>(table_.size()), 0};
      for (int i = 0; i < num_pages; ++i) table_.push_back(2 * (num_pages - 1 - i) + 1);
      first_page_[2] = static_cast<int32_t>(table_.size());
      outer_rows_ = format.page_size + 1;  // pages are further apart than they are long
      num_rows_ = 2 * num_pages * outer_rows_;
    } else {
      offsets_ = {0, kOtherKeys, kOtherKeys + num_keys};
      outer_rows_ = num_keys + 2;
      num_rows_ = 3 * outer_rows_ + kOtherKeys;
    }
    const int64_t elements = format.first + num_rows_ * row_elements();
    bytes_.assign(static_cast<size_t>(elements * size_bytes(format.dtype)), std::byte{0xff});
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int key = 0; key < num_keys; ++key) {
      for (int column = 0; column < format.dim; ++column) set(key, column, uniform(random));
    }
  }

  [[nodiscard]] const CacheFormat& format() const { return format_; }
  [[nodiscard]] int num_keys() const { return num_keys_; }
  void set(int key, int column, float value) {
    core::store_element(bytes_.data(), format_.dtype, index(key, column), value);
  }
  void set_byte(int key, int column, uint8_t byte) {  // e4m3
    bytes_[static_cast<size_t>(index(key, column))] = static_cast<std::byte>(byte);
  }
  // An element; zero where there is none.
  [[nodiscard]] float at(int key, int column) const {
    if (!exists(key, column)) return 0;
    return core::load_element(bytes_.data(), format_.dtype, index(key, column));
  }
  // As it is stored; zero where there is none.
  [[nodiscard]] uint32_t bits(int key, int column) const {
    if (!exists(key, column)) return 0;
    const auto size = static_cast<size_t>(size_bytes(format_.dtype));
    uint32_t bits = 0;
    for (size_t i = 0; i < size; ++i) {
      const std::byte byte = bytes_[static_cast<size_t>(index(key, column)) * size + i];
      bits |= static_cast<uint32_t>(byte) << 8 * i;
    }
    return bits;
  }

  [[nodiscard]] operand::KVSource source() const {
    const int64_t size = size_bytes(format_.dtype);
    operand::KVSource source;
    source.data = reinterpret_cast<const char*>(bytes_.data()) + format_.first * size;
    source.outer_bytes = outer_rows_ * row_elements() * size;
    source.row_bytes = row_elements() * size;
    source.dim = format_.dim;
    source.element_bytes = static_cast<int32_t>(size);
    source.is_aligned = format_.first % 8 == 0 && row_elements() % 8 == 0;
    return source;
  }
  [[nodiscard]] operand::KeyRows keys() const {
    operand::KeyRows keys;
    keys.kind = format_.kind;
    keys.dense.keys_per_batch = static_cast<uint32_t>(num_keys_);
    keys.ragged.offsets = offsets_.data();
    keys.paged.pages = table_.data();
    keys.paged.page_size = format_.page_size;
    if (format_.is_csr) {
      keys.paged.first_page_of = first_page_.data();
    } else {
      keys.paged.table_stride = static_cast<int64_t>(table_.size() / 2);
    }
    return keys;
  }
  // What a launch may read, besides `others`.
  [[nodiscard]] std::vector<emulator::GlobalBuffer> buffers(
      std::vector<emulator::GlobalBuffer> others) const {
    const auto size = static_cast<size_t>(size_bytes(format_.dtype));
    if (!offsets_.empty()) others.push_back(emulator::input("offsets", offsets_.data(), 3));
    if (!table_.empty()) others.push_back(emulator::input("pages", table_.data(), table_.size()));
    if (!table_.empty()) others.push_back(emulator::input("first pages", first_page_.data(), 3));
    for (int key = 0; key < num_keys_; ++key) {
      others.push_back(emulator::input("key " + std::to_string(key),
                                       bytes_.data() + static_cast<size_t>(index(key, 0)) * size,
                                       static_cast<size_t>(format_.dim) * size));
    }
    return others;
  }

 private:
  static constexpr int kOtherKeys = 5;  // ragged: of the sequence before

  [[nodiscard]] int64_t row_elements() const { return format_.dim + format_.row_gap; }
  [[nodiscard]] bool exists(int key, int column) const {
    return key < num_keys_ && column < format_.dim;
  }
  [[nodiscard]] int64_t index(int key, int column) const {
    int64_t row = 0;
    switch (format_.kind) {
      case operand::KeyRowsKind::kDense: row = kSequence * outer_rows_ + key; break;
      case operand::KeyRowsKind::kRagged: row = kOtherKeys + key; break;
      case operand::KeyRowsKind::kPaged: {
        const auto page = static_cast<size_t>(first_page_[1] + key / format_.page_size);
        row = static_cast<int64_t>(table_[page]) * outer_rows_ + key % format_.page_size;
        break;
      }
    }
    return format_.first + row * row_elements() + column;
  }

  CacheFormat format_;
  int num_keys_;
  int64_t outer_rows_ = 0, num_rows_ = 0;
  std::vector<int32_t> table_, first_page_, offsets_;
  std::vector<std::byte> bytes_;
};

}  // namespace pagoda::material
