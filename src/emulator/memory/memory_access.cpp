// Accesses to shared and global memory: bounds, alignment, poison and order. The bytes themselves
// are moved by the primitives.
#include <algorithm>
#include <string>
#include <string_view>

#include "emulator/machine/machine.hpp"
#include "emulator/memory/tensor_memory.hpp"

namespace pagoda::emulator {
namespace {

// A thread that makes so many accesses without waiting for anybody gives way: it may be in a loop
// that another thread ends.
constexpr uint32_t kTimeSlice = 1U << 16;

std::string scope_text(Scope scope) {
  return scope == Scope::kCta       ? ".cta"
         : scope == Scope::kCluster ? ".cluster"
         : scope == Scope::kGpu     ? ".gpu"
                                    : ".sys";
}

// The narrowest that includes threads of both CTAs.
Scope needed_scope(uint32_t a, uint32_t b, uint32_t cluster_size) {
  for (const Scope scope : {Scope::kCta, Scope::kCluster}) {
    if (includes(scope, a, b, cluster_size)) return scope;
  }
  return Scope::kGpu;
}

std::string bytes_text(size_t bytes) { return std::to_string(bytes) + "-byte "; }

bool is_inside(const void* address, size_t bytes, const std::byte* begin, size_t size) {
  const auto* byte = static_cast<const std::byte*>(address);
  return byte >= begin && bytes <= size && static_cast<size_t>(byte - begin) <= size - bytes;
}

}  // namespace

// ", 128 bytes after the end of buffer in", where a buffer ends within a page before the address.
std::string Machine::nearest_end(const void* address) const {
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

Cta* Machine::find_cta(const void* shared_address) {
  if (running_ != nullptr && running_->cta->owns(shared_address)) return running_->cta;
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      if (cta->owns(shared_address)) return cta.get();
    }
  }
  return nullptr;
}

uint32_t Machine::shared_offset(const Cta& cta, const void* address) const {
  return static_cast<uint32_t>(static_cast<const std::byte*>(address) - cta.shared);
}

GlobalBuffer* Machine::find_buffer(const void* address) {
  for (GlobalBuffer& buffer : buffers_) {
    if (is_inside(address, 1, buffer.begin, buffer.bytes)) return &buffer;
  }
  return nullptr;
}

std::string Machine::describe_shared(const Cta& cta, uint32_t offset) const {
  std::string text = "shared memory +" + std::to_string(offset);
  const auto after = cta.shared_names.upper_bound(offset);
  if (after != cta.shared_names.begin()) {
    const auto& [start, named] = *std::prev(after);
    if (offset < start + named.first) {
      text += " (" + named.second + " +" + std::to_string(offset - start) + ")";
    }
  }
  return text + " of CTA " + std::to_string(cta.index);
}

// A live mbarrier must not be written to: a copy that is too long, a layout that overlaps.
void Machine::check_barriers_kept(const Cta& cta, uint32_t offset, size_t bytes,
                                  const Stamp& stamp) {
  if (offset >= cta.barriers_end || offset + bytes <= cta.barriers_begin) return;
  const std::string_view primitive = stamp.primitive;
  if (primitive == "mbarrier_init" || primitive == "mbarrier_invalidate") return;
  for (const auto& [at, barrier] : cta.mbarriers) {
    if (!barrier.is_live || offset >= at + 8 || offset + bytes <= at) continue;
    fail(ReportKind::kProtocol, stamp.primitive, stamp.where,
         bytes_text(bytes) + "write over the live mbarrier " + barrier.name);
  }
}

