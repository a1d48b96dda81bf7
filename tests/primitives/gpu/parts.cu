// Components of the attention kernels: pipelines and operands.
#include "../groups.hpp"
#include "../parts.hpp"

namespace pagoda::primitives {

void add_part_cases(Cases& cases) { add_part_cases_here(cases); }

}  // namespace pagoda::primitives
