// wgmma of f16 (sm_90a only).
#include "../groups.hpp"
#include "../wgmma.hpp"

namespace pagoda::primitives {

void add_wgmma_f16_cases(Cases& cases) { add_wgmma_type<Half>(cases); }

}  // namespace pagoda::primitives
