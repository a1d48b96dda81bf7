// Executor: runs the CPU back end's workers. Derive from it to use your own thread pool; the
// default is oneTBB over the process's CPU affinity mask.
#pragma once

#include <cstdint>

namespace pagoda {

class Executor {
 public:
  virtual ~Executor() = default;

  // How many workers parallel() can keep busy at once; at least 1 and constant.
  [[nodiscard]] virtual int32_t workers() const = 0;

  // Calls body(context, i) once for every i in [0, n), n <= workers(), and returns when all have
  // returned. The calls may run on any threads, in any order, even one after the other.
  virtual void parallel(int32_t n, void (*body)(void* context, int32_t i), void* context) = 0;
};

// oneTBB, one worker per CPU of the affinity mask, or PAGODA_NUM_THREADS where that is set.
// Lives as long as the process.
[[nodiscard]] Executor& default_executor();

// One worker: the calling thread.
[[nodiscard]] Executor& serial_executor();

}  // namespace pagoda
