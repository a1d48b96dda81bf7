// Primitives of sm_100a. Compiled by nvcc; no Blackwell chip has run them yet.
#include "../groups.hpp"
#include "../tcgen05.hpp"

namespace pagoda::primitives {

void add_tcgen05_cases(Cases& cases) { add_tcgen05_instances(cases); }

}  // namespace pagoda::primitives
