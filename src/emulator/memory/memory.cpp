// Accesses to shared and global memory.
#include "emulator/memory/memory.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "emulator/report/place.hpp"

namespace pagoda::emulator {
namespace {

std::string bytes_text(size_t bytes) { return std::to_string(bytes) + "-byte "; }

bool is_inside(const void* address, size_t bytes, const std::byte* begin, size_t size) {
  const auto* byte = static_cast<const std::byte*>(address);
  return byte >= begin && bytes <= size && static_cast<size_t>(byte - begin) <= size - bytes;
}

}  // namespace

Memory::Memory(std::vector<GlobalBuffer> buffers, Grid& grid, Scheduler& scheduler,
               Reporter& reporter, const Scopes& scopes)
    : buffers_(std::move(buffers)),
      grid_(grid),
      shared_bytes_(grid.shape().shared_bytes),
      cluster_size_(grid.shape().ctas_per_cluster()),
      scheduler_(scheduler),
      reporter_(reporter),
      scopes_(scopes) {
  for (GlobalBuffer& buffer : buffers_) {
    if (buffer.permission == Permission::kReadWrite) {
      buffer.shadow = std::make_shared<ShadowMemory>(buffer.bytes);
    }
  }
}

// ", 128 bytes after the end of buffer in", where a buffer ends within a page before the address.
std::string Memory::nearest_end(const void* address) const {
  constexpr size_t kNear = 4096;
  size_t nearest = kNear;
  std::string text;
  for (const GlobalBuffer& buffer : buffers_) {
    const std::byte* const end = buffer.begin + buffer.bytes;
    if (!is_inside(address, 1, end, nearest)) continue;
    nearest = static_cast<size_t>(static_cast<const std::byte*>(address) - end);
    text = ", " + std::to_string(nearest) + " bytes after the end of buffer " + buffer.name;
  }
  return text;
}

Cta* Memory::find_cta(const void* shared_address) const {
  const Thread* const thread = scheduler_.running();
  if (thread != nullptr && thread->cta->owns(shared_address)) return thread->cta;
  return grid_.find_cta(shared_address);
}

const GlobalBuffer* Memory::find_buffer(const void* address) const {
  for (const GlobalBuffer& buffer : buffers_) {
    if (is_inside(address, 1, buffer.begin, buffer.bytes)) return &buffer;
  }
  return nullptr;
}

// A write must not touch a live mbarrier: a copy that is too long, a layout that overlaps.
void Memory::check_barriers_kept(const Cta& cta, uint32_t offset, size_t bytes,
                                 const Stamp& stamp) {
  const MBarrierState* const barrier = cta.mbarriers.overlapped(offset, bytes);
  if (barrier == nullptr) return;
  const std::string_view primitive = stamp.primitive;
  if (primitive == "mbarrier_init" || primitive == "mbarrier_invalidate") return;
  reporter_.fail(ReportKind::kProtocol, stamp.primitive, stamp.where,
                 bytes_text(bytes) + "write over the live mbarrier " + barrier->name);
}

void Memory::access_shared(const void* address, size_t bytes, bool is_write, const Access& access,
                           bool may_be_unwritten) {
  ++accesses_;
  const Stamp& stamp = access.stamp;
  Cta* const cta = find_cta(address);
  if (cta == nullptr || !is_inside(address, bytes, cta->shared, shared_bytes_)) {
    reporter_.fail(ReportKind::kBounds, stamp.primitive, stamp.where,
                   bytes_text(bytes) + (is_write ? "write" : "read") + " outside of the CTA's " +
                       std::to_string(shared_bytes_) + " bytes of shared memory" +
                       (cta != nullptr ? ", at +" + std::to_string(cta->offset_of(address)) : ""));
  }
  if (cta->running == 0) {
    reporter_.fail(
        ReportKind::kProtocol, stamp.primitive, stamp.where,
        "access to the shared memory of CTA " + std::to_string(cta->index) + ", which has ended");
  }
  const uint32_t offset = cta->offset_of(address);
  if (!is_write && !may_be_unwritten) {
    if (const auto unwritten = cta->shared_shadow.first_unwritten(offset, bytes)) {
      reporter_.report(ReportKind::kUninitialised, stamp.primitive, stamp.where,
                       "read of " + describe_shared(*cta, static_cast<uint32_t>(*unwritten)) +
                           ", which nothing wrote");
    }
  }
  if (is_write) check_barriers_kept(*cta, offset, bytes, stamp);
  const auto conflict = is_write ? cta->shared_shadow.write(offset, bytes, access)
                                 : cta->shared_shadow.read(offset, bytes, access);
  if (conflict) {
    report_race(*conflict, access, is_write,
                describe_shared(*cta, static_cast<uint32_t>(conflict->offset)), bytes);
  }
}

void Memory::access_global(const void* address, size_t bytes, bool is_write, const Access& access) {
  ++accesses_;
  const Stamp& stamp = access.stamp;
  const GlobalBuffer* const buffer = find_buffer(address);
  if (buffer == nullptr || !is_inside(address, bytes, buffer->begin, buffer->bytes)) {
    std::string what = bytes_text(bytes) + (is_write ? "write" : "read");
    if (buffer == nullptr) {
      what += " of global memory outside of every buffer of the launch" + nearest_end(address);
    } else {
      what += " past the end of buffer " + buffer->name + ", at +" +
              std::to_string(static_cast<const std::byte*>(address) - buffer->begin) + " of " +
              std::to_string(buffer->bytes) + " bytes";
    }
    reporter_.fail(ReportKind::kBounds, stamp.primitive, stamp.where, std::move(what));
  }
  if (!access.may_touch_global) {
    reporter_.report(ReportKind::kProtocol, stamp.primitive, stamp.where,
                     std::string(is_write ? "write to" : "read of") + " buffer " + buffer->name +
                         " before grid_dependency_wait: the launch before may still use it");
  }
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - buffer->begin);
  if (buffer->permission == Permission::kRead) {
    if (is_write) {
      reporter_.fail(ReportKind::kBounds, stamp.primitive, stamp.where,
                     "write to the input buffer " + buffer->name);
    }
    return;
  }
  const std::string place = "global buffer " + buffer->name + " +";
  if (!is_write && !buffer->is_written) {
    if (const auto unwritten = buffer->shadow->first_unwritten(offset, bytes)) {
      reporter_.report(ReportKind::kUninitialised, stamp.primitive, stamp.where,
                       "read of " + place + std::to_string(*unwritten) + ", which nothing wrote");
    }
  }
  const auto conflict = is_write ? buffer->shadow->write(offset, bytes, access)
                                 : buffer->shadow->read(offset, bytes, access);
  if (conflict) {
    report_race(*conflict, access, is_write, place + std::to_string(conflict->offset), bytes);
  }
}

