// Backend: where calls run, as the engine sees it: kernels, the two calls beside attention, and the
// memory of a call. The engine's own back ends and those of libraries beside it look the same.
#pragma once

#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/memory_space.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::core {

// Bytes of a workspace: `zeroed` of them, that are zero, right before the others.
struct WorkspaceSize {
  int64_t bytes = 0;  // in all
  int64_t zeroed = 0;
};

struct Backend {
  const char* name = "";                           // "cpu", "emu:sm90"
  DeviceType memory = DeviceType::kCpu;            // where everything that a call points to lies
  std::span<const Kernel> (*kernels)() = nullptr;  // best first; the same span in every call
  std::string (*description)() = nullptr;          // what it runs on here; asked where it can run
  std::string (*unavailable_reason)() = nullptr;   // why it can't run here, empty or null: it can
  // What in the environment makes every call invalid; null: nothing does.
  Status (*check_environment)() = nullptr;

  // Calls that have passed validation; null: the back end has none. Throw like Kernel::run.
  Status (*append_kv)(const AppendKV& append, const RunContext& context) = nullptr;
  Status (*merge_states)(const MergeStates& merge, const RunContext& context) = nullptr;

  // Of memory on `device`, as the caller says: why kernels there can't read it; empty: they can. Null:
  // it can't be told. Asked in checked mode only.
  std::string (*misplaced)(const void* data, Device device) = nullptr;

  // Memory for run(attention, options), kept between calls that follow each other on a stream. Null:
  // the host's, kept by the engine.
  std::span<std::byte> (*keep_workspace)(WorkspaceSize size, Device device,
                                         Stream stream) = nullptr;

  // How programs bring calls to a device and their results back. Null: the memory is the host's.
  MemorySpace& (*memory_space)(Device device) = nullptr;
};

}  // namespace pagoda::core
