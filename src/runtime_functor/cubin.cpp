// Every offset of the file is checked before it is used.
#include "runtime_functor/cubin.hpp"

#include <cstring>
#include <elf.h>

namespace pagoda::runtime_functor {
namespace {

// Reads past the end give nothing.
class File {
 public:
  explicit File(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  [[nodiscard]] bool read(uint64_t at, T& value) const {
    if (at > bytes_.size() || sizeof(T) > bytes_.size() - at) return false;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return true;
  }
  [[nodiscard]] bool is_text_at(uint64_t at, std::string_view text) const {
    return at < bytes_.size() && bytes_.size() - at > text.size() &&
           bytes_.substr(at, text.size()) == text && bytes_[at + text.size()] == '\0';
  }

 private:
  std::string_view bytes_;
};

}  // namespace

std::optional<KernelFacts> read_facts(std::string_view cubin) {
  const File file(cubin);
  Elf64_Ehdr header;
  if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    return {};
  }
  const auto read_section = [&](uint64_t index, Elf64_Shdr& section) {
    return file.read(header.e_shoff + index * sizeof(Elf64_Shdr), section);
  };
  bool has_kernel = false;
  std::optional<KernelFacts> facts;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr symbols, names;
    if (!read_section(i, symbols)) return {};
    if (symbols.sh_type != SHT_SYMTAB) continue;
    if (!read_section(symbols.sh_link, names)) return {};
    Elf64_Sym symbol;
    for (uint64_t at = 0; at < symbols.sh_size; at += sizeof symbol) {
      if (!file.read(symbols.sh_offset + at, symbol)) return {};
      const uint64_t name = names.sh_offset + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) {
        has_kernel = has_kernel || file.is_text_at(name, kKernelName);
      } else if (symbol.st_size == sizeof(KernelFacts) && file.is_text_at(name, kFactsName)) {
        Elf64_Shdr data;
        KernelFacts found;
        if (!read_section(symbol.st_shndx, data) ||
            !file.read(data.sh_offset + symbol.st_value, found)) {
          return {};
        }
        facts = found;
      }
    }
  }
  return has_kernel ? facts : std::nullopt;
}

}  // namespace pagoda::runtime_functor
