// The load role for what TMA can't serve: two warps bring K and two bring V, row by row, from pages of any
// size and with any strides, of 16-bit elements or fp8 (converted on the way, to Q's type).
//
// A thread moves pieces of 16 bytes. cp.async brings a piece of 16-bit elements to its place in the
// stage; one of fp8 to a place of the thread's own (`raw`), whence the same thread converts it into
// the stage: no barrier between. Rows past the sequence's end and columns past the head dim are zeros.
// All these are ordinary writes; the consumers order them before wgmma's reads (attend.hpp).
//
// H200, decode of 64 x 4096 keys, 32/8 heads of 128: bf16 269 us by pages of 64, 273 by single rows (TMA:
// 270); fp8 230 us. Of these the consumers take 128, copies without conversion 168.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "arch/cp_async.hpp"
#include "arch/fault.hpp"
#include "arch/fence.hpp"
#include "arch/math.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm90/roles/load_q.hpp"
#include "kernels/mha_sm90/storage.hpp"
#include "kernels/mha_sm90/work.hpp"

namespace pagoda::mha_sm90 {

// How two warps share a tile [BN, depth]. A lane looks up the page of one row, a warp brings
// BN / 2 neighbouring rows. Eight lanes that shared memory serves at once write neighbouring rows of one panel, so that they meet no bank twice;
// a warp writes one or two panels at once. Piece n of a lane is its piece 0 moved by a constant.
template <class Config, int depth, int element_bytes>
struct GatherShape {
  static constexpr arch::Swizzle swizzle = Config::tile.swizzle;
  static constexpr int BN = Config::tile.BN;
  static constexpr int chunk = Operands<Config>::chunk;  // columns of a panel
  static constexpr int rows = BN / 2;                    // of a warp
  static constexpr int elements = 16 / element_bytes;    // of a piece
  static constexpr int across = chunk / elements;        // pieces of a row of a panel ..
  static constexpr int down = 8 / across;                // .. and rows, of eight lanes
  static constexpr int panels = depth / chunk;
  static constexpr int abreast = panels % 2 == 0 ? 2 : 1;    // panels of a warp at once ..
  static constexpr int step_rows = 4 / abreast * down;       // .. and rows
  static constexpr int steps = rows / step_rows;             // over all rows
  static constexpr int pieces = steps * (panels / abreast);  // of a thread
  static_assert(rows <= 32 && rows % 8 == 0 && across * down == 8 && rows % step_rows == 0,
                "a warp's rows are whole steps, and begin where the swizzle's pattern does");

  // Of piece 0.
  static PAGODA_DEVICE int row() {
    return arch::lane_idx() / 8 / abreast * down + arch::lane_idx() % 8 / across;
  }
  static PAGODA_DEVICE int column() {
    return arch::lane_idx() / 8 % abreast * chunk + arch::lane_idx() % across * elements;
  }
  // From piece 0 to piece n.
  static constexpr PAGODA_DEVICE int rows_to(int n) { return n % steps * step_rows; }
  static constexpr PAGODA_DEVICE int columns_to(int n) { return n / steps * abreast * chunk; }

  // Bytes from the tile's start to 8 columns of a row, as swizzled.
  static PAGODA_DEVICE uint32_t place(int row, int column) {
    return swizzle_address(
        static_cast<uint32_t>((column / chunk * BN + row) * chunk + column % chunk) * 2, swizzle);
  }
  // The same of piece n, whose piece 0 has `place` in a tile that begins at a multiple of the
  // swizzle's repeat: the bits of both rows meet nowhere, so the two patterns add up.
  static PAGODA_DEVICE uint32_t place_of(uint32_t place, int n) {
    const auto moved = static_cast<uint32_t>((columns_to(n) / chunk * BN + rows_to(n)) * chunk) * 2;
    return (place ^ (swizzle_address(moved, swizzle) ^ moved)) + moved;
  }
};

// K or V of a cache.
struct GatherSource {
  arch::GlobalPtr<const char> data = nullptr;
  int64_t outer_bytes = 0, row_bytes = 0, head_bytes = 0;

