// CompiledFamily: the family and the shape that this compilation of a functor's file is for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/functor_family.hpp"
#include "kernels/common/kernel_table.hpp"
#include "kernels/common/make_instance.hpp"

#if PAGODA_FUNCTOR_FAMILY == 80
#include "kernels/mha_sm80/kernel_of.hpp"
#define PAGODA_FUNCTOR_BASE mha_sm80
#elif PAGODA_FUNCTOR_FAMILY == 90
#include "kernels/mha_sm90/kernel_of.hpp"
#define PAGODA_FUNCTOR_BASE mha_sm90
#elif PAGODA_FUNCTOR_FAMILY == 100
#include "kernels/mha_sm100/kernel_of.hpp"
#define PAGODA_FUNCTOR_BASE mha_sm100
#elif PAGODA_FUNCTOR_FAMILY == 512
#include "kernels/mha_sm100_d512/kernel_of.hpp"
#define PAGODA_FUNCTOR_BASE mha_sm100_d512
#else
#error "PAGODA_FUNCTOR_FAMILY must be 80, 90, 100 or 512: compile this file by pagoda_add_functor()"
#endif

// Unnamed: each compilation of a functor's file has its own.
namespace pagoda::functors {
namespace {  // NOLINT(google-build-namespaces)

using BaseFamily = PAGODA_FUNCTOR_BASE::Family;
#undef PAGODA_FUNCTOR_BASE

// NOLINTNEXTLINE(misc-definitions-in-headers)
constexpr size_t kShape = kernels::shape_index(BaseFamily::kShapes, PAGODA_FUNCTOR_SHAPE);

template <class Named>
using CompiledFamily = kernels::FunctorFamily<BaseFamily, kShape, Named>;

// NOLINTNEXTLINE(misc-definitions-in-headers)
constexpr int32_t kRank = kernels::functor_rank<BaseFamily>(BaseFamily::kShapes[kShape]);

}  // namespace
}  // namespace pagoda::functors
