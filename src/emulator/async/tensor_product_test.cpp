// Products of tcgen05 against plain loops, for every shape, kind, direction and number of CTAs, and
// a small attention kernel of two roles in which every missing synchronisation is reported. The
// images of operands and the positions of D are computed here from the tables of the ISA; no
// Blackwell chip has run these kernels.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

#include "arch/cluster.hpp"
#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/layout/operand_tile.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/machine/mutation.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

testing::AssertionResult reports(const Result& result, ReportKind kind, const uint32_t& line,
                                 std::string_view text) {
  std::string all;
  for (const Report& report : result.reports) {
    if (report.kind == kind && report.line == line && report.file == "tensor_product_test.cpp" &&
        to_string(report).find(text) != std::string::npos) {
      return testing::AssertionSuccess();
    }
    all += to_string(report) + "\n";
  }
  return testing::AssertionFailure()
         << "no " << name(kind) << " at line " << line << " with '" << text << "' in:\n"
         << all;
}

// --- one product, every shape ------------------------------------------------------------------

constexpr int kOperandImage = 32 * 1024;  // bytes of shared memory for A, and for B
constexpr int kSteps = 4;                 // instructions along K
constexpr int kLineBytes = 32 * kSteps;   // of K in all
constexpr int kColumnsOfA = 8 * kSteps;   // in tensor memory

struct ProductParams {
  arch::GlobalPtr<const uint8_t> images;  // [CTAs, A and B, kOperandImage]
  arch::GlobalPtr<const uint32_t>
      a_tensor;                 // [CTAs, 128 lanes, kColumnsOfA], or nullptr: A is in shared memory
  arch::GlobalPtr<uint32_t> d;  // [CTAs, 128 lanes, 256 columns]
  SmemDescriptor a[kSteps];     // of each step, for shared memory that begins at address 0
  SmemDescriptor b[kSteps];
  InstructionDescriptor instruction;
  int m, columns;  // of D in each CTA
  int d_lane;
};

template <MmaKind kKind, int kCtaGroup>
struct OneProduct {
  using Params = ProductParams;
  struct Storage {
    SharedArray<uint8_t, 2 * kOperandImage, 1024> images;
    SharedArray<uint32_t, 1> address;
    MBarrier done;
  };
  static constexpr int kThreads = 128;
  static constexpr int kClusterSize = kCtaGroup;
  static constexpr bool kHasTensorMemory = true;

  static PAGODA_DEVICE void copy_operands(const Params& params, Storage& storage, TmemPtr a) {
    const GlobalPtr<const uint8_t> from = params.images + cluster_rank() * 2 * kOperandImage;
    for (int i = thread_idx() * 16; i < 2 * kOperandImage; i += kThreads * 16) {
      store(storage.images.at(i).template as<void>().template as<Words<4>>(),
            load((from + i).template as<const Words<4>>()));
    }
    fence_proxy_async_shared();
    if (params.a_tensor == nullptr) return;
    for (int step = 0; step < kSteps; ++step) {
      uint32_t words[8];
      for (int i = 0; i < 8; ++i) {
        words[i] = load(params.a_tensor + (cluster_rank() * 128 + thread_idx()) * kColumnsOfA +
                        step * 8 + i);
      }
      tmem_store<TmemShape::k32x32b, 8>(a.lanes(32 * warp_idx()).columns(step * 8), words);
    }
    tmem_wait_store();
    tcgen05_fence_before_thread_sync();
  }

  static PAGODA_DEVICE void issue(const Params& params, Storage& storage, TmemPtr d, TmemPtr a) {
    const uint32_t base = storage.images.data().address();
    for (int step = 0; step < kSteps; ++step) {
      const SmemDescriptor b = advance(params.b[step], base);
      if (params.a_tensor != nullptr) {
        UMma<kKind, kCtaGroup>::ts(d, a.columns(8 * step), b, params.instruction, step > 0);
      } else {
        UMma<kKind, kCtaGroup>::ss(d, advance(params.a[step], base), b, params.instruction,
                                   step > 0);
      }
    }
    if constexpr (kCtaGroup == 1) {
      tcgen05_commit<1>(storage.done);
    } else {
      tcgen05_commit_multicast<2>(storage.done, 3);
    }
  }

