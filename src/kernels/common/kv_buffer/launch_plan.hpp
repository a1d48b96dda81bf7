// The launches of a call on the kernel of this folder: which variants serve it, with how many CTAs
// and which arguments. Host code that needs no GPU.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/kv_buffer/config.hpp"
#include "kernels/common/launch_arguments.hpp"

namespace pagoda::kernels::kv_buffer {

// What an instance is compiled for: element type of Q and O, and padded head dims.
struct Shape {
  const char* name;
  DType dtype;
  int depth_qk;
  int depth_vo;
};

enum class RowKind : uint8_t {
  kPrefill,          // BM tokens of one query head
  kTokenGeneration,  // (token, head of the KV head's group) pairs of up to kFewTokens tokens
};

// The kernels of each shape; a launch runs one of them.
struct Variant {
  RowKind rows;
  Staging staging;
  ScoreClass scores;

  bool operator==(const Variant&) const = default;
};
// Calls that need KVBufferImpl get general scores: fewer kernels to compile.
inline constexpr std::array kVariants = {
    Variant{RowKind::kPrefill, Staging::kAsync, ScoreClass::kPlain},
    Variant{RowKind::kPrefill, Staging::kAsync, ScoreClass::kGeneral},
    Variant{RowKind::kPrefill, Staging::kRegisters, ScoreClass::kGeneral},
    Variant{RowKind::kTokenGeneration, Staging::kAsync, ScoreClass::kPlain},
    Variant{RowKind::kTokenGeneration, Staging::kAsync, ScoreClass::kGeneral},
    Variant{RowKind::kTokenGeneration, Staging::kRegisters, ScoreClass::kGeneral},
};

// Sequences of up to so many query rows are served by token generation.
inline constexpr int32_t kFewTokens = 16;

// The tile of a variant, on the chip of the family.
using TileOf = TileConfig (*)(int depth_qk, int depth_vo, const Variant& variant);

// Wider heads have no prefill tile: O of 64 rows exceeds the registers. Token generation serves
// their prefill, 16 rows at a time.
constexpr bool has_prefill_tile(int depth_vo) { return depth_vo <= 256; }

struct Launch {
  size_t variant = 0;
  TileConfig tile{};
  int32_t ctas = 0;
  int32_t num_splits = 1;                      // kPrefill: most KV splits of a row tile
  int32_t min_rows = 0, max_rows = INT32_MAX;  // query rows of the sequences that it serves
};

struct LaunchPlan final : core::KernelPlan {
  bool is_batch_invariant = false;
  int32_t num_launches = 0;
  Launch launches[2];
  SplitWorkspace split;
};

// Why the shape can't serve the problem; empty = it can.
[[nodiscard]] std::string unsupported_reason(const Shape& shape, const core::Problem& problem);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, TileOf tile_of,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    bool is_batch_invariant);

[[nodiscard]] LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                             const core::Problem& problem,
                                             std::span<std::byte> workspace);

}  // namespace pagoda::kernels::kv_buffer
