// Registers CausalAgain with every back end; pagoda_add_functor() compiles this file for each.
#include "causal.hpp"

#include "functor/register_functor.hpp"

PAGODA_REGISTER_FUNCTOR(causal, CausalAgain)
