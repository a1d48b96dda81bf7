// The rows of gpu/tcgen05.cu, compiled for the emulator.
#include "../gpu/tcgen05.cu"
