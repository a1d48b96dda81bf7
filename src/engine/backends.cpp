// The back ends in this library.
#include "pagoda/backend.hpp"

namespace pagoda {

std::vector<BackendInfo> backends() {
  return {{.name = "cpu",
           .is_available = true,
           .description = "tiled kernels, up to " + cpu_isa_level() + " on this machine"},
          {.name = "reference",
           .is_available = true,
           .description = "the definition: naive, double precision, one thread"}};
}

}  // namespace pagoda