  static PAGODA_DEVICE void read_result(const Params& params, TmemPtr d) {
    const int first_lane = 32 * warp_idx();
    const GlobalPtr<uint32_t> out = params.d + cluster_rank() * 128 * 256;
    for (int column = 0; column < params.columns; column += 8) {
      if (kCtaGroup == 1 && params.m == 64) {  // half of the lanes hold something
        uint32_t words[4];
        tmem_load<TmemShape::k16x256b, 1>(words, d.lanes(first_lane).columns(column));
        tmem_wait_load();
        for (int r = 0; r < 4; ++r) {
          const int lane = params.d_lane + first_lane + lane_idx() / 4 + 8 * (r / 2);
          store(out + lane * 256 + column + 2 * (lane_idx() % 4) + r % 2, words[r]);
        }
      } else {
        uint32_t words[8];
        tmem_load<TmemShape::k32x32b, 8>(words, d.lanes(first_lane).columns(column));
        tmem_wait_load();
        for (int r = 0; r < 8; ++r) store(out + thread_idx() * 256 + column + r, words[r]);
      }
    }
  }

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (warp_idx() == 0) tmem_allocate<kCtaGroup>(storage.address.data(), 512);
    if (thread_idx() == 0) {
      storage.done.init(1);
      fence_mbarrier_init();
    }
    cluster_sync();
    const TmemPtr base{load(storage.address.data())};
    const TmemPtr d = base.lanes(params.d_lane), a = base.columns(256);
    copy_operands(params, storage, a);
    cluster_sync();
    if (cluster_rank() == 0 && thread_idx() == 0) {
      tcgen05_fence_after_thread_sync();
      issue(params, storage, d, a);
    }
    storage.done.wait(0);
    tcgen05_fence_after_thread_sync();
    read_result(params, d);
    cluster_sync();
    if (warp_idx() == 0) tmem_free<kCtaGroup>(base, 512);
  }
};

struct ProductCase {
  MmaForm form;
  InstructionDescriptorFields fields;
  int d_lane = 0;
};

uint32_t encode_element(MmaType type, int value) {
  const auto number = static_cast<float>(value);
  switch (type) {
    case MmaType::kF16: return core::float_to_f16(number);
    case MmaType::kBF16: return core::float_to_bf16(number);
    case MmaType::kTF32:
      return std::bit_cast<uint32_t>(number) | 0x1fffU;  // bits that do not count
    case MmaType::kE4M3: return core::float_to_f8e4m3(number);
    case MmaType::kE5M2: return static_cast<uint32_t>(core::float_to_f16(number) >> 8);
    default: return static_cast<uint8_t>(value);
  }
}

// Small integers that every type holds exactly; all of the range for integers.
int value_at(MmaType type, int index) {
  const auto hash = static_cast<int>((static_cast<uint32_t>(index) * 2654435761U) >> 20);
  if (type == MmaType::kU8) return hash % 256;
  if (type == MmaType::kS8) return hash % 256 - 128;
  return hash % 7 - 3;
}

struct Matrix {
  int rows = 0, k = 0;
  MmaType type{};
  std::vector<int> values;  // [rows, k]
  Matrix(int rows_, int k_, MmaType type_, int seed) : rows(rows_), k(k_), type(type_) {
    for (int i = 0; i < rows * k; ++i) values.push_back(value_at(type, i + seed));
  }
  [[nodiscard]] int at(int row, int column) const {
    return values[static_cast<size_t>(row * k + column)];
  }
};

// The widest swizzle that tiles `rows` in this direction; `choice` takes narrower ones in turn.
OperandTile tile_of(int rows, int k, int bytes, Major major, int choice, uint32_t start) {
  const Swizzle all[] = {Swizzle::k128B, Swizzle::k64B, Swizzle::k32B, Swizzle::kNone};
  OperandTile tile{.start_bytes = start,
                   .mn = rows,
                   .k = k,
                   .element_bytes = bytes,
                   .major = major,
                   .swizzle = Swizzle::kNone,
                   .order = choice % 2 == 0 ? AtomOrder::kMnFirst : AtomOrder::kKFirst};
  for (int i = 0; i < 4; ++i) {
    tile.swizzle = all[(i + choice) % 4];
    if (bytes == 4 && major == Major::kMN && tile.swizzle != Swizzle::kNone) {
      tile.swizzle = Swizzle::k128BAtom32B;  // the one that tf32 reads in this direction
    }
    const AtomShape atom = atom_shape(tile);
    if (rows % static_cast<int>(atom.mn) == 0) return tile;
  }
  tile.swizzle = Swizzle::kNone;  // the last atom is only half used
  const auto atom = static_cast<int>(atom_shape(tile).mn);
  tile.mn = (rows + atom - 1) / atom * atom;
  return tile;
}

void write_image(const OperandTile& tile, const Matrix& matrix, int first_row, int rows,
                 uint8_t* shared) {
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < matrix.k; ++k) {
      const uint32_t bits = encode_element(matrix.type, matrix.at(first_row + row, k));
      const uint32_t at =
          swizzle_address(tile.start_bytes + tile_offset(tile, row, k), tile.swizzle);
      std::memcpy(shared + at, &bits, static_cast<size_t>(tile.element_bytes));
    }
  }
}

struct Place {
  int cta, lane, column;
};

// D placement as in the tables of the ISA.
Place place_of(const ProductCase& c, int row, int column) {
  const int m = c.fields.m, n = c.fields.n;
  if (c.form.cta_group == 2 && m == 256) return {row / 128, row % 128, column};
  if (c.form.cta_group == 2) {
    return column < n / 2 ? Place{row / 64, row % 64, column}
                          : Place{row / 64, 64 + row % 64, column - n / 2};
  }
  if (m == 64) return {0, row % 16 + 32 * (row / 16) + c.d_lane, column};
  return {0, row, column};
}

