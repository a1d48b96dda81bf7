// Loads from a buffer resource (AMD): a base address and a number of bytes. What is past them reads
// as zeros.
//
//   BufferResource make_buffer(GlobalPtr<const char> base, uint32_t bytes)
//                                 all lanes of the wave call it, with the same arguments
//   Words<4> load_buffer(const BufferResource&, uint32_t offset)
//                                 16 bytes; offset and bytes are multiples of 16, or 16 bytes that
//                                 are only partly inside are undefined
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_AMD
#include "arch/hip/buffer.hpp"
#elif !PAGODA_ON_GPU
#include "arch/emu/buffer.hpp"
#endif
