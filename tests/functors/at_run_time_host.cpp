// Host code of the functors that functor_gpu_test compiles for GPUs at run time: other names for
// those of examples/functors.
#include "examples/functors/causal.hpp"
#include "examples/functors/documents.hpp"
#include "examples/functors/head_decay.hpp"
#include "functor/register_functor.hpp"

PAGODA_REGISTER_FUNCTOR(documents_at_run_time, Documents)
PAGODA_REGISTER_FUNCTOR(head_decay_at_run_time, HeadDecay)
PAGODA_REGISTER_FUNCTOR(causal_at_run_time, CausalAgain)