template <MmaKind kKind, int kCtaGroup>
Result launch_product(const ProductParams& params, std::vector<GlobalBuffer> buffers, Mode mode) {
  using Kernel = OneProduct<kKind, kCtaGroup>;
  return launch<Kernel>(shape_of<Kernel>("one_product", {kCtaGroup}), params, std::move(buffers),
                        {.mode = mode,
                         .seed = 1,
                         .report_unwritten_operands = true,
                         .mma_order = MmaOrder::kIsa});  // the steps along K are in order
}

template <MmaKind kKind>
Result launch_product(int cta_group, const ProductParams& params, std::vector<GlobalBuffer> buffers,
                      Mode mode) {
  return cta_group == 1 ? launch_product<kKind, 1>(params, std::move(buffers), mode)
                        : launch_product<kKind, 2>(params, std::move(buffers), mode);
}

int expected_at(const ProductCase& c, const Matrix& a, const Matrix& b, int row, int column) {
  int sum = 0;
  for (int k = 0; k < a.k; ++k) sum += a.at(row, k) * b.at(column, k);
  return c.fields.is_a_negated != c.fields.is_b_negated ? -sum : sum;
}

uint32_t expected_word(AccumulatorType type, int value) {
  switch (type) {
    case AccumulatorType::kS32: return static_cast<uint32_t>(value);
    case AccumulatorType::kF16: return core::float_to_f16(static_cast<float>(value));
    default: return std::bit_cast<uint32_t>(static_cast<float>(value));
  }
}

void check_product(const ProductCase& c, int choice) {
  ASSERT_EQ(validate(encode(c.fields), c.form), nullptr);
  const int group = c.form.cta_group, m = c.fields.m, n = c.fields.n;
  const int bytes = type_bits(c.fields.a_type) / 8, k = kLineBytes / bytes;
  const Matrix a(m, k, c.fields.a_type, 1), b(n, k, c.fields.b_type, 100000);
  const OperandTile a_tile = tile_of(m / group, k, bytes, c.fields.a_major, choice, 0);
  const OperandTile b_tile =
      tile_of(n / group, k, bytes, c.fields.b_major, choice / 2, kOperandImage);

  std::vector<uint8_t> images(static_cast<size_t>(group) * 2 * kOperandImage);
  std::vector<uint32_t> a_tensor(static_cast<size_t>(group) * 128 * kColumnsOfA);
  for (int i = 0; i < group; ++i) {
    uint8_t* const shared = images.data() + static_cast<ptrdiff_t>(i) * 2 * kOperandImage;
    write_image(a_tile, a, i * m / group, m / group, shared);
    write_image(b_tile, b, i * n / group, n / group, shared);
  }
  for (int row = 0; row < m; ++row) {  // beside the lanes of D, in order of K
    for (const int column : {0, n - 1}) {
      const Place place = place_of(c, row, column);
      auto* const line = reinterpret_cast<uint8_t*>(
          a_tensor.data() + static_cast<ptrdiff_t>(place.cta * 128 + place.lane) * kColumnsOfA);
      for (int i = 0; i < k; ++i) {
        const uint32_t bits = encode_element(a.type, a.at(row, i));
        std::memcpy(line + i * bytes, &bits, static_cast<size_t>(bytes));
      }
    }
  }

  std::vector<uint32_t> d(static_cast<size_t>(group) * 128 * 256, 0xdead);
  ProductParams params{.images = images.data(),
                       .a_tensor = c.form.is_a_in_tmem ? a_tensor.data() : nullptr,
                       .d = d.data(),
                       .a = {},
                       .b = {},
                       .instruction = encode(c.fields),
                       .m = m,
                       .columns = group == 2 && m == 128 ? n / 2 : n,
                       .d_lane = c.d_lane};
  for (int step = 0; step < kSteps; ++step) {
    const int first_k = step * 32 / bytes;
    params.a[step] = advance(encode(describe(a_tile), DescriptorFormat::kSm100),
                             tile_offset(a_tile, 0, first_k));
    params.b[step] = advance(encode(describe(b_tile), DescriptorFormat::kSm100),
                             tile_offset(b_tile, 0, first_k));
  }
  std::vector<GlobalBuffer> buffers = {input("images", images.data(), images.size()),
                                       input("a_tensor", a_tensor.data(), a_tensor.size()),
                                       output("d", d.data(), d.size())};
  const Mode mode = kModes[choice % 4];
  const Result result = [&] {
    switch (c.form.kind) {
      case MmaKind::kTF32: return launch_product<MmaKind::kTF32>(group, params, buffers, mode);
      case MmaKind::kF8F6F4: return launch_product<MmaKind::kF8F6F4>(group, params, buffers, mode);
      case MmaKind::kI8: return launch_product<MmaKind::kI8>(group, params, buffers, mode);
      default: return launch_product<MmaKind::kF16>(group, params, buffers, mode);
    }
  }();
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
  const uint32_t mask = c.fields.d_type == AccumulatorType::kF16 ? 0xffffU : ~0U;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      const Place place = place_of(c, row, column);
      const uint32_t got =
          d[static_cast<size_t>((place.cta * 128 + place.lane) * 256 + place.column)] & mask;
      ASSERT_EQ(got, expected_word(c.fields.d_type, expected_at(c, a, b, row, column)) & mask)
          << "row " << row << " column " << column;
    }
  }
}

