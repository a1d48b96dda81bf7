// CMake defines the list of architectures, PAGODA_HELD_ARCHS: "90.100.103".
#include <string_view>

#include "backends/cuda/compiled_code.hpp"

namespace pagoda::cuda {
namespace {

constexpr int32_t kArchs[] = {90, 100, 103};

std::string list(std::span<const int32_t> archs, bool is_held) {
  std::string text;
  for (const int32_t arch : archs) {
    if (has_attention_code(arch) != is_held) continue;
    text += (text.empty() ? "sm_" : ", sm_") + std::to_string(arch) + "a";
  }
  return text;
}

}  // namespace

bool has_attention_code(int32_t arch) {
  int32_t held = 0;
  for (const char c : std::string_view(PAGODA_HELD_ARCHS ".")) {
    if (c != '.') {
      held = 10 * held + (c - '0');
    } else {
      if (held != 0 && held == arch) return true;
      held = 0;
    }
  }
  return false;
}

std::string held_code(std::span<const int32_t> archs) { return list(archs, true); }
std::string held_code() { return list(kArchs, true); }
std::string missing_code(std::span<const int32_t> archs) { return list(archs, false); }

}  // namespace pagoda::cuda
