// CopyTile: a kernel for tests of PagedRowIndices. It copies K and V of one tile in every way that
// PagedRowIndices has, and stores the copied rows from shared memory to global memory. Cases for it
// are in copy_tile_case.hpp; the sweep of paged_row_indices_sweep.hpp runs on the emulator,
// tests/primitives/parts.hpp also on a GPU.
#pragma once

#include <cstdint>

#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "operand/kv_operand.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::material {

namespace copy_tile {

inline constexpr int kHeads = 2, kHead = 1;         // heads of the cache; the head that is copied
inline constexpr int kChunks = 2, kFirstChunk = 1;  // the copied ones of the cache's three chunks

// The copies of one tile; each fills the start of `stage`.
enum Section : int { kK, kKHalfPanels, kV, kVZero, kVPart0, kVPart1, kSections };

}  // namespace copy_tile

template <class Indices_, arch::Swizzle swizzle>
struct CopyTile {
  using T = arch::BFloat16;
  using Indices = Indices_;
  static constexpr int BN = Indices::BN;
  static constexpr int gran = static_cast<int>(swizzle_width_bytes(swizzle)) / 2;
  static constexpr int BK = copy_tile::kChunks * gran;
  using KTile = operand::KVTmaTile<T, Indices::k_issue_rows, BK, swizzle>;
  using VTile = operand::KVTmaTile<T, Indices::template v_issue_rows<1>, BK, swizzle>;
  using VPartTile = operand::KVTmaTile<T, Indices::template v_issue_rows<2>, BK, swizzle>;

  struct Params {
    arch::TensorMap k, v, v_part;
    operand::PagedRows paged;
    operand::DenseRows dense;
    int32_t batch;
    uint32_t base_row, num_keys;
    arch::GlobalPtr<uint16_t> out;  // [kSections, BN, BK]
  };
  struct Storage {
    arch::SharedArray<T, BN * BK, 1024> stage;
    arch::MBarrier mbar;
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = 90;

  // Expects the bytes of `rows` rows, copies, waits, and stores those rows from panels of smem_rows
  // rows.
  template <class Copy>
  static PAGODA_DEVICE void section(Storage& storage, const Params& params,
                                    copy_tile::Section which, uint32_t& phase, uint32_t rows,
                                    int smem_rows, Copy copy) {
    const int32_t elect = arch::elect_one();
    storage.mbar.arrive_expect_tx_if(elect, rows * BK * 2);
    copy(elect);
    storage.mbar.wait(phase & 1U);
    ++phase;
    const uint32_t base = storage.stage.data().address();
    for (int i = arch::lane_idx(); i < static_cast<int>(rows) * BK / 8; i += 32) {
      const int row = i / (BK / 8), column = i % (BK / 8) * 8;
      const auto dense =
          static_cast<uint32_t>(((column / gran) * smem_rows + row) * gran + column % gran) * 2;
      const auto offset = static_cast<int32_t>(swizzle_address(base + dense, swizzle) - base);
      const auto words = arch::load((storage.stage.at(offset / 2)).template as<arch::Words<4>>());
      const arch::GlobalPtr<uint16_t> to = params.out + (which * BN + row) * BK + column;
      arch::store(to.template as<arch::Words<4>>(), words);
    }
    arch::syncwarp();
  }

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      storage.mbar.init(1);
      arch::fence_mbarrier_init();
    }
    arch::syncthreads();
    Indices indices;
    if constexpr (Indices::num_pages == 1) {
      indices = params.paged.pages != nullptr
                    ? params.paged.template populate<Indices>(params.batch, params.base_row)
                    : params.dense.template populate<Indices>(params.batch, params.base_row);
    } else {
      indices = params.paged.template populate<Indices>(params.batch, params.base_row);
    }
    const uint32_t k_pages = Indices::k_num_valid_pages(params.base_row, params.num_keys);
    const uint32_t v_pages =
        Indices::template v_num_valid_pages<1>(params.base_row, params.num_keys);
    const auto stage = storage.stage.data();
    uint32_t phase = 0;
    constexpr uint32_t first = copy_tile::kFirstChunk * gran;
    const uint32_t k_rows = k_pages * Indices::k_issue_rows, v_rows = v_pages * VTile::box_rows;
    const bool is_partial = k_pages < Indices::k_pages;
    constexpr auto kPolicy = arch::Eviction::kFirst;
    section(storage, params, copy_tile::kK, phase, k_rows, BN, [&](int32_t elect) {
      if (is_partial) {
        indices.template tma_copy_k<true>(KTile{&params.k}, stage, storage.mbar, copy_tile::kHead,
                                          elect, kPolicy, k_pages, first);
      } else {
        indices.template tma_copy_k<false>(KTile{&params.k}, stage, storage.mbar, copy_tile::kHead,
                                           elect, kPolicy, k_pages, first);
      }
    });
    if constexpr (Indices::pair_cta) {
      section(storage, params, copy_tile::kKHalfPanels, phase, k_rows, BN / 2, [&](int32_t elect) {
        indices.template tma_copy_k<true, BN / 2>(KTile{&params.k}, stage, storage.mbar,
                                                  copy_tile::kHead, elect, kPolicy, k_pages, first);
      });
    }
    section(storage, params, copy_tile::kV, phase, v_rows, BN, [&](int32_t elect) {
      indices.template tma_copy_v<true>(VTile{&params.v}, stage, storage.mbar, copy_tile::kHead,
                                        elect, kPolicy, v_pages, first);
    });
    section(storage, params, copy_tile::kVZero, phase, BN, BN, [&](int32_t elect) {
      indices.template tma_copy_v<true, 1, 0, operand::MissingPages::kZero>(
          VTile{&params.v}, stage, storage.mbar, copy_tile::kHead, elect, kPolicy, v_pages, first);
    });
    const uint32_t part0 =
        Indices::template v_num_valid_pages<2>(params.base_row, params.num_keys, 0);
    section(storage, params, copy_tile::kVPart0, phase, part0 * VPartTile::box_rows, BN / 2,
            [&](int32_t elect) {
              indices.template tma_copy_v<true, 2, 0>(VPartTile{&params.v_part}, stage,
                                                      storage.mbar, copy_tile::kHead, elect,
                                                      kPolicy, part0, first);
            });
    const uint32_t part1 =
        Indices::template v_num_valid_pages<2>(params.base_row, params.num_keys, 1);
    section(storage, params, copy_tile::kVPart1, phase, part1 * VPartTile::box_rows, BN / 2,
            [&](int32_t elect) {
              indices.template tma_copy_v<true, 2, 1>(VPartTile{&params.v_part}, stage,
                                                      storage.mbar, copy_tile::kHead, elect,
                                                      kPolicy, part1, first);
            });
  }
};

}  // namespace pagoda::material