void Machine::access_shared(const void* address, size_t bytes, bool is_write, const Access& access,
                            bool may_be_unwritten) {
  ++statistics_.accesses;
  const Stamp& stamp = access.stamp;
  Cta* const cta = find_cta(address);
  if (cta == nullptr || !is_inside(address, bytes, cta->shared, shape_.shared_bytes)) {
    fail(ReportKind::kBounds, stamp.primitive, stamp.where,
         bytes_text(bytes) + (is_write ? "write" : "read") + " outside of the CTA's " +
             std::to_string(shape_.shared_bytes) + " bytes of shared memory" +
             (cta != nullptr ? ", at +" + std::to_string(shared_offset(*cta, address)) : ""));
  }
  if (cta->running == 0) {
    fail(ReportKind::kProtocol, stamp.primitive, stamp.where,
         "access to the shared memory of CTA " + std::to_string(cta->index) + ", which has ended");
  }
  const uint32_t offset = shared_offset(*cta, address);
  if (!is_write && !may_be_unwritten) {
    if (const auto unwritten = cta->shared_shadow.first_unwritten(offset, bytes)) {
      report(ReportKind::kUninitialised, stamp.primitive, stamp.where,
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

void Machine::access_global(const void* address, size_t bytes, bool is_write,
                            const Access& access) {
  ++statistics_.accesses;
  const Stamp& stamp = access.stamp;
  GlobalBuffer* const buffer = find_buffer(address);
  if (buffer == nullptr || !is_inside(address, bytes, buffer->begin, buffer->bytes)) {
    std::string what = bytes_text(bytes) + (is_write ? "write" : "read");
    if (buffer == nullptr) {
      what += " of global memory outside of every buffer of the launch" + nearest_end(address);
    } else {
      what += " past the end of buffer " + buffer->name + ", at +" +
              std::to_string(static_cast<const std::byte*>(address) - buffer->begin) + " of " +
              std::to_string(buffer->bytes) + " bytes";
    }
    fail(ReportKind::kBounds, stamp.primitive, stamp.where, std::move(what));
  }
  if (!access.may_touch_global) {
    report(ReportKind::kProtocol, stamp.primitive, stamp.where,
           std::string(is_write ? "write to" : "read of") + " buffer " + buffer->name +
               " before grid_dependency_wait: the launch before may still use it");
  }
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - buffer->begin);
  if (buffer->permission == Permission::kRead) {
    if (is_write) {
      fail(ReportKind::kBounds, stamp.primitive, stamp.where,
           "write to the input buffer " + buffer->name);
    }
    return;
  }
  const std::string place = "global buffer " + buffer->name + " +";
  if (!is_write && !buffer->is_written) {
    if (const auto unwritten = buffer->shadow->first_unwritten(offset, bytes)) {
      report(ReportKind::kUninitialised, stamp.primitive, stamp.where,
             "read of " + place + std::to_string(*unwritten) + ", which nothing wrote");
    }
  }
  const auto conflict = is_write ? buffer->shadow->write(offset, bytes, access)
                                 : buffer->shadow->read(offset, bytes, access);
  if (conflict) {
    report_race(*conflict, access, is_write, place + std::to_string(conflict->offset), bytes);
  }
}

void Machine::thread_shared(const void* address, size_t bytes, bool is_write, const char* primitive,
                            const Where& where) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
    fail(ReportKind::kBounds, primitive, where,
         bytes_text(bytes) + "access that is not aligned to " + std::to_string(bytes) + " bytes");
  }
  if (is_write) progress();
  if (++accesses_since_switch_ == kTimeSlice) end_time_slice(primitive, where);
  access_shared(address, bytes, is_write, running_->access(primitive, where));
}

void Machine::thread_global(const void* address, size_t bytes, bool is_write, const char* primitive,
                            const Where& where) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
    fail(ReportKind::kBounds, primitive, where,
         bytes_text(bytes) + "access that is not aligned to " + std::to_string(bytes) + " bytes");
  }
  if (is_write) progress();
  if (++accesses_since_switch_ == kTimeSlice) end_time_slice(primitive, where);
  access_global(address, bytes, is_write, running_->access(primitive, where));
}

void Machine::thread_atomic(const void* address, bool is_shared, size_t bytes, bool is_write,
                            Scope scope, const char* primitive, const Where& where) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
    fail(ReportKind::kBounds, primitive, where,
         bytes_text(bytes) + "access that is not aligned to " + std::to_string(bytes) + " bytes");
  }
  if (++accesses_since_switch_ == kTimeSlice) end_time_slice(primitive, where);
  const Access access = running_->atomic_access(primitive, where, scope);
  if (is_shared) {
    access_shared(address, bytes, is_write, access);
  } else {
    access_global(address, bytes, is_write, access);
  }
}

