// Backend: what the engine needs of a back end: its kernels, append_kv and merge_states, and the
// memory that they read. Built-in back ends and registered ones have the same interface.
#pragma once

#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/memory_space.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::core {

// Bytes of a workspace. Its first `zeroed` bytes are zero between runs, the others are scratch.
struct WorkspaceSize {
  int64_t bytes = 0;  // zeroed bytes included
  int64_t zeroed = 0;
};

struct Backend {
  const char* name = "";                           // "cpu", "emu:sm90"
  DeviceType memory = DeviceType::kCpu;            // where every pointer of a call must point
  std::span<const Kernel> (*kernels)() = nullptr;  // best first; the same span in every call
  std::string (*description)() = nullptr;          // the device it runs on; called if it can run
  std::string (*unavailable_reason)() = nullptr;   // why it can't run here; empty or null = it can
  // The error of an invalid environment variable, which fails every call; null = no such check.
  Status (*check_environment)() = nullptr;

  // The arguments have passed validation. Null = unsupported. They throw like Kernel::run.
  Status (*append_kv)(const AppendKV& append, const RunContext& context) = nullptr;
  Status (*merge_states)(const MergeStates& merge, const RunContext& context) = nullptr;
  // Writes the rows of the outputs past the last offset of ragged queries: 0 and -infinity. Null =
  // unsupported. Throws like Kernel::run.
  void (*zero_padding_rows)(const Problem& problem, const RunContext& context) = nullptr;

  // Why kernels on `device` can't read `data`; empty = they can. Null = the back end can't tell.
  // Called in checked mode only.
  std::string (*misplaced)(const void* data, Device device) = nullptr;

  // The workspace of run(attention, options), which the back end keeps per stream, and the release
  // of all of them. kStreamCapturing: it would have to be allocated. Null = host memory that the
  // engine keeps per thread.
  Result<std::span<std::byte>> (*keep_workspace)(WorkspaceSize size, Device device,
                                                 Stream stream) = nullptr;
  void (*release_workspaces)() = nullptr;

  // Allocates and copies memory of a device, for programs around the library. Null = host memory.
  MemorySpace& (*memory_space)(Device device) = nullptr;
};

}  // namespace pagoda::core
