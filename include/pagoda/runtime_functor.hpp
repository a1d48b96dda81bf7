// compile_functor(): a functor whose source is text, compiled for NVIDIA GPUs while the program
// runs. A separate library: link pagoda::runtime_functors. It loads NVRTC, NVIDIA's compiler
// library, when there is something to compile. docs/functors.md says when to use it instead of
// pagoda_add_functor(), and has an example.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pagoda/status.hpp"

namespace pagoda {

struct FunctorSource {
  // By which calls name it: an identifier. Kernels are named after it, "sm90.d128.bf16+documents".
  std::string name{};
  // The type in `source`, as C++ spells it: "Documents", "mine::Documents".
  std::string type{};
  // C++20. Of headers it may include "pagoda/functor.hpp" and those of the standard library that
  // docs/functors.md lists.
  std::string source{};
  // Names of kernels of the families sm80, sm90 and sm100: "sm90.d128.bf16". At least one.
  std::vector<std::string> shapes{};
  // Compute capabilities to compile for, 90 for 9.0; empty: those of the GPUs of this process. A
  // shape is compiled for those that its family runs on, at least one.
  std::vector<int32_t> archs{};
  // A folder for compiled kernels, made where it is missing. By default $XDG_CACHE_HOME/pagoda or
  // ~/.cache/pagoda; "": nothing is kept.
  std::optional<std::string> cache_dir{};
  // The compiler's library, a path or a name; empty: libnvrtc.so.13 or libnvrtc.so.12, where the
  // loader finds it, in $CUDA_PATH/lib64, or in /usr/local/cuda/lib64.
  std::string nvrtc{};
};

struct CompiledFunctor {
  int32_t value_bytes = 0;         // sizeof the type
  std::vector<std::string> names;  // "sm90.d128.bf16+documents"
  int32_t num_compiled = 0;        // GPU kernels that NVRTC compiled; a shape has one to four
  int32_t num_cached = 0;          // GPU kernels that came from the cache
  std::string log;                 // the compiler's warnings; why the cache could not be written
};

// Compiles `functor` and registers it for the rest of the process, as if the program had been
// compiled with it: a.functor = pagoda::functor(name, value, arrays...) names it. Takes seconds for
// each kernel that is not in the cache, on all processors; calls that run at the same time wait for
// each other.
//
// A functor of this name that the program was compiled with gets the kernels as well; it must have
// the same size and the same members. Without one, the functor has no code for the CPU.
//
// kInvalidArgument: a field, or the source, whose errors the message holds as the compiler prints
// them. kNotFound: no NVRTC; the message lists what was tried. kUnsupported: this build has no GPU
// code for functors, or NVRTC does not know the architecture. Nothing is registered then.
[[nodiscard]] Result<CompiledFunctor> compile_functor(const FunctorSource& functor);

}  // namespace pagoda
