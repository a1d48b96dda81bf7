// The back ends in this library.
#include "pagoda/backend.hpp"

namespace pagoda {

std::vector<BackendInfo> backends() {
  return {{.name = "reference",
           .is_available = true,
           .description = "the definition: naive, double precision, one thread"}};
}

}  // namespace pagoda
