// backends(): the registered back ends, as the public API lists them.
#include "engine/registry.hpp"
#include "engine/select.hpp"
#include "pagoda/backend.hpp"

namespace pagoda {

std::vector<BackendInfo> backends() {
  std::vector<BackendInfo> infos;
  for (const core::Backend* backend : engine::registry()) {
    std::string unavailable_reason = engine::unavailable_reason(*backend);
    const bool is_available = unavailable_reason.empty();
    infos.push_back(
        {.name = backend->name,
         .is_available = is_available,
         .description = is_available ? backend->description() : std::move(unavailable_reason),
         .memory = backend->memory});
  }
  return infos;
}

}  // namespace pagoda
