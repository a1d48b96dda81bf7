// Running a kernel on the emulator.
//
//   struct Kernel {
//     struct Params {...};                 pointers into buffers, tensor maps, sizes
//     struct Storage {...};                shared memory; trivial
//     static constexpr int kThreads = 128;
//     static constexpr int kClusterSize = 1;
//     static PAGODA_DEVICE void run(const Params&);
//   };
//   Result result = launch<Kernel>({.grid = {2}}, params, {input("x", x, n), output("y", y, n)},
//   options);
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

// A buffer that the launch only reads.
template <class T>
GlobalBuffer input(std::string name, const T* data, size_t count) {
  return {.name = std::move(name),
          .begin = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(data)),
          .bytes = count * sizeof(T),
          .permission = Permission::kRead,
          .is_written = true,
          .shadow = nullptr};
}
// A buffer that the launch writes; reading what it did not write is reported.
template <class T>
GlobalBuffer output(std::string name, T* data, size_t count) {
  return {.name = std::move(name),
          .begin = reinterpret_cast<std::byte*>(data),
          .bytes = count * sizeof(T),
          .permission = Permission::kReadWrite,
          .is_written = false,
          .shadow = nullptr};
}
// A buffer that the launch reads and writes.
template <class T>
GlobalBuffer inout(std::string name, T* data, size_t count) {
  GlobalBuffer buffer = output(std::move(name), data, count);
  buffer.is_written = true;
  return buffer;
}

// Where a kernel's own constants are used unless the caller sets the field.
template <class Kernel>
LaunchShape shape_of(std::string name, arch::Dim3 grid) {
  LaunchShape shape{.kernel = std::move(name), .grid = grid};
  shape.threads = Kernel::kThreads;
  shape.shared_bytes = sizeof(typename Kernel::Storage);
  if constexpr (requires { Kernel::kWarpSize; }) shape.warp_size = Kernel::kWarpSize;
  if constexpr (requires { Kernel::kClusterSize; }) shape.cluster_size = Kernel::kClusterSize;
  if constexpr (requires { Kernel::kRegisters; }) shape.registers = Kernel::kRegisters;
  if constexpr (requires { Kernel::kHasTensorMemory; })
    shape.has_tensor_memory = Kernel::kHasTensorMemory;
  if constexpr (requires { Kernel::kIsDependent; }) shape.is_dependent = Kernel::kIsDependent;
  return shape;
}

template <class Kernel>
Result launch(LaunchShape shape, const typename Kernel::Params& params,
              std::vector<GlobalBuffer> buffers, Options options = {}) {
  Machine machine(std::move(shape), std::move(buffers), options,
                  [&params] { Kernel::run(params); });
  return machine.run();
}

}  // namespace pagoda::emulator
