// Registers Twice.
#include "twice.hpp"

#include "functor/register_functor.hpp"

PAGODA_REGISTER_FUNCTOR(twice, Twice)