  static PAGODA_DEVICE GatherSource of(arch::GlobalPtr<const void> data,
                                       const kernels::RowsView& rows, int element_bytes) {
    return {data.as<const char>(), rows.sequence_stride * element_bytes,
            rows.row_stride * element_bytes, rows.head_stride * element_bytes};
  }
  [[nodiscard]] PAGODA_DEVICE bool is_aligned() const {
    return ((data.address() | static_cast<uintptr_t>(outer_bytes) |
             static_cast<uintptr_t>(row_bytes) | static_cast<uintptr_t>(head_bytes)) &
            15U) == 0;
  }
  [[nodiscard]] PAGODA_DEVICE int64_t row_offset(operand::KeyPlace place) const {
    return place.outer * outer_bytes + place.row * row_bytes;
  }
};

// `bytes` of 16, the rest zeros, from any address of whole elements.
template <int element_bytes>
PAGODA_DEVICE arch::Words<4> load_elements(arch::GlobalPtr<const char> from, int32_t bytes) {
  using Bits = std::conditional_t<element_bytes == 1, uint8_t, uint16_t>;
  arch::Words<4> value{{0, 0, 0, 0}};
  PAGODA_UNROLL
  for (int i = 0; i < 16; i += element_bytes) {
    if (i < bytes) {
      const uint32_t element = arch::load_read_only((from + i).template as<const Bits>());
      value.word[i / 4] |= element << static_cast<uint32_t>(8 * (i % 4));
    }
  }
  return value;
}

// Walks the pages of a sequence from its end to its start, a tile a step, without a division.
struct PageWalk {
  operand::SequenceRows keys;
  int32_t key = 0;              // may be past the sequence's end
  uint32_t page = 0, slot = 0;  // of that key
  uint32_t step_pages = 0, step_slots = 0;

  PageWalk() = default;
  PAGODA_DEVICE PageWalk(const operand::SequenceRows& keys_, int32_t first_key, uint32_t step)
      : keys(keys_),
        key(first_key),
        page(static_cast<uint32_t>(first_key) / keys_.page_size),
        slot(static_cast<uint32_t>(first_key) % keys_.page_size),
        step_pages(step / keys_.page_size),
        step_slots(step % keys_.page_size) {}

  // Of a key that exists.
  [[nodiscard]] PAGODA_DEVICE operand::KeyPlace place() const {
    if (keys.pages == nullptr)
      return {keys.first.outer, keys.first.row + static_cast<uint32_t>(key)};
    return {arch::load_read_only(keys.pages + page), slot};
  }
  PAGODA_DEVICE void step_back(int32_t step) {
    key -= step;
    page -= step_pages;
    if (slot < step_slots) {
      --page;
      slot += keys.page_size;
    }
    slot -= step_slots;
  }
};

// One thread of those that bring K, or V. element_bytes: 1 = e4m3, 2 = T.
template <class Config, bool is_k, int element_bytes>
class Gather {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Words = arch::Words<4>;
  static constexpr TileConfig tile = Config::tile;
  using Shape = GatherShape<Config, is_k ? tile.depth_qk : tile.depth_vo, element_bytes>;
  using Ring = std::conditional_t<is_k, typename Ops::KRing, typename Ops::VRing>;
  static constexpr bool is_raw = element_bytes == 1;
  // Tiles under way before the oldest is finished. 16-bit tiles lie in the stages.
  static constexpr int raw_tiles = tile.raw_tiles / 2;  // K has half of them, V has the others
  static constexpr int lag = is_raw ? raw_tiles : Ring::num_kv_stages - 1;
  static_assert(lag >= 1, "a tile needs a place where it is neither used nor finished");

  PAGODA_DEVICE Gather(const AttentionParams& params, Storage<Config>& storage)
      : params_(params),
        storage_(storage),
        is_aligned_(source().is_aligned()),
        fetch_(Ring::producer(is_k ? storage.k_ring : storage.v_ring)),
        finish_(fetch_) {}

  // The tiles of `work` are the next ones.
  PAGODA_DEVICE void begin(const Work& work) {
    tiles_ = work.walk.num_tiles;
    if (tiles_ == 0) return;
    head_ = source().data + work.kv_head * source().head_bytes;
    end_ = work.rows.seqlen_kv;
    const int32_t key = work.walk.column(tiles_ - 1) + first_row() + arch::lane_idx();
    walk_ = PageWalk(params_.sequences.keys.sequence(work.sequence), key, tile.BN);
    look_up();
  }
  [[nodiscard]] PAGODA_DEVICE bool has_tiles() const { return tiles_ > 0; }

  // Sends for a tile, and finishes the one `lag` before. Raw tiles: in the other order, for the new one
  // takes the place of the old.
  PAGODA_DEVICE void next_tile() {
    const arch::GlobalPtr<const char> row = head_ + source().row_offset(place_);
    const int32_t rows_left = end_ - walk_.key + arch::lane_idx();  // of the warp's
    walk_.step_back(tile.BN);
    if (--tiles_ > 0) look_up();
    if constexpr (is_raw) {
      if (under_way_ == lag) finish<lag - 1>();
      fetch(row, rows_left);
      next_raw();
    } else {
      fetch_.producer_acquire();  // every consumer warp has multiplied with what was there
      fetch(row, rows_left);
      fetch_.step();
      if (under_way_ == lag) finish<lag>();
    }
    if (under_way_ < lag) ++under_way_;
  }

