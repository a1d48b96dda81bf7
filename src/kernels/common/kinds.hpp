// The classes of instances that the attention kernels of every architecture have.
#pragma once

#include <cstdint>

namespace pagoda::kernels {

// How K and V come into shared memory.
enum class LoadKind : uint8_t {
  kTma,     // one thread a copy; pages and strides that TMA knows, elements of the queries' type
  kGather,  // many threads, row by row; everything else
  kTmaFp8,  // like kTma, but elements of e4m3 under queries of 16 bits
};

enum class ScoreClass : uint8_t {
  kPlain,    // an interval mask, scores linear in the product
  kGeneral,  // any mask expression, biases, soft cap, ALiBi
};

}  // namespace pagoda::kernels
