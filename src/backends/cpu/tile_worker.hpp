// TileWorker: computes one work item at a time on one thread, with the tile operations of one
// instruction set. The merge counter is the only state that it shares with other threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/isa/tile_ops.hpp"
#include "backends/cpu/tile_geometry.hpp"
#include "core/problem.hpp"
#include "schedule/work_list.hpp"

namespace pagoda::cpu {

inline constexpr int32_t kMaxRowsAhead = 64;

// Partial results of split work items, and per merge group the number of unfinished items.
struct Partials {
  int32_t* counters = nullptr;  // [num_kv_heads][num_merge_groups]
  float* sums = nullptr;        // [num_kv_heads][num_partial_rows][2]: m, l
  float* o = nullptr;           // [num_kv_heads][num_partial_rows][columns], not normalised
  int64_t num_merge_groups = 0;
  int64_t num_partial_rows = 0;
};

class TileWorker {
 public:
  TileWorker(const core::Problem& problem, const TileOps& ops, const TileGeometry& geometry,
             const Partials& partials, std::byte* scratch);

  void run(const schedule::WorkItem& item, int32_t kv_head);

 private:
  // Up to kRowGroup rows of the item against the loaded tile, over the columns that any of them
  // sees; begin and columns are multiples of 32.
  struct GroupTile {
    int32_t first_row = 0;
    int32_t rows = 0;
    int32_t begin = 0;                      // first column
    int32_t columns = 0;                    // 0: nothing is visible
    int32_t buffer = 0;                     // which of the two score buffers
    std::array<int32_t, kRowGroup> lo, hi;  // visible columns, relative to `begin`
  };

  void begin_item(const schedule::WorkItem& item, int32_t kv_head);
  void load_tile(int32_t first_key, int32_t count);
  void compute_tile(int32_t first_key, int32_t count);
  bool next_group(int32_t& first_row, int32_t first_key, int32_t count, GroupTile& group) const;
  [[nodiscard]] ScoreTile score_tile(const GroupTile& group, int32_t begin, int32_t end);
  void multiply_qk(const GroupTile& group, const ScoreTile* side);
  void multiply_pv(const GroupTile& group, const ScoreTile* side);
  void modify_scores(const GroupTile& group, int32_t tile_key);
  void write_partial();
  [[nodiscard]] bool is_last_of_group() const;
  void merge_group();
  void store_row(std::byte* out, const float* o, float factor);
  void write_rows();

  [[nodiscard]] int32_t token(int32_t row) const { return item_->token_begin + row / head_count_; }
  [[nodiscard]] int32_t q_head(int32_t row) const {
    return kv_head_ * problem_.group + item_->head_begin + row % head_count_;
  }

  const core::Problem& problem_;
  const TileOps& ops_;
  const TileGeometry& g_;
  const Partials& partials_;
  bool is_interval_mask_;
  bool has_mods_;  // scores are modified between Q K^T and the softmax

  // Scratch.
  std::byte* q_;
  float* o_;
  std::array<float*, 2> scores_;
  std::array<std::byte*, 2> probs_;
  float* k_;
  float* v_;
  void* convert_;
  void* q_panel_;

  // The current item.
  const schedule::WorkItem* item_ = nullptr;
  int32_t kv_head_ = 0;
  int32_t head_count_ = 1;
  int32_t rows_ = 0;
  float scale_ = 1;
  int32_t tile_keys_ = 0;
  PanelSource v_source_ = {};  // of the loaded tile
  bool is_cold_ = false;       // bound by memory
  bool is_direct_k_ = false;   // scores are computed from K's rows, without panels
  bool is_direct_v_ = false;   // O from V's rows, without panels
  std::array<const void*, 2 * kMaxTileKeys + kMaxRowsAhead> rows_ahead_;
  int64_t v_panel_words_ = 0;
  std::array<int32_t, kMaxItemRows> lo_, hi_;  // visible keys of each row
  std::array<float, kMaxItemRows> m_, l_;
  std::array<bool, kMaxItemRows / kRowGroup> started_;
};

}  // namespace pagoda::cpu
