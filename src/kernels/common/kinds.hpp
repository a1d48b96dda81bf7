// The classes of instances that the attention kernels of every architecture have: how they load K
// and V, and which scores and masks they compute.
#pragma once

#include <cstdint>

namespace pagoda::kernels {

// How K and V are loaded into shared memory.
enum class LoadKind : uint8_t {
  kTma,     // by TMA: page sizes and strides that it supports, elements of the queries' type
  kGather,  // row by row, by the threads of the load warps: everything else
  kTmaFp8,  // by TMA: e4m3 elements under 16-bit queries, widened in registers
  // By TMA: e4m3 elements under 16-bit queries. A warpgroup widens them in shared memory.
  kTmaWiden,
};

enum class ScoreClass : uint8_t {
  kPlain,    // an interval mask, scores linear in Q K'
  kGeneral,  // any mask expression, biases, soft cap, ALiBi
  kCapped,   // an interval mask and a soft cap, where a kernel has a class for it
};

}  // namespace pagoda::kernels
