// The code objects of this build: ELF files for one gfx target each, in the library's read-only
// data. The build generates their table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pagoda::arch {
inline namespace hip {

struct CodeObject {
  std::string_view name;  // "append_kv"; of attention the instance: "gfx942.bf16.d128"
  int32_t arch = 0;       // 942
  const unsigned char* begin = nullptr;
  const unsigned char* end = nullptr;

  [[nodiscard]] std::span<const unsigned char> image() const { return {begin, end}; }
};

// Defined by the generated source.
[[nodiscard]] std::span<const CodeObject> code_objects();

// nullptr: this build has no such code.
[[nodiscard]] const CodeObject* find_code_object(std::string_view name, int32_t arch);

}  // namespace hip
}  // namespace pagoda::arch
