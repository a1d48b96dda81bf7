// From a functor's source to cubins: by the cache, or by NVRTC.
#pragma once

#include <string>
#include <vector>

#include "pagoda/runtime_functor.hpp"
#include "runtime_functor/kernels.hpp"

namespace pagoda::runtime_functor {

// One kernel to compile.
struct Request {
  const Shape* shape = nullptr;
  size_t variant = 0;
  int32_t arch = 0;
};

struct Outcome {
  std::vector<Code> code;  // of the requests, in their order
  int32_t num_compiled = 0;
  std::string log;
};

[[nodiscard]] Result<Outcome> compile(const FunctorSource& functor,
                                      const std::vector<Request>& requests);

}  // namespace pagoda::runtime_functor
