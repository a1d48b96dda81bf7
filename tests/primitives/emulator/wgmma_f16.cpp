// The rows of gpu/wgmma_f16.cu, compiled for the emulator.
#include "../gpu/wgmma_f16.cu"
