// Nvrtc: NVIDIA's compiler library, loaded when it is first asked for.
//
// NVRTC documentation, "User Interface", "Supported Compile Options".
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pagoda/status.hpp"
#include "runtime_functor/headers.hpp"

namespace pagoda::runtime_functor {

struct Compiled {
  std::string cubin;
  std::string log;
};

class Nvrtc {
 public:
  // `name`: as FunctorSource::nvrtc. kNotFound: none of the names could be loaded.
  [[nodiscard]] static Result<Nvrtc> load(const std::string& name);

  // Any number of threads at once. kInvalidArgument: the source has errors, which the message
  // holds.
  [[nodiscard]] Result<Compiled> compile(const std::string& program,
                                         std::span<const Header> headers,
                                         const std::vector<std::string>& options) const;

 private:
  struct Functions;
  explicit Nvrtc(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}

  std::shared_ptr<const Functions> functions_;  // the library stays loaded
};

}  // namespace pagoda::runtime_functor