// The release and the acquire that would have ordered the earlier access, had their scopes been wide
// enough; nothing: there are none.
std::string Machine::narrow_link(const Stamp& earlier) const {
  const auto line = [](const char* primitive, Scope scope, const Where& where, uint32_t cta) {
    const std::string_view path = where.file_name();
    return std::string(primitive) + " of scope " + scope_text(scope) + " at " +
           std::string(path.substr(path.find_last_of('/') + 1)) + ":" +
           std::to_string(where.line()) + " by CTA " + std::to_string(cta);
  };
  for (const NarrowLink& link : narrow_links_) {
    const Released& released = link.released;
    if (released.clocks.generic.get(earlier.agent) < earlier.time) continue;
    return "\n  the scopes are too narrow between " +
           line(released.primitive, released.scope, released.where, released.cta) + " and " +
           line(link.primitive, link.scope, link.where, link.cta) + ": " +
           scope_text(needed_scope(released.cta, link.cta, cluster_size())) + " is needed";
  }
  return {};
}

void Machine::end_time_slice(const char* primitive, const Where& where) {
  poll({.what = "memory: " + std::to_string(kTimeSlice) + " accesses without waiting for anybody",
        .primitive = primitive,
        .where = where});
}

void Machine::report_race(const Conflict& conflict, const Access& access, bool is_write,
                          const std::string& place, size_t bytes) {
  const Stamp& earlier = conflict.earlier;
  const std::string_view path = earlier.where.file_name();
  const std::string file(path.substr(path.find_last_of('/') + 1));
  // Who made the earlier access.
  std::string who = "CTA " + std::to_string(agent_cta(earlier.agent));
  const uint32_t index = agent_index(earlier.agent);
  const auto threads = static_cast<uint32_t>(shape_.threads);
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      if (cta->index != agent_cta(earlier.agent)) continue;
      if (index < threads) {
        who = describe(cta->threads[index]);
      } else if (index < first_engine()) {
        who = cta->tensor_memory->describe(*this, earlier.agent);
      } else if (index < first_slot()) {
        who = "issued by " + describe(cta->threads[(index - first_engine()) * 128]);
      } else if (const Cta::Issued& issued = cta->slots[index - first_slot()];
                 issued.issuer != nullptr) {
        who = "issued by " + describe(*issued.issuer);
      }
    }
  }
  std::string message =
      bytes_text(bytes) + (is_write ? "write" : "read") + " of " + place +
      " is not ordered after the " + (conflict.earlier_is_write ? "write" : "read") + " by " +
      earlier.primitive + " at " + file + ":" + std::to_string(earlier.where.line()) + ", " + who;
  const bool is_ordered_in_time = access.clocks->generic.get(earlier.agent) >= earlier.time;
  const bool is_complete = access.clocks->async.get(earlier.agent) >= earlier.time;
  if (earlier.is_atomic && access.stamp.is_atomic) {
    message += "\n  two atomics race where one's scope does not include the other's thread: " +
               scope_text(earlier.scope) + " by CTA " + std::to_string(agent_cta(earlier.agent)) +
               ", " + scope_text(access.stamp.scope) + " by CTA " +
               std::to_string(agent_cta(access.stamp.agent)) + "; " +
               scope_text(needed_scope(agent_cta(earlier.agent), agent_cta(access.stamp.agent),
                                       cluster_size())) +
               " is needed";
  } else if (earlier.proxy == Proxy::kTensor && is_ordered_in_time) {
    message +=
        "\n  barriers order the two, but tcgen05_fence_after_thread_sync is missing after the wait";
  } else if (earlier.proxy == Proxy::kTensor && is_complete) {
    message +=
        "\n  barriers order the two, but tcgen05_fence_before_thread_sync is missing before the "
        "arrival";
  } else if (is_ordered_in_time && earlier.proxy == Proxy::kGeneric) {
    message +=
        "\n  barriers order the two, but the second comes from the asynchronous proxy: "
        "fence_proxy_async is missing between them";
  } else if (std::string link = narrow_link(earlier); !link.empty()) {
    message += link;
  } else if (earlier.proxy != Proxy::kGeneric) {
    message += "\n  no wait for the completion of the earlier operation comes before";
  } else {
    message += "\n  no chain of barriers leads from one to the other";
  }
  report(ReportKind::kRace, access.stamp.primitive, access.stamp.where, std::move(message));
  if (!reports_.empty() && reports_.back().kind == ReportKind::kRace &&
      reports_.back().other_file.empty()) {
    reports_.back().other_file = file;
    reports_.back().other_line = earlier.where.line();
  }
}

}  // namespace pagoda::emulator
