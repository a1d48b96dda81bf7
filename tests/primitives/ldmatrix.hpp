// ldmatrix and stmatrix: every count, plain and transposed.
#pragma once

#include "arch/ldmatrix.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

// Row r of the 32 rows lies in slot 5 * r % 32, so that addresses matter.
PAGODA_HOST_DEVICE constexpr int matrix_slot(int row) { return 5 * row % 32; }

template <int kCount, bool is_transposed>
struct LoadMatrix {
  struct Params {
    arch::GlobalPtr<const Words<4>> in;  // [32] rows of 8 elements
    arch::GlobalPtr<uint32_t> out;       // [32 lanes, kCount]
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = 80;
  struct Storage {
    SharedArray<Words<4>, 32> rows;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int lane = thread_idx();
    store(s.rows.at(matrix_slot(lane)), load(p.in + lane));
    syncwarp();
    uint32_t words[kCount];
    const SharedPtr<const void> row = s.rows.at(matrix_slot(lane % (8 * kCount)));
    if constexpr (is_transposed) {
      ldmatrix_transposed<kCount>(words, row);
    } else {
      ldmatrix<kCount>(words, row);
    }
    PAGODA_UNROLL
    for (int i = 0; i < kCount; ++i) store(p.out + lane * kCount + i, words[i]);
  }
};

template <int kCount, bool is_transposed>
struct StoreMatrix {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [32 lanes, kCount]
    arch::GlobalPtr<Words<4>> out;       // [8 * kCount] rows
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = 90;
  struct Storage {
    SharedArray<Words<4>, 32> rows;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int lane = thread_idx();
    uint32_t words[kCount];
    PAGODA_UNROLL
    for (int i = 0; i < kCount; ++i) words[i] = load(p.in + lane * kCount + i);
    const SharedPtr<void> row = s.rows.at(matrix_slot(lane % (8 * kCount)));
    if constexpr (is_transposed) {
      stmatrix_transposed<kCount>(row, words);
    } else {
      stmatrix<kCount>(row, words);
    }
    syncwarp();
    if (lane < 8 * kCount) store(p.out + lane, load(s.rows.at(matrix_slot(lane))));
  }
};

template <int kCount, bool is_transposed>
void add_matrix_cases(Cases& cases) {
  const auto rows = from_bytes<uint16_t>(random_bytes(32 * 16, 51));  // [row, 8]
  std::vector<uint16_t> fragments(32 * kCount * 2);                   // [lane, matrix, 2]
  for (size_t lane = 0; lane < 32; ++lane) {
    for (size_t matrix = 0; matrix < kCount; ++matrix) {
      for (size_t half = 0; half < 2; ++half) {
        const size_t a = lane / 4, b = lane % 4 * 2 + half;
        const size_t row = is_transposed ? b : a, column = is_transposed ? a : b;
        fragments[(lane * kCount + matrix) * 2 + half] = rows[(matrix * 8 + row) * 8 + column];
      }
    }
  }
  const std::string variant = "/x" + std::to_string(kCount) + (is_transposed ? " transposed" : "");
  const Bytes registers = to_bytes(fragments);
  Bytes memory = to_bytes(rows);
  using Load = LoadMatrix<kCount, is_transposed>;
  using Store = StoreMatrix<kCount, is_transposed>;
  cases.push_back(make_case<Load>("ldmatrix" + variant, {}, memory, poison(registers.size()),
                                  registers, in_and_out<Load>()));
  memory.resize(static_cast<size_t>(8 * kCount * 16));
  cases.push_back(make_case<Store>("stmatrix" + variant, {}, registers, poison(memory.size()),
                                   memory, in_and_out<Store>()));
}

inline void add_ldmatrix_cases(Cases& cases) {
  add_matrix_cases<1, false>(cases);
  add_matrix_cases<2, false>(cases);
  add_matrix_cases<4, false>(cases);
  add_matrix_cases<1, true>(cases);
  add_matrix_cases<2, true>(cases);
  add_matrix_cases<4, true>(cases);
}

}  // namespace pagoda::primitives
