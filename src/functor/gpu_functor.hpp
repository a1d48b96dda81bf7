// Registers the kernels of a functor with the CUDA back end.
//
// PAGODA_FUNCTOR_ARCHS ("90", "80.90"): the architectures that this file is compiled for, as
// pagoda_add_functor() chose them.
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/api.hpp"
#include "backends/cuda/gpu_machine.hpp"
#include "backends/cuda/held_archs.hpp"
#include "backends/gpu/guarded_rows.hpp"
#include "engine/functors.hpp"
#include "functor/compiled_family.hpp"

// Unnamed: each compilation of a functor's file has its own.
namespace pagoda::functors {
namespace {  // NOLINT(google-build-namespaces)

// The machine of a KernelTable.
struct Gpu : cuda::GpuMachine {
  static constexpr std::string_view kHeldArchs = PAGODA_FUNCTOR_ARCHS;

  static constexpr bool serves(const kernels::Archs& /*archs*/) { return true; }
  static constexpr bool has_code(const kernels::Archs& /*archs*/) { return true; }
  static bool can_run(const kernels::Archs& archs, const core::Problem& problem) {
    return cuda::has_code(archs, properties(problem).arch, kHeldArchs);
  }
  static std::string unsupported_reason(const kernels::Archs& archs, const core::Problem& problem) {
    if (can_run(archs, problem)) return {};
    return "the functor's kernels are compiled for architectures " + std::string(kHeldArchs) +
           ", the GPU has " + std::to_string(properties(problem).arch);
  }
};

// `Named`: struct with Functor and kName.
template <class Named>
bool register_it() {
  static const kernels::KernelTable<Gpu> kTable{kernels::FamilyList<CompiledFamily<Named>>()};
  static const gpu::GuardedRows<cuda::Api> kRows(kTable.kernels());
  engine::register_functor_kernels(Named::kName, Gpu::kBackend, kRank, kRows.rows());
  return true;
}

}  // namespace
}  // namespace pagoda::functors
