// Which code of this build runs on which GPU.
//
// CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility", "Architecture-Specific
// Features": code for 8.6 runs on 8.9, not on 9.0; PTX for 8.0 runs on every later GPU; code with
// the suffix a runs on that GPU alone.
#include "backends/cuda/compiled_code.hpp"
#include "kernels/families.hpp"

namespace pagoda::cuda {
namespace {

constexpr int32_t kArchs[] = {80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

constexpr int32_t kTegra = 87;  // runs its own code and PTX only

constexpr bool is_specific(int32_t arch) { return arch == 90 || arch == 100 || arch == 103; }

std::string spelled(int32_t arch) {
  return "sm_" + std::to_string(arch) + (is_specific(arch) ? "a" : "");
}

template <class... Families>
bool any_has_code(kernels::FamilyList<Families...> /*families*/, int32_t arch) {
  return (has_code(Families::kArchs, arch) || ...);
}

}  // namespace

bool has_code(const kernels::Archs& archs, int32_t arch, std::string_view held) {
  if (!archs.run_on(arch)) return false;
  for (const int32_t compiled : archs.compiled) {
    if (!is_listed(held, compiled)) continue;
    if (compiled == arch) return true;
    const bool is_binary_compatible =
        !is_specific(compiled) && compiled / 10 == arch / 10 && compiled < arch && arch != kTegra;
    if (is_binary_compatible) return true;
    if (archs.has_ptx && compiled == archs.compiled.front() && compiled < arch) return true;
  }
  return false;
}

bool has_code(const kernels::Archs& archs, int32_t arch) {
  return has_code(archs, arch, PAGODA_HELD_ARCHS);
}

bool has_attention_code(int32_t arch) { return any_has_code(kernels::Families(), arch); }

std::string held_code() {
  std::string text;
  for (const int32_t arch : kArchs) {
    if (is_held(arch)) text += (text.empty() ? "" : ", ") + spelled(arch);
  }
  return text;
}

std::string missing_code(const kernels::Archs& archs) {
  if (archs.has_ptx) return is_held(archs.compiled.front()) ? "" : spelled(archs.compiled.front());
  std::string text;
  for (const int32_t arch : archs.compiled) {
    if (!is_held(arch)) text += (text.empty() ? "" : ", ") + spelled(arch);
  }
  return text;
}

}  // namespace pagoda::cuda