struct Types {
  MmaKind kind;
  MmaType a, b;
  AccumulatorType d;
};
constexpr Types kTypes[] = {
    {MmaKind::kF16, MmaType::kBF16, MmaType::kBF16, AccumulatorType::kF32},
    {MmaKind::kF16, MmaType::kF16, MmaType::kF16, AccumulatorType::kF32},
    {MmaKind::kF16, MmaType::kF16, MmaType::kF16, AccumulatorType::kF16},
    {MmaKind::kTF32, MmaType::kTF32, MmaType::kTF32, AccumulatorType::kF32},
    {MmaKind::kF8F6F4, MmaType::kE4M3, MmaType::kE4M3, AccumulatorType::kF32},
    {MmaKind::kF8F6F4, MmaType::kE5M2, MmaType::kE4M3, AccumulatorType::kF32},
    {MmaKind::kI8, MmaType::kU8, MmaType::kS8, AccumulatorType::kS32},
    {MmaKind::kI8, MmaType::kS8, MmaType::kU8, AccumulatorType::kS32},
};

ProductCase make_case(const Types& types, bool is_a_in_tmem, int cta_group, int m, int n) {
  return {.form = {.kind = types.kind, .cta_group = cta_group, .is_a_in_tmem = is_a_in_tmem},
          .fields = {.kind = types.kind,
                     .a_type = types.a,
                     .b_type = types.b,
                     .d_type = types.d,
                     .m = m,
                     .n = n}};
}

constexpr std::pair<int, int> kGroupsAndM[] = {{1, 64}, {1, 128}, {2, 128}, {2, 256}};

TEST(TensorProduct, every_m_and_n_is_exact_from_shared_and_tensor_memory) {
  int cases = 0;
  for (const auto& [group, m] : kGroupsAndM) {
    for (int n = 8; n <= 256; n += 8) {
      for (const bool is_a_in_tmem : {false, true}) {
        ProductCase c = make_case(kTypes[0], is_a_in_tmem, group, m, n);
        if (validate_shape(c.form, m, n) != nullptr) continue;
        SCOPED_TRACE(testing::Message() << "group " << group << " m " << m << " n " << n
                                        << (is_a_in_tmem ? " ts" : " ss"));
        check_product(c, cases++);
        if (HasFatalFailure()) return;
      }
    }
  }
  RecordProperty("cases", cases);
}

TEST(TensorProduct, every_kind_direction_and_sign_is_exact) {
  int cases = 0;
  for (const Types& types : kTypes) {
    for (const auto& [group, m] : kGroupsAndM) {
      for (int variant = 0; variant < 16; ++variant) {
        const bool is_a_in_tmem = (variant & 1) != 0;
        ProductCase c = make_case(types, is_a_in_tmem, group, m, variant < 8 ? 32 : 96);
        c.fields.a_major = (variant & 2) != 0 && !is_a_in_tmem ? Major::kMN : Major::kK;
        c.fields.b_major = (variant & 4) != 0 ? Major::kMN : Major::kK;
        const bool is_integer = types.kind == MmaKind::kI8;
        c.fields.is_a_negated = !is_integer && variant % 3 == 0;
        c.fields.is_b_negated = !is_integer && variant % 5 == 0;
        c.d_lane = group == 1 && m == 64 && !is_a_in_tmem && variant >= 8 ? 16 : 0;
        SCOPED_TRACE(testing::Message() << "types " << (&types - kTypes) << " group " << group
                                        << " m " << m << " variant " << variant);
        check_product(c, cases++);
        if (HasFatalFailure()) return;
      }
    }
  }
  RecordProperty("cases", cases);
}

// --- copies ------------------------------------------------------------------------------------

// Copies rows of shared memory into tensor memory and reads all lanes.
template <TmemCopyShape kShape, int kCtaGroup>
struct CopyRows {
  static constexpr int kColumns = tmem_copy_columns(kShape);
  static constexpr int kBytes = 128 * 32;
  struct Params {
    arch::GlobalPtr<const uint32_t> rows;  // [CTAs, rows, columns], as it lies in shared memory
    SmemDescriptor from;
    arch::GlobalPtr<uint32_t> out;  // [CTAs, 128 lanes, columns]
  };
  struct Storage {
    SharedArray<uint32_t, kBytes / 4, 1024> image;
    SharedArray<uint32_t, 1> address;
    MBarrier done;
  };
  static constexpr int kThreads = 128;
  static constexpr int kClusterSize = kCtaGroup;
  static constexpr bool kHasTensorMemory = true;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (warp_idx() == 0) tmem_allocate<kCtaGroup>(storage.address.data(), 32);
    if (thread_idx() == 0) {
      storage.done.init(1);
      fence_mbarrier_init();
    }
    cluster_sync();
    const TmemPtr at{load(storage.address.data())};
    const GlobalPtr<const uint32_t> from = params.rows + cluster_rank() * kBytes / 4;
    for (int i = thread_idx(); i < kBytes / 4; i += kThreads) {
      store(storage.image.at(i), load(from + i));
    }
    fence_proxy_async_shared();
    const uint32_t zero[8] = {};
    tmem_store<TmemShape::k32x32b, 8>(at.lanes(32 * warp_idx()), zero);
    tmem_wait_store();
    tcgen05_fence_before_thread_sync();
    cluster_sync();
    if (cluster_rank() == 0 && thread_idx() == 0) {
      tcgen05_fence_after_thread_sync();
      tmem_copy<kShape, kCtaGroup>(at, advance(params.from, storage.image.data().address()));
      tcgen05_commit_multicast<kCtaGroup>(storage.done, (1 << kCtaGroup) - 1);
    }
    storage.done.wait(0);
    tcgen05_fence_after_thread_sync();
    uint32_t words[8];
    tmem_load<TmemShape::k32x32b, 8>(words, at.lanes(32 * warp_idx()));
    tmem_wait_load();
    for (int i = 0; i < 8; ++i) {
      store(params.out + (cluster_rank() * 128 + thread_idx()) * 8 + i, words[i]);
    }
    cluster_sync();
    if (warp_idx() == 0) tmem_free<kCtaGroup>(at, 32);
  }
};

