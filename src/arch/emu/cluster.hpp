// Clusters in the emulator.
#pragma once

#include "arch/emu/mbarrier.hpp"
#include "arch/emu/memory.hpp"
#include "arch/layout/where.hpp"
#include "emulator/sync/barriers.hpp"

namespace pagoda::arch {
inline namespace emu {

inline int cluster_rank() { return emulator::Machine::current_thread().cta->rank; }
inline int cluster_size() { return emulator::Machine::current().shape().cluster_size; }
inline void cluster_arrive(Where where = Where::current()) {
  emulator::cluster_arrive(true, where);
}
inline void cluster_arrive_relaxed(Where where = Where::current()) {
  emulator::cluster_arrive(false, where);
}
inline void cluster_wait(Where where = Where::current()) { emulator::cluster_wait(where); }
inline void cluster_sync(Where where = Where::current()) {
  emulator::cluster_arrive(true, where);
  emulator::cluster_wait(where);
}

template <class T>
RemotePtr<T> map_shared(SharedPtr<T> local, int rank, Where where = Where::current()) {
  void* const remote =
      emulator::map_shared(const_cast<void*>(static_cast<const void*>(local.host())), rank, where);
  return RemotePtr<T>(static_cast<T*>(remote));
}

template <class T>
void store_async(RemotePtr<T> to, std::type_identity_t<T> value, MBarrier& mine, int rank,
                 Where where = Where::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "st.async moves 4 or 8 bytes");
  emulator::store_async(to.host(), &value, sizeof(T), mine.data().host(), rank, where);
}

}  // namespace emu
}  // namespace pagoda::arch
