// Back ends and kernels: their names, whether they can run here, and which kernel serves a call.
#pragma once

#include <string>
#include <vector>

#include "pagoda/attention.hpp"
#include "pagoda/status.hpp"

namespace pagoda {

struct BackendInfo {
  std::string name;  // "cpu", "reference", "cuda", "hip"
  bool is_available = false;
  std::string description{};             // the device it runs on, or the reason why it can't run
  DeviceType memory = DeviceType::kCpu;  // where every pointer of a call must point
};

// Every registered back end, including those that can't run on this machine.
[[nodiscard]] std::vector<BackendInfo> backends();

struct KernelInfo {
  std::string name;  // "cpu.f32.avx512"
  std::string backend;
  bool is_selected = false;
  bool can_run = false;
  // Why the engine does not select it. Of the selected kernel: empty, or, where that is the slow
  // kernel for what no other serves, what keeps the others from serving the call.
  std::string reason{};
};

// Every kernel of options.backend in order of preference, with the engine's decision on each.
// Errors: kInvalidArgument (the call, or the environment variable PAGODA_ISA), kUnsupported (the
// back end can't run on this machine), kNotFound (a backend or kernel name).
[[nodiscard]] Result<std::vector<KernelInfo>> explain(const Attention& attention,
                                                      const Options& options = {});

// The names of all kernels of a back end, including those that this machine can't run.
[[nodiscard]] std::vector<std::string> kernels(const std::string& backend);

// CPU instruction-set levels, lowest first: "scalar", "avx2", "avx512", "avx512_bf16", "amx".
// The environment variable PAGODA_ISA caps the level that is used.
[[nodiscard]] std::vector<std::string> cpu_isa_levels();  // those that this machine can run
[[nodiscard]] std::string cpu_isa_level();                // the highest level in use
// Caps the level for the whole process, as PAGODA_ISA does. Must not be called while calls are
// running. kInvalidArgument: not the name of a level that this machine can run.
[[nodiscard]] Status set_cpu_isa_level(const std::string& level);
// kInvalidArgument if PAGODA_ISA names no level. plan() and explain() on back end cpu return the
// same error until set_cpu_isa_level() has set a level.
[[nodiscard]] Status check_cpu_isa();

}  // namespace pagoda
