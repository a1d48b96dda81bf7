// Whether NVRTC can be loaded here. It is loaded in a process of its own: tests observe whether the
// library is in theirs.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "runtime_functor/nvrtc.hpp"

namespace pagoda::runtime_functor_tests {

[[nodiscard]] inline bool has_nvrtc() {
  static const bool kHas = [] {
    const pid_t child = fork();
    if (child == 0) _exit(runtime_functor::Nvrtc::load("").ok() ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }();
  return kHas;
}

}  // namespace pagoda::runtime_functor_tests
