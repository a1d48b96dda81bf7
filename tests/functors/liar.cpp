// Registers Liar.
#include "liar.hpp"

#include "functor/register_functor.hpp"

PAGODA_REGISTER_FUNCTOR(liar, Liar)
