// Registers Holes.
#include "holes.hpp"

#include "functor/register_functor.hpp"

PAGODA_REGISTER_FUNCTOR(holes, Holes)
