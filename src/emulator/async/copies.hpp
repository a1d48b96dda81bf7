// Asynchronous copies on the emulated machine: cp.async by threads, bulk and tensor copies by the
// copy engine. `arch/emu/{cp_async,bulk_copy,tma}.hpp` wrap these for the executing thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "arch/layout/types.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::arch {
struct TensorMapSpec;
}

namespace pagoda::emulator {

// A copy that a thread waits for.
struct PendingCopy {
  bool has_read = false;  // the source has been read and may be overwritten
  bool is_done = false;
  bool is_empty = false;     // a group without copies
  bool is_observed = false;  // a wait has seen that it no longer reads shared memory
  Clocks read_done;
  Clocks done;
  Thread* waiter = nullptr;  // blocked until has_read or is_done
};

// The copies of a thread that it has not waited for.
struct CopyState {
  struct ThreadCopy {  // one cp.async
    void* to;
    const void* from;
    size_t bytes;
    size_t valid_bytes;
    Where where;
  };
  using Group = std::vector<std::shared_ptr<PendingCopy>>;
  std::vector<ThreadCopy> open_cp_async;                     // collected until the commit
  std::deque<std::shared_ptr<PendingCopy>> cp_async_groups;  // committed, oldest first
  AsyncQueue cp_async_queue;
  Clocks cp_async_done;  // of the copies carried out so far
  Group open_bulk;
  std::deque<Group> bulk_groups;
};

// The copies that the thread has not waited for ("cp_async copies in flight ..."), or nullptr.
const char* copies_in_flight(const Thread& thread);

void cp_async(void* to, const void* from, size_t bytes, size_t valid_bytes, const Where& where);
void cp_async_commit(const Where& where);
void cp_async_wait(size_t groups_in_flight, const Where& where);
void cp_async_mbarrier_arrive(void* barrier_address, const Where& where);

void bulk_load(void* to, const void* from, size_t bytes, void* barrier_address, const Where& where);
void bulk_store(void* to, const void* from, size_t bytes, const Where& where);
void bulk_copy_to_cta(void* to, const void* from, size_t bytes, void* mine, int rank,
                      const Where& where);
void bulk_commit_group(const Where& where);
void bulk_wait_group(size_t groups_in_flight, bool read_only, const char* primitive,
                     const Where& where);

// A store of the copy engine, which a thread waits for in two steps: `read` reads the bytes from
// shared memory, `write` stores them to global memory, later.
void submit_bulk_store(const char* primitive, const Where& where,
                       std::function<std::vector<std::byte>(AsyncOperation&)> read,
                       std::function<void(AsyncOperation&, const std::vector<std::byte>&)> write);

struct TensorLoadTarget {
  // Bit r: into CTA r of the cluster, at the same offset, and to the barrier there; 0: this CTA.
  uint16_t cta_mask = 0;
  bool is_pair = false;  // the bytes go to the barrier of the even CTA of the pair
  arch::Eviction eviction = arch::Eviction::kNormal;  // traces show it; it changes no result
};
void tma_load(void* to, const arch::TensorMapSpec& map, const int32_t* coordinates, int rank,
              void* barrier_address, TensorLoadTarget target, const char* primitive,
              const Where& where);
void tma_store(const arch::TensorMapSpec& map, const int32_t* coordinates, int rank,
               const void* from, bool adds, const Where& where);

}  // namespace pagoda::emulator
