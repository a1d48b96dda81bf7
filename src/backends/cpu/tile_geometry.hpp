// TileGeometry: the sizes of a CPU tile and the offset of each buffer in a worker's scratch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cpu/isa/tile_ops.hpp"
#include "core/int_math.hpp"
#include "core/problem.hpp"

namespace pagoda::cpu {

inline constexpr int32_t kMaxItemRows = 1024;

struct TileGeometry {
  int32_t max_rows = 0;       // query rows of a work item, a multiple of kRowGroup
  int32_t tile_keys = 0;      // a multiple of 32
  int32_t element_bytes = 0;  // of the compute type
  int32_t depth = 0;          // head_dim_qk, padded
  int32_t columns = 0;        // head_dim_vo, padded to whole panels

  // Byte offsets into the scratch.
  int64_t q = 0, o = 0, scores = 0, probs = 0, k = 0, v = 0, convert = 0, q_panel = 0;
  int64_t total_bytes = 0;

  // Two buffers of scores and of probabilities; fp32 probabilities replace the scores.
  [[nodiscard]] int64_t scores_bytes() const { return int64_t{kRowGroup} * tile_keys * 4; }
  [[nodiscard]] int64_t probs_bytes() const {
    return int64_t{kRowGroup} * tile_keys * element_bytes;
  }

  [[nodiscard]] int32_t word_elements() const { return 4 / element_bytes; }
  [[nodiscard]] int32_t depth_words() const { return depth / word_elements(); }
  [[nodiscard]] int64_t k_panel_words() const { return int64_t{depth_words()} * kPanel; }
};

// Q and O of a work item take at most 768 KiB (the more rows, the less often K and V are packed), a
// tile of K and V 256 KiB; the scores of one row group (32 x 256 fp32) stay in L1.
[[nodiscard]] inline TileGeometry make_tile_geometry(const core::Problem& problem,
                                                     const TileOps& ops) {
  TileGeometry g;
  g.element_bytes = ops.is_bf16 ? 2 : 4;
  g.depth = core::align_up(problem.head_dim_qk, ops.depth_align);
  g.columns = core::align_up(problem.head_dim_vo, ops.column_align);
  const int32_t row_bytes = g.depth * g.element_bytes + g.columns * 4;
  const int32_t key_bytes = (g.depth + g.columns) * g.element_bytes;
  // A power of two: the schedule halves it if there would be too few work items.
  const auto most_rows = static_cast<uint32_t>((768 << 10) / row_bytes);
  g.max_rows = std::clamp(static_cast<int32_t>(std::bit_floor(most_rows)), kRowGroup, kMaxItemRows);
  g.tile_keys = std::clamp(core::align_down((256 << 10) / key_bytes, 32), 64, 256);
  int64_t end = 0;
  const auto take = [&end](int64_t bytes) {
    const int64_t begin = end;
    end = core::align_up<int64_t>(end + bytes, 64);
    return begin;
  };
  g.q = take(int64_t{g.max_rows} * g.depth * g.element_bytes);
  g.o = take(int64_t{g.max_rows} * g.columns * 4);
  g.scores = take(2 * g.scores_bytes());
  g.probs = ops.is_bf16 ? take(2 * g.probs_bytes()) : g.scores;
  g.k = take(int64_t{g.tile_keys} * g.depth * g.element_bytes);
  g.v = take(int64_t{g.tile_keys} * g.columns * g.element_bytes + int64_t{g.columns} * 4);
  g.convert = take(int64_t{2 * kPanel} * g.depth * g.element_bytes);
  g.q_panel = take(int64_t{2 * kPanel} * g.depth * g.element_bytes);
  g.total_bytes = end;
  return g;
}

}  // namespace pagoda::cpu
