// Primitives of sm_80 and later.
#include "../barrier.hpp"
#include "../cp_async.hpp"
#include "../groups.hpp"
#include "../ldmatrix.hpp"
#include "../math.hpp"
#include "../memory.hpp"
#include "../mma.hpp"
#include "../warp.hpp"

namespace pagoda::primitives {

void add_sm80_cases(Cases& cases) {
  add_memory_cases(cases);
  add_warp_cases(cases);
  add_barrier_cases(cases);
  add_cp_async_cases(cases);
  add_ldmatrix_cases(cases);
  add_mma_cases(cases);
  add_math_cases(cases);
}

}  // namespace pagoda::primitives
