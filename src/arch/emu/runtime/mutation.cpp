// Counting the synchronisation that a kernel executes.
#include "arch/emu/runtime/mutation.hpp"

#include <functional>
#include <string_view>
#include <utility>

namespace pagoda::emulator {

size_t MutationSites::HashOfCall::operator()(const Call& call) const {
  const std::hash<const void*> hash;
  return (hash(call.file) * 31 + hash(call.primitive)) * 31 + hash(call.role) +
         (static_cast<size_t>(call.line) << 32 | call.column);
}

int MutationSites::site_of(const char* primitive, const Where& where, const char* role) {
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
  return found->second;
}

bool MutationSites::is_dropped(const char* primitive, const Where& where, const char* role) {
  const Call call{primitive, where.file_name(), role, where.line(), where.column()};
  const auto [known, is_new] = known_calls_.emplace(call, 0);
  if (is_new) known->second = site_of(primitive, where, role);
  ++sites_[static_cast<size_t>(known->second)].executions;
  return known->second == dropped_;
}

}  // namespace pagoda::emulator
