// The rows of gpu/sm80.cu, compiled for the emulator.
#include "../gpu/sm80.cu"
