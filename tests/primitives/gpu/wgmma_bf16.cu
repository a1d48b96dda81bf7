// wgmma of bf16 (sm_90a only).
#include "../groups.hpp"
#include "../wgmma.hpp"

namespace pagoda::primitives {

void add_wgmma_bf16_cases(Cases& cases) { add_wgmma_type<BFloat16>(cases); }

}  // namespace pagoda::primitives
