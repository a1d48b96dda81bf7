// Reads /proc and /sys. Missing entries stay unknown; nothing here fails.
#include "bench/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/utsname.h>
#include <unistd.h>
#include <utility>

#include "bench/pinned_pool.hpp"

namespace pagoda::bench {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "2048K" or "105M".
int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (*end == 'K') return value << 10;
  if (*end == 'M') return value << 20;
  if (*end == 'G') return value << 30;
  return value;
}

// "0-1,4" -> 3.
int32_t count_cpu_list(const std::string& list) {
  int32_t count = 0;
  const char* cursor = list.c_str();
  while (*cursor >= '0' && *cursor <= '9') {
    char* end = nullptr;
    const long first = std::strtol(cursor, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    count += static_cast<int32_t>(last - first + 1);
    cursor = *end == ',' ? end + 1 : end;
  }
  return std::max(count, 1);
}

std::vector<Cache> read_caches() {
  std::vector<Cache> caches;
  for (int index = 0; index < 8; ++index) {
    const std::filesystem::path folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    if (!std::filesystem::exists(folder)) break;
    Cache cache{.level = std::atoi(first_line(folder / "level").c_str()),
                .type = first_line(folder / "type"),
                .bytes = parse_size(first_line(folder / "size")),
                .shared_cpus = count_cpu_list(first_line(folder / "shared_cpu_list"))};
    if (cache.type != "Instruction") caches.push_back(std::move(cache));
  }
  return caches;
}

std::string value_of(const std::string& line) {
  const size_t colon = line.find(':');
  if (colon == std::string::npos) return {};
  const size_t begin = line.find_first_not_of(" \t", colon + 1);
  return begin == std::string::npos ? std::string() : line.substr(begin);
}

void read_cpuinfo(Machine& machine) {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::pair<std::string, std::string>> cores;
  std::string package = "0";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && machine.cpu_model.empty()) {
      machine.cpu_model = value_of(line);
    } else if (line.starts_with("cpu MHz") && machine.nominal_mhz == 0) {
      machine.nominal_mhz = std::atof(value_of(line).c_str());
    } else if (line.starts_with("physical id")) {
      package = value_of(line);
    } else if (line.starts_with("core id")) {
      cores.emplace(package, value_of(line));
    }
  }
  machine.physical_cores = static_cast<int32_t>(cores.size());
  if (machine.cpu_model.empty()) machine.cpu_model = "unknown";
}

void read_meminfo(Machine& machine) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    const int64_t kib = std::atoll(value_of(line).c_str());
    if (line.starts_with("MemTotal:")) machine.memory_bytes = kib << 10;
    if (line.starts_with("MemAvailable:")) machine.free_memory_bytes = kib << 10;
  }
}

}  // namespace

int64_t Machine::cache_bytes(int32_t level) const {
  for (const Cache& cache : caches) {
    if (cache.level == level) return cache.bytes;
  }
  return 0;
}

int64_t Machine::largest_cache_bytes() const {
  int64_t largest = 0;
  for (const Cache& cache : caches) largest = std::max(largest, cache.bytes);
  return largest;
}

Machine describe_machine() {
  Machine machine;
  read_cpuinfo(machine);
  read_meminfo(machine);
  machine.caches = read_caches();
  machine.logical_cpus = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.allowed_cpus = static_cast<int32_t>(allowed_cpus().size());
  utsname system{};
  if (uname(&system) == 0) {
    machine.architecture = system.machine;
    machine.operating_system = std::string(system.sysname) + " " + system.release;
  }
  return machine;
}

}  // namespace pagoda::bench
