// gather: the roles that load K and V where TMA cannot: pages of any size, any strides, 16-bit
// elements or fp8, which they convert to Q's type. Two warps load K and two V, row by row.
//
// A thread copies 16 bytes at a time with cp.async: 16-bit elements into the swizzled stage; fp8
// elements into a buffer of its own (`raw`), from where the same thread converts them into the
// stage, so that no barrier is needed in between. Rows past the sequence's end and columns past the
// head dim become zeros. These are writes of the generic proxy: the consumers order them before
// wgmma's reads (Consumer::fence_gathered).
//
// H200, decode of 64 x 4096 keys, 32/8 heads of 128: bf16 269 us by pages of 64, 273 by single rows
// (TMA: 270); fp8 230 us. The consumers alone take 128 us, the copies without conversion 168.
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
#include "kernels/mha_sm90/schedule.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// How two warps share a tile [BN, depth]. Each lane looks up the page of one row; a warp copies BN
// / 2 neighbouring rows. The eight lanes of one shared memory access write neighbouring rows of one
// panel, so that they have no bank conflict; a warp writes one or two panels at once. Copy n of a
// lane is its copy 0 moved by a constant.
template <class Config, int depth, int element_bytes>
struct GatherShape {
  static constexpr arch::Swizzle swizzle = Config::tile.swizzle;
  static constexpr int BN = Config::tile.BN;
  static constexpr int chunk = Operands<Config>::chunk;  // columns of a panel
  static constexpr int rows = BN / 2;                    // of a warp
  static constexpr int elements = 16 / element_bytes;    // of a copy
  static constexpr int across = chunk / elements;        // eight lanes copy so many 16 bytes ..
  static constexpr int down = 8 / across;                // .. of so many rows
  static constexpr int panels = depth / chunk;
  static constexpr int panels_at_once =
      panels % 2 == 0 ? 2 : 1;  // a warp's copy covers so many panels ..
  static constexpr int step_rows = 4 / panels_at_once * down;       // .. of so many rows
  static constexpr int steps = rows / step_rows;                    // over all rows
  static constexpr int copies = steps * (panels / panels_at_once);  // of a thread
  static_assert(rows <= 32 && rows % 8 == 0 && across * down == 8 && rows % step_rows == 0,
                "a warp's rows are whole steps and start where the swizzle's pattern repeats");

  // Row and column of this lane's copy 0.
  static PAGODA_DEVICE int row() {
    return arch::lane_idx() / 8 / panels_at_once * down + arch::lane_idx() % 8 / across;
  }
  static PAGODA_DEVICE int column() {
    return arch::lane_idx() / 8 % panels_at_once * chunk + arch::lane_idx() % across * elements;
  }
  // From copy 0 to copy n.
  static constexpr PAGODA_DEVICE int rows_to(int n) { return n % steps * step_rows; }
  static constexpr PAGODA_DEVICE int columns_to(int n) {
    return n / steps * panels_at_once * chunk;
  }

  // Swizzled bytes from the tile's start to 8 columns of a row.
  static PAGODA_DEVICE uint32_t offset(int row, int column) {
    return swizzle_address(
        static_cast<uint32_t>((column / chunk * BN + row) * chunk + column % chunk) * 2, swizzle);
  }
  // The same for copy n, given that of copy 0, in a tile that starts at a multiple of the swizzle's
  // repeat. Row 0's index and the step's offset have no bit in common, so that the XOR
  // patterns of both combine.
  static PAGODA_DEVICE uint32_t offset_of(uint32_t offset, int n) {
    const auto moved = static_cast<uint32_t>((columns_to(n) / chunk * BN + rows_to(n)) * chunk) * 2;
    return (offset ^ (swizzle_address(moved, swizzle) ^ moved)) + moved;
  }
};

// Address and strides of K or V.
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
  [[nodiscard]] PAGODA_DEVICE int64_t row_offset(operand::KeyCoordinates place) const {
    return place.outer * outer_bytes + place.row * row_bytes;
  }
};

// Loads the first `bytes` of 16, element by element; the rest are zeros.
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

// The page and row of a key that moves towards the sequence's start, one tile a step. Only the
// constructor divides.
struct PageCursor {
  operand::SequenceRows keys;
  int32_t key = 0;              // may be past the sequence's end
  uint32_t page = 0, slot = 0;  // page of the sequence, and row of the page
  uint32_t step_pages = 0, step_slots = 0;

  PageCursor() = default;
  PAGODA_DEVICE PageCursor(const operand::SequenceRows& keys_, int32_t first_key, uint32_t step)
      : keys(keys_),
        key(first_key),
        page((keys_.first.row + static_cast<uint32_t>(first_key)) / keys_.page_size),
        slot((keys_.first.row + static_cast<uint32_t>(first_key)) % keys_.page_size),
        step_pages(step / keys_.page_size),
        step_slots(step % keys_.page_size) {}

