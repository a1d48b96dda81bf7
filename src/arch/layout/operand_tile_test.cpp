// Shared memory filled as TMA fills it, read back through the matrix descriptor: every swizzle,
// major, element size and order of atoms, at every K step and M or N block.
#include "arch/layout/operand_tile.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace pagoda::arch {
namespace {

constexpr uint32_t kStart = 3 * 1024;
constexpr int32_t kNobody = -1;

// Shared memory as the index mn * tile.k + k of the element that each byte belongs to.
class Image {
 public:
  explicit Image(const OperandTile& tile) : tile_(tile) {
    owner_.assign(kStart + static_cast<uint32_t>(tile.mn * tile.k * tile.element_bytes) + 4096,
                  kNobody);
    const int32_t lines = tile.major == Major::kK ? tile.mn : tile.k;
    const int32_t columns = tile.major == Major::kK ? tile.k : tile.mn;
    const auto width = static_cast<int32_t>(swizzle_width_bytes(tile.swizzle));
    const int32_t panel = width / tile.element_bytes;
    const int32_t atom_lines = tile.swizzle == Swizzle::k128BAtom32B ? 4 : 8;
    uint32_t to = kStart;
    if (tile.order == panel_order(tile.major)) {  // one box per panel
      for (int32_t column = 0; column < columns; column += panel) {
        to = load_box(to, 0, lines, column, panel);
      }
    } else {  // one box per atom, along the line first
      for (int32_t line = 0; line < lines; line += atom_lines) {
        for (int32_t column = 0; column < columns; column += panel) {
          to = load_box(to, line, atom_lines, column, panel);
        }
      }
    }
  }

  [[nodiscard]] int32_t owner(uint32_t address) const {
    return address < owner_.size() ? owner_[address] : kNobody;
  }

 private:
  // A TMA load writes the box's bytes in order, each at the swizzle of its own address.
  uint32_t load_box(uint32_t to, int32_t line, int32_t lines, int32_t column, int32_t columns) {
    for (int32_t i = line; i < line + lines; ++i) {
      for (int32_t j = column; j < column + columns; ++j) {
        const int32_t mn = tile_.major == Major::kK ? i : j, k = tile_.major == Major::kK ? j : i;
        for (int32_t byte = 0; byte < tile_.element_bytes; ++byte) {
          owner_[swizzle_address(to++, tile_.swizzle)] = mn * tile_.k + k;
        }
      }
    }
    return to;
  }

  OperandTile tile_;
  std::vector<int32_t> owner_;
};

// Every instruction of `block` rows (M or N) and 32 bytes of K reads its elements.
void check(const OperandTile& tile, int32_t block, DescriptorFormat format) {
  SCOPED_TRACE(std::string(tile.major == Major::kK ? "K" : "MN") + "-major, swizzle " +
               std::to_string(static_cast<int>(tile.swizzle)) + ", bytes " +
               std::to_string(tile.element_bytes) + ", order " +
               std::to_string(static_cast<int>(tile.order)));
  const Image image(tile);
  const SmemDescriptor whole = encode(describe(tile), format);
  const int32_t k_step = 32 / tile.element_bytes;
  int64_t wrong = 0;
  for (int32_t mn0 = 0; mn0 < tile.mn; mn0 += block) {
    for (int32_t k0 = 0; k0 < tile.k; k0 += k_step) {
      const SmemDescriptor descriptor = advance(whole, tile_offset(tile, mn0, k0));
      ASSERT_EQ(validate(descriptor, format, tile.major, tile.element_bytes), nullptr);
      const SmemDescriptorFields fields = decode(descriptor, format);
      for (int32_t mn = 0; mn < block; ++mn) {
        for (int32_t k = 0; k < k_step; ++k) {
          const uint32_t at = element_offset(fields, tile.major, mn, k, tile.element_bytes);
          if (image.owner(at) != (mn0 + mn) * tile.k + k0 + k) ++wrong;
          if (at % static_cast<uint32_t>(tile.element_bytes) != 0) ++wrong;
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

constexpr Swizzle kCommon[] = {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B};
constexpr AtomOrder kOrders[] = {AtomOrder::kMnFirst, AtomOrder::kKFirst};

TEST(OperandTile, k_major_reads_what_tma_wrote) {
  for (const DescriptorFormat format : {DescriptorFormat::kSm90, DescriptorFormat::kSm100}) {
    for (const Swizzle swizzle : kCommon) {
      for (const int32_t bytes : {1, 2, 4}) {
        for (const AtomOrder order : kOrders) {
          const OperandTile tile{.start_bytes = kStart,
                                 .mn = 128,
                                 .k = 256 / bytes,  // two panels of 128 bytes, eight K steps
                                 .element_bytes = bytes,
                                 .major = Major::kK,
                                 .swizzle = swizzle,
                                 .order = order};
          check(tile, 64, format);
          check(tile, 128, format);
        }
      }
    }
  }
}

TEST(OperandTile, mn_major_reads_what_tma_wrote) {
  for (const Swizzle swizzle : kCommon) {
    for (const int32_t bytes : {1, 2, 4}) {
      for (const AtomOrder order : kOrders) {
        const OperandTile tile{
            .start_bytes = kStart,
            .mn = 512 / bytes,  // up to four panels: more than one per instruction
            .k = 128,
            .element_bytes = bytes,
            .major = Major::kMN,
            .swizzle = swizzle,
            .order = order};
        check(tile, tile.mn, DescriptorFormat::kSm100);
        check(tile, tile.mn / 2, DescriptorFormat::kSm100);
        if (bytes == 2) check(tile, tile.mn, DescriptorFormat::kSm90);
      }
    }
  }
}

TEST(OperandTile, mn_major_of_four_byte_elements_with_32_byte_atoms_reads_what_tma_wrote) {
  for (const AtomOrder order : kOrders) {
    check({.start_bytes = kStart,
           .mn = 128,
           .k = 64,
           .element_bytes = 4,
           .major = Major::kMN,
           .swizzle = Swizzle::k128BAtom32B,
           .order = order},
          128, DescriptorFormat::kSm100);
  }
}

// The K steps of a Q or K tile: 32 bytes inside the panel, then the next panel.
TEST(OperandTile, k_steps_stay_in_the_panel_then_jump) {
  constexpr OperandTile kTile{.mn = 128, .k = 128};  // bf16, panels of 64
  EXPECT_EQ(tile_offset(kTile, 0, 16), 32U);
  EXPECT_EQ(tile_offset(kTile, 0, 48), 96U);
  EXPECT_EQ(tile_offset(kTile, 0, 64), 128U * 128);
  EXPECT_EQ(tile_offset(kTile, 64, 0), 8U * 1024);
}

// The same buffer read as V: 64 tokens, 128 head dimensions.
TEST(OperandTile, panels_of_v_have_the_strides_of_their_rows) {
  constexpr OperandTile kTile{
      .mn = 128, .k = 64, .major = Major::kMN, .order = panel_order(Major::kMN)};
  EXPECT_EQ(describe(kTile).leading_bytes, 64U * 128);
  EXPECT_EQ(describe(kTile).stride_bytes, 1024U);
  EXPECT_EQ(tile_offset(kTile, 0, 16), 2048U);
}

}  // namespace
}  // namespace pagoda::arch
