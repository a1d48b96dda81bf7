// What the source file of a functor includes, to register it. docs/functors.md:
//
//   #include "documents.hpp"
//   #include "functor/register_functor.hpp"
//   PAGODA_REGISTER_FUNCTOR(documents, my::Documents)
//
// A call then has a.functor = pagoda::functor("documents", my::Documents{..}, ..).
// pagoda_add_functor() compiles that file once for the CPU, and once for each kernel: for a GPU by
// nvcc, for the emulator by the host compiler. It defines PAGODA_FUNCTOR_FAMILY (0: the CPU; 80,
// 90, 100: the family of kernels; 512: that of sm100.d256 and sm100.d512) and PAGODA_FUNCTOR_SHAPE,
// a name of its kShapes ("sm90.d128.bf16").
#pragma once

#if PAGODA_FUNCTOR_FAMILY == 0
#include "functor/host_functor.hpp"
#elif defined(__CUDACC__)
#include "functor/gpu_functor.hpp"
#else
#include "functor/emulated_functor.hpp"
#endif

// `name` is an identifier.
#define PAGODA_REGISTER_FUNCTOR(name, Type)                    \
  struct PagodaFunctor_##name {                                \
    using Functor = Type;                                      \
    static constexpr char kName[] = #name;                     \
  };                                                           \
  namespace {                                                  \
  [[maybe_unused]] const bool pagoda_has_registered_##name =   \
      ::pagoda::functors::register_it<PagodaFunctor_##name>(); \
  }