// row_of(lane): the source row, or -1 where the lane keeps its zeros.
template <TmemCopyShape kShape, int kCtaGroup, class RowOf>
void check_copy(int rows, RowOf row_of) {
  using Kernel = CopyRows<kShape, kCtaGroup>;
  constexpr int kColumns = Kernel::kColumns;
  const OperandTile tile{.start_bytes = 0,
                         .mn = rows < 8 ? 8 : rows,
                         .k = 4 * kColumns,
                         .element_bytes = 1,
                         .major = Major::kK,
                         .swizzle = Swizzle::kNone,
                         .order = AtomOrder::kMnFirst};
  std::vector<uint32_t> image(kCtaGroup * Kernel::kBytes / 4);
  const auto word = [](int cta, int row, int column) {
    return static_cast<uint32_t>((cta * 1000 + row) * 10 + column + 1);
  };
  for (int cta = 0; cta < kCtaGroup; ++cta) {
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        const uint32_t at = tile_offset(tile, row, 4 * column) / 4;
        image[static_cast<size_t>(cta * Kernel::kBytes / 4) + at] = word(cta, row, column);
      }
    }
  }
  std::vector<uint32_t> out(kCtaGroup * 128 * 8, 0xdead);
  const Result result = launch<Kernel>(
      shape_of<Kernel>("copy_rows", {kCtaGroup}),
      {image.data(), encode(describe(tile), DescriptorFormat::kSm100), out.data()},
      {input("rows", image.data(), image.size()), output("out", out.data(), out.size())});
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
  for (int i = 0; i < static_cast<int>(out.size()); ++i) {
    const int column = i % 8, lane = i / 8 % 128, cta = i / 1024, row = row_of(lane);
    const uint32_t expected = row >= 0 && column < kColumns ? word(cta, row, column) : 0;
    ASSERT_EQ(out[static_cast<size_t>(i)], expected) << "lane " << lane << " column " << column;
  }
}

template <int kCtaGroup>
void check_copies() {
  using enum TmemCopyShape;
  check_copy<k128x256b, kCtaGroup>(128, [](int lane) { return lane; });
  check_copy<k128x128b, kCtaGroup>(128, [](int lane) { return lane; });
  check_copy<k4x256b, kCtaGroup>(4, [](int lane) { return lane % 32 == 0 ? lane / 32 : -1; });
  check_copy<k64x128bWarps02And13, kCtaGroup>(64, [](int lane) { return lane % 64; });
  check_copy<k64x128bWarps01And23, kCtaGroup>(64,
                                              [](int lane) { return lane / 64 * 32 + lane % 32; });
  check_copy<k32x128bWarpx4, kCtaGroup>(32, [](int lane) { return lane % 32; });
}

TEST(TensorProduct, copies_put_every_row_into_its_lanes) {
  check_copies<1>();
  check_copies<2>();
}

// --- two roles ---------------------------------------------------------------------------------

uint32_t line_of_qk, line_of_pv, line_of_commit, line_of_load, line_of_store, line_of_overwrite;
Where mark(uint32_t& line, Where where = Where::current()) {
  line = where.line();
  return where;
}

