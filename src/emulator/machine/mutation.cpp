// Sites by source line, role and name.
#include "emulator/machine/mutation.hpp"

#include <functional>
#include <string_view>
#include <utility>

namespace pagoda::emulator {

std::string_view name(Mutation kind) {
  switch (kind) {
    case Mutation::kNone: break;
    case Mutation::kDrop: return "left out";
    case Mutation::kParity: return "other parity";
    case Mutation::kMore: return "one more";
    case Mutation::kFewer: return "one fewer";
    case Mutation::kNarrow: return "narrower scope";
    case Mutation::kOtherBarrier: return "other barrier";
    case Mutation::kShared: return "shared memory";
    case Mutation::kValue: return "wrong value";
  }
  return "none";
}

size_t MutationSites::HashOfCall::operator()(const Call& call) const {
  const std::hash<const void*> hash;
  return (hash(call.file) * 31 + hash(call.primitive)) * 31 + hash(call.role) +
         (static_cast<size_t>(call.line) << 32 | call.column);
}

int MutationSites::site_of(std::string key, const char* primitive, const Where& where,
                           const char* role) {
  const std::string_view path = where.file_name();
  const auto [found, is_new] = index_.emplace(std::move(key), static_cast<int>(sites_.size()));
  if (is_new) {
    sites_.push_back({.primitive = primitive,
                      .file = std::string(path.substr(path.find_last_of('/') + 1)),
                      .line = where.line(),
                      .role = role,
                      .kinds = {}});
  }
  return found->second;
}

Mutation MutationSites::note(int site, Mutations kinds) {
  MutationSite& noted = sites_[static_cast<size_t>(site)];
  ++noted.executions;
  noted.kinds = noted.kinds | kinds;
  return site == site_ && kinds.has(kind_) ? kind_ : Mutation::kNone;
}

Mutation MutationSites::at(const char* primitive, const Where& where, const char* role,
                           Mutations kinds) {
  if (kinds.is_empty()) return Mutation::kNone;
  const Call call{primitive, where.file_name(), role, where.line(), where.column()};
  const auto [known, is_new] = known_calls_.emplace(call, 0);
  if (is_new) {
    known->second = site_of(std::string(primitive) + '|' + where.file_name() + '|' +
                                std::to_string(where.line()) + ':' +
                                std::to_string(where.column()) + '|' + role,
                            primitive, where, role);
  }
  return note(known->second, kinds);
}

Mutation MutationSites::at_name(const char* fault, const Where& where, Mutations kinds) {
  const Call call{fault, nullptr, nullptr, 0, 0};
  const auto [known, is_new] = known_calls_.emplace(call, 0);
  if (is_new) known->second = site_of(fault, fault, where, "");
  return note(known->second, kinds);
}

}  // namespace pagoda::emulator
