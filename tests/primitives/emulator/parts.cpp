// The rows of gpu/parts.cu, compiled for the emulator.
#include "../gpu/parts.cu"