  // Where the key is in memory. It must exist.
  [[nodiscard]] PAGODA_DEVICE operand::KeyCoordinates place() const {
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

// One thread of the two warps that load K, or V. element_bytes: 1 = e4m3, 2 = T.
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
  static constexpr int raw_tiles = tile.raw_tiles / 2;  // K has half of them, V the other half
  // Tiles in flight before the oldest is completed: in raw buffers, or in stages.
  static constexpr int max_in_flight = is_raw ? raw_tiles : Ring::num_kv_stages - 1;
  static_assert(max_in_flight >= 1, "a tile in flight needs a stage that no consumer reads");

  PAGODA_DEVICE Gather(const AttentionParams& params, Storage<Config>& storage)
      : params_(params),
        storage_(storage),
        is_aligned_(source().is_aligned()),
        issue_(Ring::producer(is_k ? storage.k_ring : storage.v_ring)),
        complete_(issue_) {}

  // Starts with the KV tiles of `work`.
  PAGODA_DEVICE void begin(const Work& work) {
    tiles_ = work.walk.num_tiles;
    if (tiles_ == 0) return;
    head_ = source().data + work.kv_head * source().head_bytes;
    end_ = work.rows.seqlen_kv;
    const int32_t key = work.walk.column(tiles_ - 1) + first_row() + arch::lane_idx();
    cursor_ = PageCursor(params_.sequences.keys.sequence(work.sequence), key, tile.BN);
    look_up();
  }
  [[nodiscard]] PAGODA_DEVICE bool has_tiles() const { return tiles_ > 0; }

  // Issues the copies of the next tile and completes the oldest in flight. Raw tiles: in the other
  // order, because the new tile takes the buffer of the old one.
  PAGODA_DEVICE void next_tile() {
    const arch::GlobalPtr<const char> row = head_ + source().row_offset(place_);
    const int32_t rows_left = end_ - cursor_.key + arch::lane_idx();  // rows of the warp that exist
    cursor_.step_back(tile.BN);
    if (--tiles_ > 0) look_up();
    if constexpr (is_raw) {
      if (in_flight_ == max_in_flight) complete<max_in_flight - 1>();
      issue(row, rows_left);
      next_raw();
    } else {
      issue_.producer_acquire();  // every consumer warp has released the stage
      issue(row, rows_left);
      issue_.step();
      if (in_flight_ == max_in_flight) complete<max_in_flight>();
    }
    if (in_flight_ < max_in_flight) ++in_flight_;
  }

  // Completes all tiles in flight.
  PAGODA_DEVICE void drain() {
    if (in_flight_ == 0) return;
    if constexpr (is_raw) {
      for (int i = in_flight_; i < max_in_flight; ++i) next_raw();  // to the oldest
    }
    for (; in_flight_ > 0; --in_flight_) {
      complete<0>();
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

  // Finds this lane's row of the next tile, or any if it does not exist. The thread waits for the
  // page table only when it issues that tile.
  PAGODA_DEVICE void look_up() {
    place_ = cursor_.key < end_ ? cursor_.place() : operand::KeyCoordinates{};
  }

  // Issues the copies of a tile. `row`: start of this lane's row.
  PAGODA_DEVICE void issue(arch::GlobalPtr<const char> row, int32_t rows_left) {
    uint32_t offset = 0;
    if constexpr (!is_raw) offset = offset_of_first(issue_.state.index, 0);
    if (is_aligned_) {
      PAGODA_UNROLL
      for (int n = 0; n < Shape::copies; ++n) {
        const Copy copy = copy_of(n, row, rows_left, offset);
        arch::cp_async<16>(copy.to, copy.from, copy.bytes);
      }
    } else {  // element by element
      PAGODA_NO_UNROLL
      for (int n = 0; n < Shape::copies; ++n) {
        const Copy copy = copy_of(n, row, rows_left, offset);
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
  // Copy n of this lane; every lane of the warp calls it.
  PAGODA_DEVICE Copy copy_of(int n, arch::GlobalPtr<const char> row, int32_t rows_left,
                             uint32_t offset) const {
    const int from_row = Shape::row() + Shape::rows_to(n);
    const int column = Shape::column() + Shape::columns_to(n);
    const uint64_t address = row.address();
    const uint32_t low = arch::shuffle(static_cast<uint32_t>(address), from_row);
    const uint32_t high = arch::shuffle(static_cast<uint32_t>(address >> 32U), from_row);
    const int32_t rest = ((is_k ? params_.dim_qk : params_.dim_vo) - column) * element_bytes;
    const int32_t bytes = rest < 0 ? 0 : (rest < 16 ? rest : 16);
    arch::SharedPtr<Words> to = raw_at(n);
    if constexpr (!is_raw) to = in_stages(Shape::offset_of(offset, n));
    return {to,
            arch::GlobalPtr<const char>::at_address(uint64_t{high} << 32U | low) +
                column * element_bytes,
            from_row < rows_left ? bytes : 0};
  }

  // Completes the oldest tile in flight, when at most `pending` younger ones are, and arrives at k
  // full or v full.
  template <int pending>
  PAGODA_DEVICE void complete() {
    arch::cp_async_wait<pending>();  // this thread's copies of the tile have landed
    if constexpr (is_raw) {
      complete_.producer_acquire();  // every consumer warp has released the stage
      convert();
    }
    arch::syncwarp();  // every lane's copies have landed, or are converted
    complete_.producer_mbar().arrive_if(arch::elect_one());
    complete_.step();
  }

  // Converts this thread's copies of the oldest raw tile into the stage, several at once to hide
  // latency.
  PAGODA_DEVICE void convert() const {
    constexpr int batch = Shape::copies % 4 == 0 ? 4 : (Shape::copies % 3 == 0 ? 3 : 1);
    const uint32_t offset[2] = {offset_of_first(complete_.state.index, 0),
                                offset_of_first(complete_.state.index, 8)};
    PAGODA_UNROLL
    for (int first = 0; first < Shape::copies; first += batch) {
      Words raw[batch];
      PAGODA_UNROLL
      for (int n = 0; n < batch; ++n) raw[n] = arch::load(raw_at(first + n));
      PAGODA_UNROLL
      for (int n = 0; n < batch; ++n) {
        Words wide[2];
        if constexpr (std::same_as<T, arch::Half>) {
          arch::widen_e4m3_f16(raw[n], wide);
        } else {
          arch::widen_e4m3_bf16(raw[n], wide);
        }
        store_wide(offset, first + n, wide);
      }
    }
  }
  PAGODA_DEVICE void store_wide(const uint32_t (&offset)[2], int n, const Words (&wide)[2]) const {
    arch::store(in_stages(Shape::offset_of(offset[0], n)), wide[0]);
    arch::store(in_stages(Shape::offset_of(offset[1], n)), wide[1]);
  }

  // Bytes from stage 0 to columns `column` .. column + 7 of this lane's copy 0 in stage `index`.
  static PAGODA_DEVICE uint32_t offset_of_first(uint32_t index, int column) {
    constexpr uint32_t bytes = (is_k ? Ops::k_elements : Ops::v_elements) * sizeof(T);
    static_assert(bytes % swizzle_repeat_bytes(tile.swizzle) == 0,
                  "stages start with the swizzle's pattern");
    index = arch::mutable_stage(is_k ? "K stages share memory" : "V stages share memory", index);
    return index * bytes + Shape::offset(first_row() + Shape::row(), Shape::column() + column);
  }
  PAGODA_DEVICE arch::SharedPtr<Words> in_stages(uint32_t bytes) const {
    const auto at = static_cast<int32_t>(bytes);
    if constexpr (is_k) {
      return (storage_.k.data().template as<char>() + at).template as<Words>();
    } else {
      return (storage_.v.data().template as<char>() + at).template as<Words>();
    }
  }
  // Buffer of this thread's copy n in raw tile raw_.
  PAGODA_DEVICE arch::SharedPtr<Words> raw_at(int n) const {
    const int32_t raw_tile = is_k ? raw_ : raw_tiles + raw_;
    return storage_.raw.at(raw_tile * (Ops::raw_bytes / 16) + n * 64 + thread());
  }
  PAGODA_DEVICE void next_raw() { raw_ = raw_ + 1 >= raw_tiles ? 0 : raw_ + 1; }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  bool is_aligned_;
  Ring issue_, complete_;  // the stages of the next tile to issue and to complete
  int32_t raw_ = 0;  // the raw tile that is issued next; its old contents are completed before
  int32_t in_flight_ = 0;  // tiles; at most max_in_flight

  // The current work tile.
  arch::GlobalPtr<const char> head_ = nullptr;
  PageCursor cursor_;              // this lane's row of the tile after next
  operand::KeyCoordinates place_;  // this lane's row of the next tile
  int32_t tiles_ = 0;              // still to issue
  int32_t end_ = 0;                // keys of the sequence
};

// The scheduler: lane 0 of warp 3, between the warp's tiles. Its state is in shared memory, to
// leave the registers to the copies.
template <class Config>
class GatherScheduler {
 public:
  PAGODA_DEVICE GatherScheduler(const AttentionParams& params, Storage<Config>& storage)
      : params_(params), storage_(storage), writer_(storage.work) {}

  // Whether this warp has the scheduler lane.
  static PAGODA_DEVICE bool is_mine() { return arch::warp_idx() == 3; }

  // Writes one work tile if the work ring has room, or waits for room if `waits`. Every lane of the
  // warps that load V calls it.
  PAGODA_DEVICE void write(bool waits) {
    if (!is_mine()) return;
    if (arch::lane_idx() == 0 && !is_done_ && (waits || writer_.has_room())) {
      StreamKWork<Config> work_tiles(params_, storage_.stream_k.start.load());
      Work work;
      is_done_ = !work_tiles.next(work);
      writer_.write(is_done_ ? Work{} : work);  // Work{}: the end
      storage_.stream_k.start.store(work_tiles.rest());
    }
    arch::syncwarp();  // the warp continues together: its copies use shuffles
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
  GatherScheduler<Config> scheduler(params, storage);
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
      // Complete the tiles in flight first. Otherwise a deadlock: the scheduler waits for room in
      // the work ring, which the consumers free only when they get these tiles.
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
  static_assert(Config::tile.rows == RowKind::kPacked, "TMA loads K and V of tiles of tokens");
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
