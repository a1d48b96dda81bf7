// pagoda_mask as a Mask.
#pragma once

#include <cstdint>

#include "pagoda/mask.hpp"
#include "pagoda/pagoda.h"
#include "pagoda/status.hpp"

namespace pagoda::c_api {

// Null = no mask.
[[nodiscard]] Status to_mask(const pagoda_mask* from, Mask& to);

}  // namespace pagoda::c_api
