// Release and acquire at scopes.
#include "emulator/sync/scopes.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

#include "emulator/machine/hierarchy.hpp"
#include "emulator/report/place.hpp"

namespace pagoda::emulator {

void Scopes::release_to(std::vector<Released>& target, const Released& released) {
  for (Released& entry : target) {
    if (entry.cta != released.cta || entry.scope != released.scope) continue;
    entry.clocks.join(released.clocks);
    entry.primitive = released.primitive;
    entry.where = released.where;
    return;
  }
  target.push_back(released);
}

void Scopes::acquire(Thread& thread, const std::vector<Released>& source, Scope scope,
                     const char* primitive, const Where& where) {
  const uint32_t cta = thread.cta->index;
  for (const Released& released : source) {
    if (includes(released.scope, released.cta, cta, cluster_size_) &&
        includes(scope, cta, released.cta, cluster_size_)) {
      thread.acquire(released.clocks);
      continue;
    }
    const auto is_same = [&](const NarrowLink& link) {
      return link.released.cta == released.cta && link.cta == cta &&
             link.released.where.line() == released.where.line() &&
             link.where.line() == where.line() &&
             std::string_view(link.where.file_name()) == where.file_name();
    };
    const auto known = std::find_if(narrow_links_.begin(), narrow_links_.end(), is_same);
    if (known != narrow_links_.end()) {
      known->released.clocks.join(released.clocks);
    } else {
      narrow_links_.push_back({released, cta, scope, primitive, where});
    }
  }
}

void Scopes::synchronise(Thread& thread, const void* address, AtomicUse use, const char* primitive,
                         const Where& where) {
  std::vector<Released>& released = words_[address];
  const uint32_t cta = thread.cta->index;
  if (use.reads && use.acquires) {
    acquire(thread, released, use.scope, primitive, where);
  } else if (use.reads) {
    for (const Released& entry : released) {
      // A later fence acquires only what the read itself observes.
      if (includes(use.scope, cta, entry.cta, cluster_size_)) {
        release_to(thread.seen_relaxed, entry);
      } else {
        acquire(thread, {entry}, use.scope, primitive, where);  // notes that it is too narrow
      }
    }
  }
  if (use.writes && use.releases) {
    release_to(released, {*thread.clocks, cta, use.scope, primitive, where});
    thread.tick();
  } else if (use.writes) {
    for (size_t fence = 0; fence < thread.fence_released.size(); ++fence) {
      if (!thread.fence_released[fence]) continue;
      release_to(released, {*thread.fence_released[fence], cta,
                            std::min(static_cast<Scope>(fence), use.scope), primitive, where});
    }
  }
}

void Scopes::thread_fence(Thread& thread, Scope scope, const Where& where) {
  acquire(thread, thread.seen_relaxed, scope, "thread_fence", where);
  const auto fence = static_cast<size_t>(std::min(scope, Scope::kGpu));
  for (size_t narrower = 0; narrower < fence; ++narrower) thread.fence_released[narrower].reset();
  thread.fence_released[fence] = std::make_shared<const Clocks>(*thread.clocks);
  thread.tick();
}

void Scopes::forget(const Cta& cta) {
  std::erase_if(words_, [&](const auto& word) { return cta.owns(word.first); });
}

std::string Scopes::narrow_link(const Stamp& earlier) const {
  const auto text = [](const char* primitive, Scope scope, const Where& where, uint32_t cta) {
    return std::string(primitive) + " of scope " + name(scope) + " at " + line_of(where) +
           " by CTA " + std::to_string(cta);
  };
  for (const NarrowLink& link : narrow_links_) {
    const Released& released = link.released;
    if (released.clocks.generic.get(earlier.agent) < earlier.time) continue;
    return "\n  the scopes are too narrow between " +
           text(released.primitive, released.scope, released.where, released.cta) + " and " +
           text(link.primitive, link.scope, link.where, link.cta) + ": " +
           name(needed_scope(released.cta, link.cta, cluster_size_)) + " is needed";
  }
  return {};
}

}  // namespace pagoda::emulator
