// Names for reports and traces.
#pragma once

#include <string>

#include "arch/emu/mbarrier.hpp"
#include "arch/emu/memory.hpp"
#include "emulator/sync/mbarrier.hpp"

namespace pagoda::arch {
inline namespace emu {

class Role {
 public:
  explicit Role(const char* name)
      : thread_(emulator::Machine::current_thread()), outer_(thread_.role) {
    thread_.role = name;
    thread_.last_role = name;
    emulator::Machine::current().trace().begin(thread_, name, "role");
  }
  ~Role() {
    emulator::Machine::current().trace().end(thread_, "role");
    thread_.role = outer_;
  }
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;

 private:
  emulator::Thread& thread_;
  const char* outer_;
};

inline void name_barrier(MBarrier& barrier, const char* name, int index = -1) {
  emulator::name_mbarrier(
      barrier.data().host(),
      index < 0 ? std::string(name) : std::string(name) + "[" + std::to_string(index) + "]");
}
// "kv full[1]"
inline void name_barrier(MBarrier& barrier, const char* pipeline, const char* side, int index) {
  emulator::name_mbarrier(barrier.data().host(),
                          std::string(pipeline) + " " + side + "[" + std::to_string(index) + "]");
}
inline void name_named_barrier(int id, const char* name) {
  emulator::Machine::current_thread().cta->named_barriers.at(static_cast<size_t>(id)).name = name;
}
inline void name_shared(SharedPtr<const void> start, uint32_t bytes, const char* name) {
  emulator::Cta& cta = *emulator::Machine::current_thread().cta;
  const uint32_t offset = cta.offset_of(start.host());
  cta.shared_names[offset] = {bytes, name};
}
inline void expect(bool holds, const char* claim, Where where = Where::current()) {
  if (!holds) {
    emulator::Machine::current().reporter().fail(emulator::ReportKind::kProtocol, "expect", where,
                                                 std::string("this does not hold: ") + claim);
  }
}
inline void trace_begin(const char* work) {
  emulator::Machine::current().trace().begin(emulator::Machine::current_thread(), work, "work");
}
inline void trace_end() {
  emulator::Machine::current().trace().end(emulator::Machine::current_thread(), "work");
}

}  // namespace emu
}  // namespace pagoda::arch
