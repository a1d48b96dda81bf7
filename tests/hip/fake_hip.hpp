// A fake HIP runtime: fake_hip.cpp is built as libamdhip64.so.6 and has the functions that the
// library looks up. Devices are described by the environment variable PAGODA_FAKE_HIP
// ("gfx942,gfx90a"; "": none), device memory is memory of the host, launches are recorded, and
// modules are the ELF files that the library embeds. A program that links it controls it by the
// functions below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pagoda::hip_tests {

struct RecordedLaunch {
  std::string symbol;
  int device = -1;  // the current one
  unsigned grid[3] = {}, block[3] = {};
  unsigned dynamic_lds_bytes = 0;
  void* stream = nullptr;
  std::vector<std::byte> params;
  // Of the kernel's descriptor in the module.
  uint32_t static_lds_bytes = 0, scratch_bytes = 0, kernarg_bytes = 0;
};

// The launches since the last call.
[[nodiscard]] std::vector<RecordedLaunch> take_launches();
// Names of the functions called since the last call of this one, in order.
[[nodiscard]] std::vector<std::string> take_calls();
// The first call that a real runtime would not have accepted; empty = none.
[[nodiscard]] std::string fault();

// The next call of a function returns an error: fail("hipModuleLaunchKernel", 719).
void fail(const char* function, int error);
// Whether all streams are being captured.
void set_captured(bool is_captured);
// A stream; freed handles are reused, ids are not.
[[nodiscard]] void* create_stream();
void destroy_stream(void* stream);
[[nodiscard]] int current_device();
// Allocations that are not freed.
[[nodiscard]] size_t num_allocations();

}  // namespace pagoda::hip_tests
