// "emu:sm80", "emu:sm90", "emu:sm100" and "emu:gfx942": the rows of their chip's families, with the
// append_kv, merge_states and padding_rows kernels of every GPU.
#include "backends/emulator/backend.hpp"

#include <array>
#include <stdexcept>
#include <string>

#include "backends/emulator/call_buffers.hpp"
#include "backends/emulator/chips.hpp"
#include "backends/emulator/emulated_machine.hpp"
#include "backends/emulator/problem_buffers.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/append_kv/append_kv.hpp"
#include "kernels/families.hpp"
#include "kernels/merge_states/merge_states.hpp"
#include "kernels/padding_rows/padding_rows.hpp"

namespace pagoda::emulator {
namespace {

Status append_kv(const AppendKV& append, const core::RunContext& /*context*/) {
  const auto params = kernels::make_params(append);
  const arch::Dim3 grid = kernels::grid_of(params);
  if (grid.x == 0) return {};
  CallBuffers buffers;
  buffers.reads("k_new", append.k_new)
      .reads("v_new", append.v_new)
      .reads("slot_mapping", append.slot_mapping)
      .reads("kv_scales.k_per_head", append.kv_scales.k_per_head)
      .reads("kv_scales.v_per_head", append.kv_scales.v_per_head)
      .updates("k_cache", append.k_cache)
      .updates("v_cache", append.v_cache);
  expect_clean(launch<kernels::AppendKVKernel>(shape_of<kernels::AppendKVKernel>("append_kv", grid),
                                               params, buffers.merged()));
  return {};
}

Status merge_states(const MergeStates& merge, const core::RunContext& /*context*/) {
  const auto params = kernels::make_params(merge);
  const arch::Dim3 grid = kernels::grid_of(params);
  if (grid.x == 0) return {};
  CallBuffers buffers;
  buffers.reads("partial_out", merge.partial_out)
      .reads("partial_lse", merge.partial_lse)
      .reads("row_mask", merge.row_mask)
      .updates("out", merge.out)
      .updates("lse", merge.lse);
  expect_clean(launch<kernels::MergeStatesKernel>(
      shape_of<kernels::MergeStatesKernel>("merge_states", grid), params, buffers.merged()));
  return {};
}

void zero_padding_rows(const core::Problem& problem, const core::RunContext& /*context*/) {
  const auto params = kernels::make_padding_rows_params(problem);
  const arch::Dim3 grid = kernels::grid_of(params);
  if (grid.x == 0) return;
  expect_clean(
      launch<kernels::PaddingRowsKernel>(shape_of<kernels::PaddingRowsKernel>("padding_rows", grid),
                                         params, buffers_of(problem, 0, {}).merged()));
}

template <class Chip>
constexpr core::Backend kBackendOf = {
    .name = Chip::kBackend,
    .kernels =
        [] {
          static const kernels::KernelTable<EmulatedMachine<Chip>> kTable{kernels::Families()};
          return kTable.kernels();
        },
    .description = [] { return std::string(Chip::kDescription); },
    .append_kv = append_kv,
    .merge_states = merge_states,
    .zero_padding_rows = zero_padding_rows};

}  // namespace

void expect_clean(const Result& result) {
  if (result.is_clean()) return;
  std::string text = "the emulator found:";
  for (const Report& report : result.reports) text += "\n" + to_string(report);
  throw std::runtime_error(text);
}

std::span<const core::Backend* const> backends() {
  static constexpr std::array<const core::Backend*, 4> kBackends = {
      &kBackendOf<Ampere>, &kBackendOf<Hopper>, &kBackendOf<Blackwell>, &kBackendOf<CDNA3>};
  return kBackends;
}

}  // namespace pagoda::emulator
