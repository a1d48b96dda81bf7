// The rows of gpu/wgmma_bf16.cu, compiled for the emulator.
#include "../gpu/wgmma_bf16.cu"
