// wgmma of e4m3 (sm_90a only).
#include "../groups.hpp"
#include "../wgmma.hpp"

namespace pagoda::primitives {

void add_wgmma_e4m3_cases(Cases& cases) { add_wgmma_type<Float8E4M3>(cases); }

}  // namespace pagoda::primitives