void Memory::check_aligned(const void* address, size_t bytes, const char* primitive,
                           const Where& where) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  reporter_.fail(
      ReportKind::kBounds, primitive, where,
      bytes_text(bytes) + "access that is not aligned to " + std::to_string(bytes) + " bytes");
}

void Memory::thread_shared(const void* address, size_t bytes, bool is_write, const char* primitive,
                           const Where& where) {
  check_aligned(address, bytes, primitive, where);
  if (is_write) scheduler_.progress();
  scheduler_.count_access(primitive, where);
  access_shared(address, bytes, is_write, scheduler_.running()->access(primitive, where));
}

void Memory::thread_global(const void* address, size_t bytes, bool is_write, const char* primitive,
                           const Where& where) {
  check_aligned(address, bytes, primitive, where);
  if (is_write) scheduler_.progress();
  scheduler_.count_access(primitive, where);
  access_global(address, bytes, is_write, scheduler_.running()->access(primitive, where));
}

void Memory::thread_atomic(const void* address, bool is_shared, size_t bytes, bool is_write,
                           Scope scope, const char* primitive, const Where& where) {
  check_aligned(address, bytes, primitive, where);
  scheduler_.count_access(primitive, where);
  const Access access = scheduler_.running()->atomic_access(primitive, where, scope);
  if (is_shared) {
    access_shared(address, bytes, is_write, access);
  } else {
    access_global(address, bytes, is_write, access);
  }
}

// --- races -------------------------------------------------------------------------------------

std::string Memory::missing_order(const Stamp& earlier, const Access& access) const {
  const Stamp& later = access.stamp;
  const bool is_ordered_in_time = access.clocks->generic.get(earlier.agent) >= earlier.time;
  const bool is_complete = access.clocks->async.get(earlier.agent) >= earlier.time;
  if (earlier.is_atomic && later.is_atomic) {
    const uint32_t cta = agent_cta(earlier.agent), other = agent_cta(later.agent);
    return "\n  two atomics race where one's scope does not include the other's thread: " +
           name(earlier.scope) + " by CTA " + std::to_string(cta) + ", " + name(later.scope) +
           " by CTA " + std::to_string(other) + "; " +
           name(needed_scope(cta, other, cluster_size_)) + " is needed";
  }
  if (earlier.proxy == Proxy::kTensor && is_ordered_in_time) {
    return "\n  barriers order the two, but tcgen05_fence_after_thread_sync is missing after the "
           "wait";
  }
  if (earlier.proxy == Proxy::kTensor && is_complete) {
    return "\n  barriers order the two, but tcgen05_fence_before_thread_sync is missing before the "
           "arrival";
  }
  if (is_ordered_in_time && earlier.proxy == Proxy::kGeneric) {
    return "\n  barriers order the two, but the second comes from the asynchronous proxy: "
           "fence_proxy_async is missing between them";
  }
  if (std::string link = scopes_.narrow_link(earlier); !link.empty()) return link;
  if (earlier.proxy != Proxy::kGeneric) {
    return "\n  no wait for the completion of the earlier operation comes before";
  }
  return "\n  no chain of barriers leads from one to the other";
}

void Memory::report_race(const Conflict& conflict, const Access& access, bool is_write,
                         const std::string& place, size_t bytes) {
  const Stamp& earlier = conflict.earlier;
  reporter_.report_race(access.stamp.primitive, access.stamp.where,
                        bytes_text(bytes) + (is_write ? "write" : "read") + " of " + place +
                            " is not ordered after the " +
                            (conflict.earlier_is_write ? "write" : "read") + " by " +
                            call_at(earlier.primitive, earlier.where) + ", " +
                            grid_.describe(earlier.agent) + missing_order(earlier, access),
                        earlier.where);
}

}  // namespace pagoda::emulator
