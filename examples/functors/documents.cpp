// Registers Documents with every back end; pagoda_add_functor() compiles this file for each.
#include "documents.hpp"

#include "functor/register_functor.hpp"

PAGODA_REGISTER_FUNCTOR(documents, Documents)
