// The check of every CUDA call: an error becomes an exception, which run() turns into a Status.
#pragma once

#include <cuda_runtime.h>
#include <new>
#include <stdexcept>
#include <string>

namespace pagoda::arch {
inline namespace ptx {

// `what` names the operation that failed: "launching sm90.prefill". Clears the thread's last error,
// so that the next call does not report it again; a sticky error (a faulting kernel) stays.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  if (error == cudaErrorMemoryAllocation) throw std::bad_alloc();
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error) + ", " +
                           cudaGetErrorString(error));
}

}  // namespace ptx
}  // namespace pagoda::arch
