// AMD half of arch/mbarrier.hpp: a name for signatures. There are no mbarriers.
#pragma once

namespace pagoda::arch {
inline namespace hip {

struct MBarrier;

}  // namespace hip
}  // namespace pagoda::arch
