// Compiled kernels in a folder, a file each. A file is a cubin, which NVIDIA's tools read, with a
// trailer by which a damaged one is found.
#pragma once

#include <optional>
#include <string>

namespace pagoda::runtime_functor {

class Cache {
 public:
  // `folder`: absent: the default (pagoda/runtime_functor.hpp); "": keeps nothing.
  explicit Cache(const std::optional<std::string>& folder);

  // The cubin of this key; none where there is no file, or a damaged one.
  [[nodiscard]] std::optional<std::string> find(const std::string& key) const;
  // Why it could not be written; empty = it was, or there is no cache. Another process that writes
  // the same key at the same time does no harm: files appear whole.
  [[nodiscard]] std::string store(const std::string& key, const std::string& cubin) const;

 private:
  std::string folder_;
};

}  // namespace pagoda::runtime_functor
