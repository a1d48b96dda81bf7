// The launches of a Blackwell attention call: schedule, grid and KV splits of each. The launch
// plans of both families share it. Host code; it reads sequence lengths only where they are in host
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/work_tile.hpp"

namespace pagoda::kernels::sm100 {

struct Launch {
  Schedule schedule = Schedule::kQueue;
  int32_t ctas = 0;
  int32_t num_splits = 1;                      // KV splits; unused with kStreamK
  int32_t min_rows = 0, max_rows = INT32_MAX;  // sequences with so many query rows are served
};

struct LaunchPlan : core::KernelPlan {
  ScoreClass scores = ScoreClass::kPlain;
  bool is_gathered = false;
  bool is_batch_invariant = false;
  int32_t num_launches = 0;  // 0: nothing to write
  Launch launches[2];
  SplitWorkspace split;
};

// The work tile of an instance: what its launches depend on.
struct WorkTileShape {
  int32_t ctas = 1;  // that compute a work tile together
  int32_t block_rows = 128;
  int32_t blocks = 2;  // of all its CTAs; a slot of partial results has as many
  int32_t BN = 128;
  int32_t depth = 128;  // columns of a partial result

  // The query heads of one KV head are packed into the rows. Where they exceed the rows of a block,
  // a tile has the largest divisor that fits.
  [[nodiscard]] PackedRows packed_rows(const core::Problem& p) const {
    return PackedRows::of(p.group, block_rows, blocks, true);
  }
  [[nodiscard]] int32_t heads(const core::Problem& p) const { return packed_rows(p).heads; }
  [[nodiscard]] int32_t block_tokens(const core::Problem& p) const { return block_rows / heads(p); }
  // CTAs, or pairs of CTAs, that run at the same time.
  [[nodiscard]] int32_t groups(int32_t num_sms) const {
    return num_sms < ctas ? 1 : num_sms / ctas;
  }
  [[nodiscard]] schedule::TileGrid grid(const core::Problem& p, int32_t num_splits = 1) const;
};

// Adds the launches, and sizes the workspace. Without a choice in `options`: stream-K for sequences
// of up to kShortRows query rows, a queue of row tiles with KV splits for longer
// ones.
void plan_launches(const core::Problem& p, const WorkTileShape& tile, int32_t num_sms,
                   const Options& options, LaunchPlan& plan);

// Sets all arguments of a launch but those of TMA.
void set_launch(const core::Problem& p, const WorkTileShape& tile, const LaunchPlan& plan,
                const Launch& launch, std::span<std::byte> workspace, AttentionArguments& a);

}  // namespace pagoda::kernels::sm100