  // Finishes all tiles under way.
  PAGODA_DEVICE void drain() {
    if (under_way_ == 0) return;
    if constexpr (is_raw) {
      for (int i = under_way_; i < lag; ++i) next_raw();  // to the oldest
    }
    for (; under_way_ > 0; --under_way_) {
      finish<0>();
      if constexpr (is_raw) next_raw();
    }
  }

 private:
  [[nodiscard]] PAGODA_DEVICE GatherSource source() const {
    if constexpr (is_k) {
      return GatherSource::of(params_.k_data, params_.k_rows, element_bytes);
    } else {
      return GatherSource::of(params_.v_data, params_.v_rows, element_bytes);
    }
  }
  static PAGODA_DEVICE int thread() { return arch::thread_idx() % 64; }
  static PAGODA_DEVICE int first_row() { return thread() / 32 * (tile.BN / 2); }

  // Of this lane's row of the next tile; where it does not exist, any. The page is not waited for before
  // the next step.
  PAGODA_DEVICE void look_up() { place_ = walk_.key < end_ ? walk_.place() : operand::KeyPlace{}; }

  // `row`: where the row of this lane begins.
  PAGODA_DEVICE void fetch(arch::GlobalPtr<const char> row, int32_t rows_left) {
    uint32_t place = 0;
    if constexpr (!is_raw) place = place_of_first(fetch_.state.index, 0);
    if (is_aligned_) {
      PAGODA_UNROLL
      for (int n = 0; n < Shape::pieces; ++n) {
        const Copy copy = copy_of(n, row, rows_left, place);
        arch::cp_async<16>(copy.to, copy.from, copy.bytes);
      }
    } else {  // element by element
      PAGODA_NO_UNROLL
      for (int n = 0; n < Shape::pieces; ++n) {
        const Copy copy = copy_of(n, row, rows_left, place);
        arch::store(copy.to, load_elements<element_bytes>(copy.from, copy.bytes));
      }
    }
    arch::cp_async_commit();
  }

  struct Copy {
    arch::SharedPtr<Words> to;
    arch::GlobalPtr<const char> from;
    int32_t bytes;  // of 16, the rest zeros
  };
  // Of piece n; every lane of the warp calls.
  PAGODA_DEVICE Copy copy_of(int n, arch::GlobalPtr<const char> row, int32_t rows_left,
                             uint32_t place) const {
    const int from_row = Shape::row() + Shape::rows_to(n);
    const int column = Shape::column() + Shape::columns_to(n);
    const uint64_t address = row.address();
    const uint32_t low = arch::shuffle(static_cast<uint32_t>(address), from_row);
    const uint32_t high = arch::shuffle(static_cast<uint32_t>(address >> 32U), from_row);
    const int32_t rest = ((is_k ? params_.dim_qk : params_.dim_vo) - column) * element_bytes;
    const int32_t bytes = rest < 0 ? 0 : (rest < 16 ? rest : 16);
    arch::SharedPtr<Words> to = raw_place(n);
    if constexpr (!is_raw) to = in_stages(Shape::place_of(place, n));
    return {to,
            arch::GlobalPtr<const char>::at_address(uint64_t{high} << 32U | low) +
                column * element_bytes,
            from_row < rows_left ? bytes : 0};
  }

  // The oldest tile under way: at most `pending` younger ones are.
  template <int pending>
  PAGODA_DEVICE void finish() {
    arch::cp_async_wait<pending>();  // this thread's pieces have landed
    if constexpr (is_raw) {
      finish_.producer_acquire();  // every consumer warp has multiplied with what was there
      convert();
    }
    arch::syncwarp();  // every lane's
    finish_.producer_mbar().arrive_if(arch::elect_one());
    finish_.step();
  }

  // Several pieces at once: a warp alone would wait for every result otherwise.
  PAGODA_DEVICE void convert() const {
    constexpr int batch = Shape::pieces % 4 == 0 ? 4 : (Shape::pieces % 3 == 0 ? 3 : 1);
    const uint32_t place[2] = {place_of_first(finish_.state.index, 0),
                               place_of_first(finish_.state.index, 8)};
    PAGODA_UNROLL
    for (int first = 0; first < Shape::pieces; first += batch) {
      Words raw[batch];
      PAGODA_UNROLL
      for (int n = 0; n < batch; ++n) raw[n] = arch::load(raw_place(first + n));
      PAGODA_UNROLL
      for (int n = 0; n < batch; ++n) {
        Words wide[2];
        if constexpr (std::same_as<T, arch::Half>) {
          arch::widen_e4m3_f16(raw[n], wide);
        } else {
          arch::widen_e4m3_bf16(raw[n], wide);
        }
        store_wide(place, first + n, wide);
      }
    }
  }
  PAGODA_DEVICE void store_wide(const uint32_t (&place)[2], int n, const Words (&wide)[2]) const {
    arch::store(in_stages(Shape::place_of(place[0], n)), wide[0]);
    arch::store(in_stages(Shape::place_of(place[1], n)), wide[1]);
  }

