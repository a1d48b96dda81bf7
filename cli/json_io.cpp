// JSON of the machine and its ceilings, and JSON files.
#include "cli/json_io.hpp"

#include <chrono>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fstream>

#include "cli/terminal.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::cli {
using Json = nlohmann::ordered_json;

Json to_json(const bench::Machine& machine) {
  Json caches = Json::array();
  for (const bench::Cache& cache : machine.caches) {
    caches.push_back({{"level", cache.level},
                      {"type", cache.type},
                      {"bytes", cache.bytes},
                      {"shared_cpus", cache.shared_cpus}});
  }
  return {{"cpu_model", machine.cpu_model},
          {"architecture", machine.architecture},
          {"operating_system", machine.operating_system},
          {"physical_cores", machine.physical_cores},
          {"logical_cpus", machine.logical_cpus},
          {"allowed_cpus", machine.allowed_cpus},
          {"nominal_mhz", machine.nominal_mhz},
          {"memory_bytes", machine.memory_bytes},
          {"caches", caches}};
}

Json to_json(const bench::Ceilings& ceilings) {
  Json compute = Json::array();
  for (const bench::ComputeCeiling& c : ceilings.compute) {
    compute.push_back({{"dtype", c.dtype},
                       {"isa", c.isa},
                       {"instruction", c.instruction},
                       {"flops_one_thread", c.flops.one_thread},
                       {"flops_all_threads", c.flops.all_threads}});
  }
  Json memory = Json::array();
  for (const bench::MemoryCeiling& m : ceilings.memory) {
    memory.push_back({{"level", m.level},
                      {"working_set_bytes_per_thread", m.working_set_bytes},
                      {"bytes_per_second_one_thread", m.bytes.one_thread},
                      {"bytes_per_second_all_threads", m.bytes.all_threads}});
  }
  return {{"threads", ceilings.threads},
          {"clock_hz", ceilings.clock_hz},
          {"compute", compute},
          {"memory", memory}};
}

Json backends_to_json() {
  Json list = Json::array();
  for (const BackendInfo& backend : backends()) {
    list.push_back({{"name", backend.name},
                    {"is_available", backend.is_available},
                    {"description", backend.description},
                    {"memory", name(backend.memory)},
                    {"kernels", kernels(backend.name)}});
  }
  return list;
}

std::string utc_timestamp() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

nlohmann::json read_json_file(const std::string& flag, const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(fmt::format("{}: cannot open '{}'", flag, path));
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    fail(fmt::format("{}: '{}' is a folder", flag, path));
  }
  try {
    return nlohmann::json::parse(file);
  } catch (const std::ios_base::failure&) {  // of the buffer: the parser does not use the stream
    fail(fmt::format("{}: cannot read '{}'", flag, path));
  } catch (const nlohmann::json::exception& error) {
    fail(fmt::format("{}: '{}' is not JSON: {}", flag, path, error.what()));
  }
}

void write_json_file(const std::string& flag, const std::string& path, const Json& json) {
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  file.close();
  if (!file) fail(fmt::format("{}: cannot write '{}'", flag, path), kExitFailed);
}

}  // namespace pagoda::cli
