// Files are written beside their place and renamed into it.
#include "runtime_functor/cache.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <unistd.h>

#include "runtime_functor/digest.hpp"

namespace pagoda::runtime_functor {
namespace {

namespace fs = std::filesystem;

struct Trailer {
  char magic[16] = {'p', 'a', 'g', 'o', 'd', 'a', ' ', 'f', 'u', 'n', 'c', 't', 'o', 'r', ' ', '1'};
  uint64_t cubin_bytes = 0;
  std::array<uint64_t, 2> digest{};
};

// Of the key too: a file under another's name is damaged.
Trailer trailer_of(const std::string& key, std::string_view cubin) {
  Trailer trailer;
  trailer.cubin_bytes = cubin.size();
  trailer.digest = Digest().add(key).add(cubin).value();
  return trailer;
}

std::string default_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    return std::string(cache) + "/pagoda";
  }
  const char* home = std::getenv("HOME");
  return home == nullptr || home[0] != '/' ? "" : std::string(home) + "/.cache/pagoda";
}

std::string path_of(const std::string& folder, const std::string& key) {
  return folder + "/" + key + ".cubin";
}

}  // namespace

Cache::Cache(const std::optional<std::string>& folder)
    : folder_(folder.has_value() ? *folder : default_folder()) {}

std::optional<std::string> Cache::find(const std::string& key) const {
  if (folder_.empty()) return {};
  std::ifstream file(path_of(folder_, key), std::ios::binary);
  if (!file) return {};
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (content.size() < sizeof(Trailer)) return {};
  const size_t bytes = content.size() - sizeof(Trailer);
  const Trailer expected = trailer_of(key, {content.data(), bytes});
  if (std::memcmp(content.data() + bytes, &expected, sizeof expected) != 0) return {};
  content.resize(bytes);
  return content;
}

std::string Cache::store(const std::string& key, const std::string& cubin) const {
  if (folder_.empty()) return {};
  std::error_code error;
  fs::create_directories(folder_, error);
  const std::string path = path_of(folder_, key);
  const std::string written = path + "." + std::to_string(getpid());
  const Trailer trailer = trailer_of(key, cubin);
  std::ofstream file(written, std::ios::binary);
  file << cubin;
  file.write(reinterpret_cast<const char*>(&trailer), sizeof trailer);
  file.close();
  if (file) fs::rename(written, path, error);
  if (file && !error) return {};
  fs::remove(written, error);
  return "the compiled kernel was not written to " + path + "\n";
}

}  // namespace pagoda::runtime_functor
