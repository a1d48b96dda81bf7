// Prints the machine, the ISA levels, the back ends and the measured ceilings.
#include "cli/info.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/ceilings/ceilings.hpp"
#include "bench/machine.hpp"
#include "cli/emulate.hpp"
#include "cli/json_io.hpp"
#include "cli/terminal.hpp"
#include "pagoda/backend.hpp"
#include "testing/mirror/host_space.hpp"

namespace pagoda::cli {
namespace {

struct InfoOptions {
  bool is_json = false;
  bool skips_ceilings = false;
  int32_t threads = 0;
};

std::string list_levels() {
  std::string text;
  const std::string used = cpu_isa_level();
  for (const std::string& level : cpu_isa_levels()) {
    text += (text.empty() ? "" : "  ") +
            (level == used ? paint(level + " (in use)", Style::kGreen) : level);
  }
  return text;
}

void print_machine(const bench::Machine& machine) {
  fmt::print("{}\n", paint("machine", Style::kBold));
  fmt::print("  cpu         {} ({})\n", machine.cpu_model, machine.architecture);
  fmt::print("  cores       {} physical, {} logical, {} usable by this process\n",
             machine.physical_cores, machine.logical_cpus, machine.allowed_cpus);
  std::string caches;
  for (const bench::Cache& cache : machine.caches) {
    caches += fmt::format(
        "{}L{}{} {}{}", caches.empty() ? "" : ", ", cache.level, cache.type == "Data" ? "d" : "",
        format_bytes(static_cast<double>(cache.bytes)),
        cache.shared_cpus > 1 ? fmt::format(" shared by {}", cache.shared_cpus) : std::string());
  }
  fmt::print("  caches      {}\n", caches.empty() ? "unknown" : caches);
  fmt::print("  memory      {}, {} free\n", format_bytes(static_cast<double>(machine.memory_bytes)),
             format_bytes(static_cast<double>(machine.free_memory_bytes)));
  fmt::print("  system      {}\n", machine.operating_system);
  fmt::print("  isa levels  {}\n", list_levels());
}

void print_device(const BackendInfo& backend) {
  if (!backend.is_available || backend.memory == DeviceType::kCpu) return;
  const core::SpaceFacts facts = mirror::space_of(backend.name).facts();
  fmt::print("  {:<11}   {} multiprocessors, {}, L2 {}, driver for {}\n", "",
             facts.num_multiprocessors, format_bytes(static_cast<double>(facts.memory_bytes)),
             format_bytes(static_cast<double>(facts.l2_bytes)), facts.driver);
}

void print_backends() {
  fmt::print("\n{}\n", paint("back ends", Style::kBold));
  for (const BackendInfo& backend : backends()) {
    fmt::print("  {:<11} {}  {}\n", backend.name,
               backend.is_available ? paint("available", Style::kGreen)
                                    : paint("unavailable", Style::kYellow),
               backend.description);
    print_device(backend);
    for (const std::string& kernel : kernels(backend.name))
      fmt::print("  {:<11}   {}\n", "", kernel);
  }
  if (!has_emulator()) {
    fmt::print(
        "  {:<11} {}  GPU kernels on the emulator; configure with PAGODA_BUILD_EMULATOR=ON\n",
        "emu:*", paint("not in this build", Style::kYellow));
  }
}

void print_ceilings(const bench::Ceilings& ceilings) {
  fmt::print("\n{} (best of 5, pinned; clock about {:.2f} GHz)\n",
             paint("measured ceilings", Style::kBold), ceilings.clock_hz * 1e-9);
  using Align = Table::Align;
  Table table({{"  what"},
               {"isa"},
               {"1 thread", Align::kRight},
               {fmt::format("{} threads", ceilings.threads), Align::kRight},
               {""}});
  for (const bench::ComputeCeiling& c : ceilings.compute) {
    const bool is_exp = c.dtype == "exp";
    table.add({"  " + c.dtype + (is_exp ? "" : " multiply-add"), c.isa,
               fmt::format("{:.1f}", c.flops.one_thread * 1e-9),
               fmt::format("{:.1f}", c.flops.all_threads * 1e-9),
               (is_exp ? "G/s      " : "GFLOP/s  ") + c.instruction});
  }
  for (const bench::MemoryCeiling& m : ceilings.memory) {
    table.add({"  " + m.level + " read", "", fmt::format("{:.1f}", m.bytes.one_thread * 1e-9),
               fmt::format("{:.1f}", m.bytes.all_threads * 1e-9),
               fmt::format("GB/s     {} a thread",
                           format_bytes(static_cast<double>(m.working_set_bytes)))});
  }
  table.print();
}

void run_info(const InfoOptions& options) {
  require_range("--threads", options.threads, 0);
  if (const Status status = check_cpu_isa(); !status) fail(status.message());
  const bench::Machine machine = bench::describe_machine();
  const int32_t threads = options.threads > 0 ? options.threads : machine.allowed_cpus;
  if (options.is_json) {
    nlohmann::ordered_json json;
    json["version"] = PAGODA_VERSION;
    json["machine"] = to_json(machine);
    json["isa_levels"] = cpu_isa_levels();
    json["isa_in_use"] = cpu_isa_level();
    json["backends"] = backends_to_json();
    json["has_emulator"] = has_emulator();
    if (!options.skips_ceilings) json["ceilings"] = to_json(bench::measure_ceilings(threads));
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("pagoda {}\n\n", PAGODA_VERSION);
  print_machine(machine);
  print_backends();
  if (!options.skips_ceilings) print_ceilings(bench::measure_ceilings(threads));
}

}  // namespace

void add_info_command(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command =
      app.add_subcommand("info", "The machine, the ISA levels, the back ends, measured ceilings");
  command->add_flag("--json", options->is_json, "Print one JSON object");
  command->add_flag("--no-ceilings", options->skips_ceilings,
                    "Skip the measurement, which takes about a second");
  command->add_option(
      "--threads", options->threads,
      "Threads of the parallel measurement (default: every CPU that this process may use)");
  command->callback([options] { run_info(*options); });
}

}  // namespace pagoda::cli