// O = sum over tiles of bf16(Q K[tile]^T + tile) V[tile], without a softmax: 128 rows, 32 keys a
// tile, depth 16 for Q and K, 32 for V. Warp 4 issues; warps 0-3 turn S into P, which takes half of
// its columns.
struct TinyAttention {
  enum class Bug {
    kNone,
    kNoProxyFence,
    kNoCommit,
    kNoWaitForS,
    kNoFenceAfterS,
    kNoWaitLoad,
    kNoWaitStore,
    kNoFenceBeforeP,
    kNoWaitForP,
    kNoFenceAfterP,
    kEarlyP,
    kAllLanesIssue,
    kAccumulateOnNothing,
    kInvalidInstruction,
    kInvalidDescriptor,
    kOperandOutside,
    kUnallocated,
    kOddLane,
    kUnwrittenOperand,
    kOperandOverwritten,
    kNobodyWaits,
    kNoInitFence,
  };
  struct Params {
    arch::GlobalPtr<const uint16_t> q;  // images: [2 chunks of 16 bytes, 128 rows]
    arch::GlobalPtr<const uint16_t> k;  // [tiles, 2 chunks, 32 keys]
    arch::GlobalPtr<const uint16_t> v;  // [tiles, 4 chunks of 8 columns, 32 keys]
    arch::GlobalPtr<float> out;         // [128, 32]
    Bug bug = Bug::kNone;
  };
  static constexpr int kTiles = 3, kKeys = 32, kDepth = 16, kColumns = 32;
  struct Storage {
    SharedArray<uint16_t, 128 * kDepth, 1024> q;
    SharedArray<uint16_t, kTiles * kKeys * kDepth, 1024> k;
    SharedArray<uint16_t, kTiles * kKeys * kColumns, 1024> v;
    SharedArray<uint32_t, 1> address;
    MBarrier s_full, p_full, o_full;
  };
  static constexpr int kThreads = 160;
  static constexpr bool kHasTensorMemory = true;

  static constexpr InstructionDescriptor instruction(Major b_major) {
    return encode(InstructionDescriptorFields{.kind = MmaKind::kF16,
                                              .a_type = MmaType::kBF16,
                                              .b_type = MmaType::kBF16,
                                              .b_major = b_major,
                                              .m = 128,
                                              .n = 32});
  }
  static PAGODA_DEVICE SmemDescriptor descriptor(SharedPtr<uint16_t> start, uint32_t leading,
                                                 uint32_t stride) {
    return encode(
        SmemDescriptorFields{
            .start_bytes = start.address(), .leading_bytes = leading, .stride_bytes = stride},
        DescriptorFormat::kSm100);
  }

  static PAGODA_DEVICE void fill(const Params& params, Storage& storage) {
    const auto copy = [](SharedPtr<uint16_t> to, GlobalPtr<const uint16_t> from, int count) {
      for (int i = thread_idx(); i < count; i += kThreads) store(to + i, load(from + i));
    };
    copy(storage.q.data(), params.q, storage.q.size());
    copy(storage.k.data(), params.k, storage.k.size());
    const bool is_short = params.bug == Bug::kUnwrittenOperand;
    copy(storage.v.data(), params.v, storage.v.size() - (is_short ? 1 : 0));
    if (params.bug != Bug::kNoProxyFence) fence_proxy_async_shared();
  }

  static PAGODA_DEVICE void issue_qk(const Params& params, Storage& storage, TmemPtr s, int tile) {
    InstructionDescriptor qk = instruction(Major::kK);
    SmemDescriptor q = descriptor(storage.q.data(), 2048, 128);
    if (params.bug == Bug::kInvalidInstruction) qk.bits |= 1U << 23;
    if (params.bug == Bug::kInvalidDescriptor) q.bits &= ~(uint64_t{1} << 46);
    if (params.bug == Bug::kOperandOutside) q = advance(q, 16 * 1024);
    if (params.bug == Bug::kUnallocated) s = s.columns(48);
    if (params.bug == Bug::kOddLane) s = s.lanes(16);
    UMma<MmaKind::kF16, 1>::ss(s, q, descriptor(storage.k.at(tile * kKeys * kDepth), 512, 128), qk,
                               params.bug == Bug::kAccumulateOnNothing, mark(line_of_qk));
  }

  static PAGODA_DEVICE void issue(const Params& params, Storage& storage, TmemPtr s, TmemPtr o) {
    const Role role("mma");
    const Bug bug = params.bug;
    for (int tile = 0; tile < kTiles; ++tile) {
      issue_qk(params, storage, s, tile);
      if (bug != Bug::kNoCommit) tcgen05_commit<1>(storage.s_full, mark(line_of_commit));
      if (bug == Bug::kOperandOverwritten) {
        store(storage.k.at(tile * kKeys * kDepth), uint16_t{0}, mark(line_of_overwrite));
      }
      // P is complete: its 128 threads have stored it and read S.
      if (bug != Bug::kNoWaitForP) storage.p_full.wait(static_cast<uint32_t>(tile) & 1U);
      if (bug != Bug::kNoFenceAfterP) tcgen05_fence_after_thread_sync();
      for (int step = 0; step < kKeys / 16; ++step) {
        const auto v = descriptor(storage.v.at(tile * kKeys * kColumns + step * 16 * 8), 128, 512);
        UMma<MmaKind::kF16, 1>::ts(o, s.columns(8 * step), v, instruction(Major::kMN),
                                   tile + step > 0, mark(line_of_pv));
      }
    }
    tcgen05_commit<1>(storage.o_full);
  }

