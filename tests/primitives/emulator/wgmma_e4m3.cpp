// The rows of gpu/wgmma_e4m3.cu, compiled for the emulator.
#include "../gpu/wgmma_e4m3.cu"
