// Lists of architectures, as text.
#include <algorithm>

#include "backends/cuda/compiled_code.hpp"

namespace pagoda::cuda {
namespace {

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
  return std::find(kHeldArchs.begin(), kHeldArchs.end(), arch) != kHeldArchs.end();
}

std::string held_code(std::span<const int32_t> archs) { return list(archs, true); }
std::string held_code() { return list({kHeldArchs.begin(), kHeldArchs.end()}, true); }
std::string missing_code(std::span<const int32_t> archs) { return list(archs, false); }

}  // namespace pagoda::cuda
