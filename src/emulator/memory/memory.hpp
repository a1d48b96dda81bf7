// Shared and global memory of a launch: checks bounds, alignment, poison and order of every access,
// and records it in the shadow memory. The caller copies the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/grid.hpp"
#include "emulator/machine/launch_shape.hpp"
#include "emulator/machine/scheduler.hpp"
#include "emulator/memory/shadow_memory.hpp"
#include "emulator/report/reporter.hpp"
#include "emulator/sync/scopes.hpp"

namespace pagoda::emulator {

enum class Permission : uint8_t { kRead, kReadWrite };

// A buffer of global memory that the launch may touch.
struct GlobalBuffer {
  std::string name;
  std::byte* begin = nullptr;
  size_t bytes = 0;
  Permission permission = Permission::kRead;
  bool is_written = true;  // by the host before the launch; otherwise reads of it are reported
  std::shared_ptr<ShadowMemory> shadow;
};

// SharedPtr::address() of a CTA's first byte. As on the chip (sm_90 and up), the window starts with
// 1 KiB that the system keeps.
inline constexpr uint32_t kSharedWindowStart = 1024;

class Memory {
 public:
  Memory(std::vector<GlobalBuffer> buffers, Grid& grid, Scheduler& scheduler, Reporter& reporter,
         const Scopes& scopes);

  // --- by a thread or an engine ---
  // Shared memory of any CTA of the cluster. `address` is a host pointer into it.
  void access_shared(const void* address, size_t bytes, bool is_write, const Access& access,
                     bool may_be_unwritten = false);
  void access_global(const void* address, size_t bytes, bool is_write, const Access& access);

  // --- by the executing thread, with the check of alignment ---
  void thread_shared(const void* address, size_t bytes, bool is_write, const char* primitive,
                     const Where& where);
  void thread_global(const void* address, size_t bytes, bool is_write, const char* primitive,
                     const Where& where);
  void thread_atomic(const void* address, bool is_shared, size_t bytes, bool is_write, Scope scope,
                     const char* primitive, const Where& where);

  // The CTA that owns the address in shared memory; the buffer that contains it; nullptr: none.
  [[nodiscard]] Cta* find_cta(const void* shared_address) const;
  [[nodiscard]] const GlobalBuffer* find_buffer(const void* address) const;

  void report_race(const Conflict& conflict, const Access& access, bool is_write,
                   const std::string& place, size_t bytes);
  void count_access() { ++accesses_; }  // to tensor memory, which checks its own
  [[nodiscard]] uint64_t accesses() const { return accesses_; }

 private:
  void check_aligned(const void* address, size_t bytes, const char* primitive, const Where& where);
  void check_barriers_kept(const Cta& cta, uint32_t offset, size_t bytes, const Stamp& stamp);
  [[nodiscard]] std::string nearest_end(const void* address) const;
  // The order that is missing between the two accesses of a race.
  [[nodiscard]] std::string missing_order(const Stamp& earlier, const Access& access) const;

  std::vector<GlobalBuffer> buffers_;
  Grid& grid_;
  size_t shared_bytes_;
  uint32_t cluster_size_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  const Scopes& scopes_;
  uint64_t accesses_ = 0;
};

}  // namespace pagoda::emulator
