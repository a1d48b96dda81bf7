// Back ends and kernels: list them, ask what serves a call and why the others do not.
#pragma once

#include <string>
#include <vector>

#include "pagoda/attention.hpp"
#include "pagoda/status.hpp"

namespace pagoda {

struct BackendInfo {
  std::string name;  // "cpu", "reference", "cuda"
  bool is_available = false;
  std::string description{};             // what it runs on here, or why it can't
  DeviceType memory = DeviceType::kCpu;  // where everything that a call points to must be
};

// Every back end that this library knows, those too that can't run here.
[[nodiscard]] std::vector<BackendInfo> backends();

struct KernelInfo {
  std::string name;  // "cpu.f32.avx512"
  std::string backend;
  bool is_selected = false;
  bool can_run = false;
  std::string reason{};  // why it was refused or passed over; empty for the selected one
};

// Every kernel that is considered for a call, in the order of preference, each with its verdict.
// Fails only where the call itself, or the environment's PAGODA_ISA, is invalid, or where the back
// end can't run here at all.
[[nodiscard]] Result<std::vector<KernelInfo>> explain(const Attention& attention,
                                                      const Options& options = {});

// The names of all kernels of a back end, whatever this machine can run.
[[nodiscard]] std::vector<std::string> kernels(const std::string& backend);

// CPU instruction-set levels, lowest first: "scalar", "avx2", "avx512", "avx512_bf16", "amx".
// The environment variable PAGODA_ISA caps the level that is used.
[[nodiscard]] std::vector<std::string> cpu_isa_levels();  // those this machine can run
[[nodiscard]] std::string cpu_isa_level();                // the highest one in use
// Caps the level for the whole process, as PAGODA_ISA does. Not for use while calls are running.
[[nodiscard]] Status set_cpu_isa_level(const std::string& level);
// An error where PAGODA_ISA is set to none of the levels: plan() and explain() on back end cpu
// answer with it, until set_cpu_isa_level() has set one.
[[nodiscard]] Status check_cpu_isa();

}  // namespace pagoda