  // Bytes from the first stage to 8 of the columns of this lane's piece 0 in stage `index`.
  static PAGODA_DEVICE uint32_t place_of_first(uint32_t index, int column) {
    constexpr uint32_t bytes = (is_k ? Ops::k_elements : Ops::v_elements) * sizeof(T);
    static_assert(bytes % swizzle_repeat_bytes(tile.swizzle) == 0, "stages begin with the pattern");
    index = arch::mutable_stage(is_k ? "K stages share memory" : "V stages share memory", index);
    return index * bytes + Shape::place(first_row() + Shape::row(), Shape::column() + column);
  }
  PAGODA_DEVICE arch::SharedPtr<Words> in_stages(uint32_t bytes) const {
    const auto at = static_cast<int32_t>(bytes);
    if constexpr (is_k) {
      return (storage_.k.data().template as<char>() + at).template as<Words>();
    } else {
      return (storage_.v.data().template as<char>() + at).template as<Words>();
    }
  }
  // Piece n of this thread in the raw tile at hand.
  PAGODA_DEVICE arch::SharedPtr<Words> raw_place(int n) const {
    const int32_t raw_tile = is_k ? raw_ : raw_tiles + raw_;
    return storage_.raw.at(raw_tile * (Ops::raw_bytes / 16) + n * 64 + thread());
  }
  PAGODA_DEVICE void next_raw() { raw_ = raw_ + 1 >= raw_tiles ? 0 : raw_ + 1; }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  bool is_aligned_;
  Ring fetch_, finish_;
  int32_t raw_ = 0;        // the tile that is fetched next, and finished just before
  int32_t under_way_ = 0;  // at most `lag`

  // Of the work at hand.
  arch::GlobalPtr<const char> head_ = nullptr;
  PageWalk walk_;            // at this lane's row of the tile after next
  operand::KeyPlace place_;  // of that of the next tile
  int32_t tiles_ = 0;        // left
  int32_t end_ = 0;          // of the sequence
};

// The scheduler: a lane of the last warp, between its tiles. Nothing of it stays in registers.
template <class Config>
class GatherScheduler {
 public:
  PAGODA_DEVICE GatherScheduler(const AttentionParams& params, Storage<Config>& storage)
      : params_(params), storage_(storage), writer_(storage.work) {}

  // Whether this warp is the scheduler's.
  static PAGODA_DEVICE bool is_mine() { return arch::warp_idx() == 3; }

  // Every lane of the warps that bring V calls. One item, if the ring has room, or `waits`.
  PAGODA_DEVICE void write(bool waits) {
    if (!is_mine()) return;
    if (arch::lane_idx() == 0 && !is_done_ && (waits || writer_.has_room())) {
      ShareWork<Config> share(params_, storage_.share.load());
      Work work;
      is_done_ = !share.next(work);
      writer_.write(is_done_ ? Work{} : work);  // at last, the end
      storage_.share.store(share.rest());
    }
    arch::syncwarp();
  }

 private:
  const AttentionParams& params_;
  Storage<Config>& storage_;
  WorkWriter writer_;
  bool is_done_ = false;
};

template <class Config, bool is_k, int element_bytes>
PAGODA_DEVICE void gather_as(const AttentionParams& params, Storage<Config>& storage) {
  Gather<Config, is_k, element_bytes> gather(params, storage);
  GatherScheduler<Config> scheduler(params, storage);  // in its warp
  WorkReader reader(storage.work);
  bool waits = false;
  for (;;) {
    if constexpr (!is_k) scheduler.write(waits);
    waits = false;
    if (gather.has_tiles()) {
      gather.next_tile();
      continue;
    }
    if (!reader.is_ready()) {
      // It waits for room in the ring, that is for the consumers, that is for the tiles under way.
      gather.drain();
      waits = !is_k && GatherScheduler<Config>::is_mine();
      if (waits) continue;
    }
    if (!reader.next()) break;
    gather.begin(reader.work());
    reader.release();
  }
  gather.drain();
}

// All threads of the producer warpgroup.
template <class Config>
PAGODA_DEVICE void gather(const AttentionParams& params, Storage<Config>& storage) {
  static_assert(Config::tile.rows == RowKind::kPacked, "tiles of tokens come by TMA");
  const bool is_k = arch::warp_idx() < 2, is_fp8 = params.kv_element_bytes == 1;
  if (is_k && is_fp8) {
    gather_as<Config, true, 1>(params, storage);
  } else if (is_k) {
    gather_as<Config, true, 2>(params, storage);
  } else if (is_fp8) {
    gather_as<Config, false, 1>(params, storage);
  } else {
    gather_as<Config, false, 2>(params, storage);
  }
}

}  // namespace pagoda::mha_sm90
