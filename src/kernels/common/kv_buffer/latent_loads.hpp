// LatentLoads: the loads of Q and of latent rows in decoding (LatentMainloop), with addresses made
// from DecodeArguments. Rows have nine panels of 64 columns. A warp loads the panel that it
// multiplies of all keys of a KV tile, and of the last panel, which no V has, eight keys.
#pragma once

#include <cstdint>

#include "arch/cp_async.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/kv_buffer/decode_loads.hpp"
#include "kernels/common/kv_buffer/decode_work.hpp"
#include "kernels/common/kv_buffer/storage.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Config>
class LatentLoads {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kPanelColumns = 64, kPanels = tile.depth_qk / kPanelColumns;
  // A panel of a KV tile in shared memory; elements from one to the next.
  static constexpr operand::VectorLayout layout = operand::panel_layout(tile.BN, kPanelColumns / 8);
  static constexpr int kPanelSize = tile.BN * kPanelColumns;
  static constexpr int kPages = tile.BN / kPageRows;
  static constexpr int kLastRows = tile.BN / tile.warps_n;  // of the last panel, of a warp
  static_assert(kPanels == tile.warps_n + 1 && tile.depth_vo == tile.warps_n * kPanelColumns);
  static_assert(tile.warp_size == 32 && kPageRows % kLastRows == 0);

  PAGODA_DEVICE LatentLoads(const AttentionParams& params, const Work& work, int warp)
      : decode_(params.decode),
        warp_(warp),
        sequence_(work.sequence),
        first_key_(work.walk.start_column),
        num_keys_(work.rows.seqlen_kv),
        data_(params.k_data.template as<const char>() +
              int64_t{work.kv_head} * params.decode.k.head_bytes),
        pages_(pages_of_sequence(params.decode, work.sequence)) {}

  // Issues the copies of Q, a thread those of some panels of one row. Rows past the last head
  // become zeros.
  static PAGODA_DEVICE void load_q(const AttentionParams& params, Storage<Config>& storage,
                                   const Work& work) {
    constexpr int kThreads = tile.BM * 8, kPanelsAtOnce = Ops::threads / kThreads;
    static_assert(Ops::threads % kThreads == 0);
    const int row = arch::thread_idx() / 8 % tile.BM, chunk = arch::thread_idx() % 8;
    const DecodeQRow<Config> q(params, work, row);
    const arch::SharedPtr<T> to =
        storage.q.at(operand::vector_index<Ops::q_layout>(row, chunk) * 8);
    PAGODA_UNROLL
    for (int i = 0; i < kPanels; i += kPanelsAtOnce) {
      const int panel = arch::thread_idx() / kThreads + i;
      if (panel >= kPanels) continue;
      arch::cp_async<16>(to + panel * tile.BM * kPanelColumns,
                         q.data + (panel * kPanelColumns * 2 + 16 * chunk), q.exists ? 16 : 0);
    }
  }

  // The page that holds keys 16 i .. 16 i + 15 of a KV tile, i = lane % kPages: its id, or in dense
  // caches the sequence.
  [[nodiscard]] PAGODA_DEVICE int32_t find_page(int32_t index) const {
    if (pages_ == nullptr) return sequence_;
    const int32_t key = existing(first_key_of(index) + arch::lane_idx() % kPages * kPageRows);
    return arch::load_read_only(pages_ + (key >> decode_.page_shift));
  }

  // Issues the warp's copies of KV tile `index`, whose find_page() is `page_of_lane`. Rows past the
  // last key become zeros. `to`: the tile in shared memory.
  PAGODA_DEVICE void load(int32_t index, int32_t page_of_lane, arch::SharedPtr<T> to) const {
    constexpr int kRowsAtOnce = 4;  // eight lanes copy 128 bytes of a row
    const int lane_row = arch::lane_idx() / 8, chunk = arch::lane_idx() % 8;
    const arch::SharedPtr<T> panel = to + warp_ * kPanelSize,
                             last = to + (kPanels - 1) * kPanelSize;
    const int page_of_last = warp_ * kLastRows / kPageRows;
    arch::GlobalPtr<const char> last_from = data_;
    PAGODA_UNROLL
    for (int page = 0; page < kPages; ++page) {
      const int32_t first = first_key_of(index) + page * kPageRows;
      const int32_t key = existing(first);  // a copy of 0 bytes needs a valid address, too
      const int32_t of_page = key - (key >> decode_.page_shift << decode_.page_shift);
      const arch::GlobalPtr<const char> from =
          data_ + (int64_t{decode_.k.page_bytes} * arch::shuffle(page_of_lane, page) +
                   int64_t{of_page} * decode_.k.row_bytes + 16 * chunk);
      if (page == page_of_last) last_from = from;
      PAGODA_UNROLL
      for (int i = 0; i < kPageRows; i += kRowsAtOnce) {
        copy(from + warp_ * (kPanelColumns * 2), first, lane_row + i,
             panel + operand::vector_index<layout>(page * kPageRows + lane_row + i, chunk) * 8);
      }
    }
    PAGODA_UNROLL
    for (int i = 0; i < kLastRows; i += kRowsAtOnce) {
      const int row = warp_ * kLastRows + lane_row + i;
      copy(last_from + (kPanels - 1) * (kPanelColumns * 2),
           first_key_of(index) + page_of_last * kPageRows, row - page_of_last * kPageRows,
           last + operand::vector_index<layout>(row, chunk) * 8);
    }
  }

 private:
  [[nodiscard]] PAGODA_DEVICE int32_t first_key_of(int32_t index) const {
    return first_key_ + index * tile.BN;
  }
  [[nodiscard]] PAGODA_DEVICE int32_t existing(int32_t key) const {
    return key < num_keys_ ? key : num_keys_ - 1;
  }
  // Of row `row` of a page part whose first key is `first`, at `from`.
  PAGODA_DEVICE void copy(arch::GlobalPtr<const char> from, int32_t first, int row,
                          arch::SharedPtr<T> to) const {
    const int32_t end =
        arch::mutable_value("last row of a KV tile dropped", num_keys_, num_keys_ - 1);
    const bool exists = first + row < end;
    arch::cp_async<16>(to, from + int64_t{exists ? row : 0} * decode_.k.row_bytes, exists ? 16 : 0);
  }

  const DecodeArguments& decode_;
  int warp_;
  int32_t sequence_, first_key_, num_keys_;
  arch::GlobalPtr<const char> data_;  // of the head in page 0
  arch::GlobalPtr<const int32_t> pages_;
};

}  // namespace pagoda::kernels::kv_buffer
