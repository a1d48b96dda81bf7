// The rows of gpu/sm90.cu, compiled for the emulator.
#include "../gpu/sm90.cu"
