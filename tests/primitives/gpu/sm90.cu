// Primitives of sm_90 and later: copy engine, clusters, register budgets, dependent launches.
#include "../cluster.hpp"
#include "../groups.hpp"
#include "../launch_control.hpp"
#include "../tma.hpp"

namespace pagoda::primitives {

void add_sm90_cases(Cases& cases) {
  add_tma_cases(cases);
  add_cluster_cases(cases);
  add_launch_control_cases(cases);
}

}  // namespace pagoda::primitives
