// Accesses and clocks of threads and operations, and their names in reports.
#include "emulator/machine/hierarchy.hpp"

#include <iterator>

namespace pagoda::emulator {

Clocks& Thread::own_clocks() {
  if (clocks.use_count() > 1) clocks = std::make_shared<Clocks>(*clocks);
  return *clocks;
}

void Thread::tick() { own_clocks().generic.set(agent, ++time); }

void Thread::release_into(Clocks& target) {
  target.join(*clocks);
  tick();
}

void Thread::acquire(const Clocks& source) { own_clocks().join(source); }

Access Thread::access(const char* primitive, const Where& where) const {
  return {.stamp = {.agent = agent,
                    .time = time,
                    .primitive = primitive,
                    .where = where,
                    .proxy = Proxy::kGeneric},
          .clocks = clocks.get(),
          .may_touch_global = may_touch_global};
}

Access Thread::atomic_access(const char* primitive, const Where& where, Scope scope) const {
  Access made = access(primitive, where);
  made.stamp.is_atomic = true;
  made.stamp.scope = scope;
  made.cluster_size = static_cast<uint32_t>(cta->cluster->ctas.size());
  return made;
}

Access AsyncOperation::access(Proxy proxy) const {
  return {.stamp = {.agent = agent,
                    .time = time,
                    .primitive = primitive,
                    .where = where,
                    .proxy = proxy},
          .clocks = known.get(),
          .may_touch_global = may_touch_global};
}

// Nothing else that its issuer did, and nothing for the asynchronous proxy: what a cp.async or
// st.async wrote needs a proxy fence like any ordinary write.
Clocks AsyncOperation::completion() const {
  Clocks done;
  done.generic.set(agent, time);
  return done;
}

std::string describe(const Thread& thread) {
  std::string text = "CTA " + std::to_string(thread.cta->index) + ", warp " +
                     std::to_string(thread.warp()) + ", lane " + std::to_string(thread.lane());
  const char* const role = thread.state == ThreadState::kDone ? thread.last_role : thread.role;
  if (*role != '\0') text += std::string(", role ") + role;
  return text;
}

std::string describe_shared(const Cta& cta, uint32_t offset) {
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

}  // namespace pagoda::emulator
