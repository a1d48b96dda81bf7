// Cuts a range into contiguous shares, one per worker, for loops whose iterations cost the same.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pagoda/executor.hpp"

namespace pagoda::cpu {

// Calls body(begin, end) on shares of [0, count) of at least `least` iterations each.
template <typename Body>
void parallel_shares(Executor& executor, int64_t count, int64_t least, const Body& body) {
  if (count <= 0) return;
  struct Shares {
    const Body& body;
    int64_t count, workers;
  };
  const int64_t most = std::max<int64_t>(count / std::max<int64_t>(least, 1), 1);
  Shares shares{body, count, std::min<int64_t>(most, executor.workers())};
  executor.parallel(
      static_cast<int32_t>(shares.workers),
      [](void* context, int32_t i) {
        const auto& s = *static_cast<const Shares*>(context);
        const int64_t each = s.count / s.workers, more = s.count % s.workers;
        const int64_t begin = i * each + std::min<int64_t>(i, more);
        s.body(begin, begin + each + (i < more ? 1 : 0));
      },
      &shares);
}

}  // namespace pagoda::cpu
