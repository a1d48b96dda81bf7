// What "emu:sm90" offers: the rows of kernels/mha_sm90, and the two calls beside attention.
#include "backends/emulator/sm90_backend.hpp"

#include <stdexcept>

#include "backends/emulator/call_buffers.hpp"
#include "backends/emulator/emulated_machine.hpp"
#include "backends/emulator/sm90/on_emulator.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/append_kv/append_kv.hpp"
#include "kernels/merge_states/merge_states.hpp"
#include "kernels/mha_sm90/registry_rows.hpp"

namespace pagoda::emulator {
namespace {

using emulator::launch;
using emulator::shape_of;

struct Hopper {
  static constexpr const char* kBackend = "emu:sm90";
};

std::span<const core::Kernel> kernels() {
  static const kernels::RegistryRows<mha_sm90::RowFunctions, EmulatedMachine<Hopper>> kRows(
      std::vector{d64_bf16(), d96_bf16(), d128_bf16(), d192x128_bf16(), d256_bf16(), d64_f16(),
                  d96_f16(), d128_f16(), d192x128_f16(), d256_f16()});
  return kRows.kernels();
}

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
      .writes("out", merge.out)
      .writes("lse", merge.lse);
  expect_clean(launch<kernels::MergeStatesKernel>(
      shape_of<kernels::MergeStatesKernel>("merge_states", grid), params, buffers.merged()));
  return {};
}

}  // namespace

void expect_clean(const emulator::Result& result) {
  if (result.is_clean()) return;
  std::string text = "the emulator found:";
  for (const emulator::Report& report : result.reports) text += "\n" + to_string(report);
  throw std::runtime_error(text);
}

const core::Backend& sm90_backend() {
  static constexpr core::Backend kBackend{
      .name = Hopper::kBackend,
      .kernels = kernels,
      .description = [] { return std::string("the GPU kernels for sm_90a on the emulator: slow"); },
      .append_kv = append_kv,
      .merge_states = merge_states};
  return kBackend;
}

}  // namespace pagoda::emulator
