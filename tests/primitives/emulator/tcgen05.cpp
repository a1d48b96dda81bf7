// The rows of gpu/tcgen05.cu, compiled for the emulator once it has tcgen05.
#if __has_include("arch/emu/tcgen05.hpp")
#include "../gpu/tcgen05.cu"
#else
#include "../groups.hpp"
namespace pagoda::primitives {
void add_tcgen05_cases(Cases&) {}
}  // namespace pagoda::primitives
#endif
