// The compiled instances and their tiles. All tuning is here; README.md has the sizes that follow.
#pragma once

#include "kernels/mha_simt/config.hpp"

namespace pagoda::mha_simt {

struct Shape {
  const char* name;
  int depth_qk, depth_vo;  // the largest head dims
  int BM;                  // rows of a work tile
};

// In the order of the registry: a call gets the first shape that holds its head dims. A line is an
// instance: a translation unit with one kernel for all element types. The build reads the names
// (cmake/PagodaKernelFamilies.cmake).
inline constexpr Shape kShapes[] = {
    {"simt.d128", 128, 128, 16},
    {"simt.d256", 256, 256, 8},
    {"simt.d576", 576, 576, 8},
};

}  // namespace pagoda::mha_simt
