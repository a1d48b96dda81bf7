// Registers HeadDecay with every back end; pagoda_add_functor() compiles this file for each.
#include "head_decay.hpp"

#include "functor/register_functor.hpp"

PAGODA_REGISTER_FUNCTOR(head_decay, HeadDecay)
