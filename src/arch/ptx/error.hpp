// Every CUDA call is checked by this: an error becomes an exception, and in the end a Status.
#pragma once

#include <cuda_runtime.h>
#include <new>
#include <stdexcept>
#include <string>

namespace pagoda::arch {
inline namespace ptx {

// `what` says what was tried: "launching sm90.prefill". Takes the error back from the thread, so
// that the next call does not report it too; a fault of a kernel comes back all the same.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  if (error == cudaErrorMemoryAllocation) throw std::bad_alloc();
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error) + ", " +
                           cudaGetErrorString(error));
}

}  // namespace ptx
}  // namespace pagoda::arch
