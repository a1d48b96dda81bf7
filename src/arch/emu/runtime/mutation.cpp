// Counting the synchronisation that a kernel executes.
#include "arch/emu/runtime/mutation.hpp"

#include <string_view>

namespace pagoda::emulator {

bool MutationSites::is_dropped(const char* primitive, const Where& where, const char* role) {
  const std::string_view path = where.file_name();
  std::string key = std::string(primitive) + '|' + std::string(path) + '|' +
                    std::to_string(where.line()) + ':' + std::to_string(where.column()) + '|' +
                    role;
  const auto [found, is_new] = index_.emplace(std::move(key), static_cast<int>(sites_.size()));
  if (is_new) {
    sites_.push_back({.primitive = primitive,
                      .file = std::string(path.substr(path.find_last_of('/') + 1)),
                      .line = where.line(),
                      .role = role});
  }
  ++sites_[static_cast<size_t>(found->second)].executions;
  return found->second == dropped_;
}

}  // namespace pagoda::emulator