  static PAGODA_DEVICE void convert(const Params& params, Storage& storage, TmemPtr s) {
    const Role role("convert");
    const Bug bug = params.bug;
    for (int tile = 0; tile < kTiles; ++tile) {
      if (bug != Bug::kNoWaitForS) storage.s_full.wait(static_cast<uint32_t>(tile) & 1U);
      if (bug != Bug::kNoFenceAfterS) tcgen05_fence_after_thread_sync();
      uint32_t words[kKeys];
      tmem_load<TmemShape::k32x32b, kKeys>(words, s, mark(line_of_load));
      if (bug != Bug::kNoWaitLoad) tmem_wait_load();
      if (bug == Bug::kEarlyP) storage.p_full.arrive();
      uint32_t p[kKeys / 2];
      for (int i = 0; i < kKeys / 2; ++i) {
        const auto half = [&](int key) {
          return uint32_t{
              core::float_to_bf16(std::bit_cast<float>(words[key]) + static_cast<float>(tile))};
        };
        p[i] = half(2 * i) | half(2 * i + 1) << 16;
      }
      tmem_store<TmemShape::k32x32b, kKeys / 2>(s, p, mark(line_of_store));
      if (bug != Bug::kNoWaitStore) tmem_wait_store();
      if (bug != Bug::kNoFenceBeforeP) tcgen05_fence_before_thread_sync();
      if (bug != Bug::kEarlyP) storage.p_full.arrive();
    }
  }

  static PAGODA_DEVICE void write(const Params& params, Storage& storage, TmemPtr o) {
    if (params.bug == Bug::kNobodyWaits) return;
    storage.o_full.wait(0);
    tcgen05_fence_after_thread_sync();
    uint32_t words[kColumns];
    tmem_load<TmemShape::k32x32b, kColumns>(words, o);
    tmem_wait_load();
    for (int i = 0; i < kColumns; ++i) {
      store(params.out + thread_idx() * kColumns + i, std::bit_cast<float>(words[i]));
    }
  }

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    fill(params, storage);
    if (warp_idx() == 0) tmem_allocate<1>(storage.address.data(), 64);
    if (thread_idx() == 0) {
      name_barrier(storage.s_full, "s_full");
      name_barrier(storage.p_full, "p_full");
      name_barrier(storage.o_full, "o_full");
      storage.s_full.init(1);
      storage.p_full.init(128);
      storage.o_full.init(1);
      if (params.bug != Bug::kNoInitFence) fence_mbarrier_init();
    }
    syncthreads();
    const TmemPtr s{load(storage.address.data())}, o = s.columns(32);
    if (warp_idx() == 4) {
      if (params.bug == Bug::kAllLanesIssue || lane_idx() == 0) issue(params, storage, s, o);
    } else {
      const TmemPtr own = s.lanes(32 * warp_idx());
      convert(params, storage, own);
      write(params, storage, own.columns(32));
    }
    syncthreads();
    if (warp_idx() == 0) tmem_free<1>(s, 64);
  }
};

struct Inputs {
  std::vector<uint16_t> q, k, v;
  std::vector<float> expected;
};

// Elements (row, column) of a matrix that lies in chunks of 8 columns.
uint16_t& chunk_at(std::vector<uint16_t>& image, int begin, int rows, int row, int column) {
  return image[static_cast<size_t>(begin + (column / 8 * rows + row) * 8 + column % 8)];
}

const Inputs& inputs() {
  static const Inputs all = [] {
    using A = TinyAttention;
    constexpr int kTileK = A::kKeys * A::kDepth, kTileV = A::kKeys * A::kColumns;
    Inputs made;
    made.q.resize(128 * A::kDepth);
    made.k.resize(A::kTiles * kTileK);
    made.v.resize(A::kTiles * kTileV);
    made.expected.resize(128 * A::kColumns);
    const auto value = [](int index) { return static_cast<float>(index * 7 % 11 % 3 - 1); };
    const auto q = [&](int row, int i) { return value(row * 5 + i); };
    const auto k = [&](int key, int i) { return value(key * 3 + i * 2); };
    const auto v = [&](int key, int column) { return value(key + column * 4); };
    for (int row = 0; row < 128; ++row) {
      for (int i = 0; i < A::kDepth; ++i) {
        chunk_at(made.q, 0, 128, row, i) = core::float_to_bf16(q(row, i));
      }
    }
    for (int key = 0; key < A::kTiles * A::kKeys; ++key) {
      const int tile = key / A::kKeys, in_tile = key % A::kKeys;
      for (int i = 0; i < A::kDepth; ++i) {
        chunk_at(made.k, tile * kTileK, A::kKeys, in_tile, i) = core::float_to_bf16(k(key, i));
      }
      for (int i = 0; i < A::kColumns; ++i) {
        chunk_at(made.v, tile * kTileV, A::kKeys, in_tile, i) = core::float_to_bf16(v(key, i));
      }
      for (int row = 0; row < 128; ++row) {
        auto p = static_cast<float>(tile);
        for (int i = 0; i < A::kDepth; ++i) p += q(row, i) * k(key, i);
        for (int i = 0; i < A::kColumns; ++i) {
          made.expected[static_cast<size_t>(row * A::kColumns + i)] += p * v(key, i);
        }
      }
    }
    return made;
  }();
  return all;
}

