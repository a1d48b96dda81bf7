// What the public API says of the back ends.
#include "engine/registry.hpp"
#include "engine/select.hpp"
#include "pagoda/backend.hpp"

namespace pagoda {

std::vector<BackendInfo> backends() {
  std::vector<BackendInfo> infos;
  for (const core::Backend* backend : engine::registry()) {
    std::string why_not = engine::why_not(*backend);
    const bool is_available = why_not.empty();
    infos.push_back({.name = backend->name,
                     .is_available = is_available,
                     .description = is_available ? backend->description() : std::move(why_not),
                     .memory = backend->memory});
  }
  return infos;
}

}  // namespace pagoda
