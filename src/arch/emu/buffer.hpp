// Buffer resources in the emulator: bounds as the hardware has them, then an ordinary load.
#pragma once

#include <cstdint>
#include <string>

#include "arch/emu/memory.hpp"
#include "arch/global_ptr.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::arch {
inline namespace emu {

struct BufferResource {
  GlobalPtr<const char> base = nullptr;
  uint32_t bytes = 0;

  friend bool operator==(const BufferResource&, const BufferResource&) = default;
};

inline BufferResource make_buffer(GlobalPtr<const char> base, uint32_t bytes,
                                  Where where = Where::current()) {
  BufferResource mine{base, bytes};
  emulator::Machine& machine = emulator::Machine::current();
  machine.collectives().warp(
      emulator::kAllLanes, "make_buffer", where, &mine, [&](emulator::Collective& group) {
        for (const void* lane : group.arguments) {
          if (lane == nullptr || *static_cast<const BufferResource*>(lane) == mine) continue;
          machine.reporter().fail(emulator::ReportKind::kProtocol, "make_buffer", where,
                                  "the lanes of the wave have different buffers");
        }
      });
  return mine;
}

inline Words<4> load_buffer(const BufferResource& buffer, uint32_t offset,
                            Where where = Where::current()) {
  if (offset % 16 != 0 || buffer.bytes % 16 != 0) {
    emulator::Machine::current().reporter().report(
        emulator::ReportKind::kBounds, "load_buffer", where,
        "offset " + std::to_string(offset) + " in a buffer of " + std::to_string(buffer.bytes) +
            " bytes: both are multiples of 16");
  }
  if (offset >= buffer.bytes) return {{0, 0, 0, 0}};
  return load((buffer.base + offset).as<const Words<4>>(), where);
}

}  // namespace emu
}  // namespace pagoda::arch