Result run_attention(TinyAttention::Bug bug, Options options, bool* is_right = nullptr) {
  const Inputs& in = inputs();
  std::vector<float> out(in.expected.size());
  Result result = launch<TinyAttention>(
      shape_of<TinyAttention>("tiny_attention", {1}),
      {in.q.data(), in.k.data(), in.v.data(), out.data(), bug},
      {input("q", in.q.data(), in.q.size()), input("k", in.k.data(), in.k.size()),
       input("v", in.v.data(), in.v.size()), output("out", out.data(), out.size())},
      options);
  if (is_right != nullptr) *is_right = out == in.expected;
  return result;
}

TEST(TensorProduct, correct_attention_is_silent_and_right_in_every_mode_over_100_seeds) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      bool is_right = false;
      const Result result =
          run_attention(TinyAttention::Bug::kNone, {.mode = mode, .seed = seed}, &is_right);
      ASSERT_TRUE(result.is_clean()) << name(mode) << ' ' << seed << '\n'
                                     << to_string(result.reports[0]);
      ASSERT_TRUE(is_right) << name(mode) << ' ' << seed;
    }
  }
}

TEST(TensorProduct, each_bug_of_the_attention_is_reported_with_its_line_in_every_mode) {
  using Bug = TinyAttention::Bug;
  constexpr auto kRace = ReportKind::kRace;
  constexpr auto kProtocol = ReportKind::kProtocol;
  struct Case {
    Bug bug;
    ReportKind kind;
    const uint32_t& line;
    const char* text;
  };
  const Case cases[] = {
      {Bug::kNoProxyFence, kRace, line_of_qk, "fence_proxy_async is missing"},
      {Bug::kNoFenceAfterS, kRace, line_of_load, "fence_after_thread_sync is missing"},
      {Bug::kNoWaitLoad, kRace, line_of_store, "no wait for the completion"},
      {Bug::kNoWaitStore, kRace, line_of_pv, "no wait for the completion"},
      {Bug::kNoFenceBeforeP, kRace, line_of_pv, "fence_before_thread_sync is missing"},
      {Bug::kNoFenceAfterP, kRace, line_of_pv, "fence_after_thread_sync is missing"},
      {Bug::kAccumulateOnNothing, ReportKind::kUninitialised, line_of_qk, "nothing wrote"},
      {Bug::kInvalidInstruction, kProtocol, line_of_qk, "the instruction descriptor is invalid"},
      {Bug::kInvalidDescriptor, kProtocol, line_of_qk, "the descriptor of A is invalid"},
      {Bug::kOperandOutside, ReportKind::kBounds, line_of_qk, "of operand A"},
      {Bug::kUnallocated, kProtocol, line_of_qk, "column 64 is not allocated"},
      {Bug::kOddLane, kProtocol, line_of_qk, "D begins at lane 16"},
      {Bug::kUnwrittenOperand, ReportKind::kUninitialised, line_of_pv, "nothing wrote"},
      {Bug::kNobodyWaits, kProtocol, line_of_pv, "without any thread having waited"},
      {Bug::kNoInitFence, kProtocol, line_of_commit, "fence_mbarrier_init is missing"},
  };
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Options options{.mode = mode, .seed = seed, .report_unwritten_operands = true};
      for (const Case& c : cases) {
        const Result result = run_attention(c.bug, options);
        EXPECT_TRUE(reports(result, c.kind, c.line, c.text))
            << name(mode) << ' ' << seed << " bug " << static_cast<int>(c.bug);
      }
      const Result stuck = run_attention(Bug::kNoCommit, options);
      EXPECT_TRUE(reports(stuck, ReportKind::kDeadlock, stuck.reports.front().line,
                          "mbarrier s_full: phase 0, still wants 1 of 1 arrivals"));
      // The line depends on which of the two comes first.
      const Result overwritten = run_attention(Bug::kOperandOverwritten, options);
      EXPECT_TRUE(reports(overwritten, kRace, line_of_overwrite, "UMma::ss") ||
                  reports(overwritten, kRace, line_of_qk, "by store"));
      for (const Bug bug :
           {Bug::kNoWaitForS, Bug::kNoWaitForP, Bug::kEarlyP, Bug::kAllLanesIssue}) {
        const Result result = run_attention(bug, options);
        EXPECT_FALSE(result.is_clean()) << name(mode) << ' ' << seed;
      }
    }
  }
}

TEST(TensorProduct, leaving_out_any_synchronisation_of_the_attention_is_noticed) {
  MutationSites sites;
  ASSERT_TRUE(run_attention(TinyAttention::Bug::kNone, {.seed = 1, .mutation = &sites}).is_clean());
  const int count = static_cast<int>(sites.sites().size());
  EXPECT_GT(count, 15);
  for (int site = 0; site < count; ++site) {
    sites.drop(site);
    bool is_noticed = false;
    for (uint64_t seed = 1; seed <= 20 && !is_noticed; ++seed) {
      bool is_right = false;
      const Result result =
          run_attention(TinyAttention::Bug::kNone, {.seed = seed, .mutation = &sites}, &is_right);
      is_noticed = !result.is_clean() || !is_right;
    }
    const MutationSite& dropped = sites.sites()[static_cast<size_t>(site)];
    EXPECT_TRUE(is_noticed) << dropped.primitive << " at line " << dropped.line << ", role "
                            << dropped.role;
  }
}

}  // namespace
}  // namespace pagoda
