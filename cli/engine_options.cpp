// Parses the engine's flags into Options.
#include "cli/engine_options.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/pinned_pool.hpp"
#include "cli/emulate.hpp"
#include "cli/terminal.hpp"
#include "core/kernel.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::cli {
namespace {

constexpr int32_t kMaxThreads = 4096;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void add_backend_options(CLI::App& command, BackendFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    command.add_option(name, value, help)->group("Engine");
  };
  add("--backend", flags.backend, "Back end (default cpu; 'pagoda info' lists them)");
  add("--kernel", flags.kernel,
      "Use this kernel, or those that begin so: sm80.* (default: the engine selects)");
  add("--num-sms", flags.num_sms,
      "Multiprocessors of an emulated back end (default: 3 or 4; an H200 has 132, a B200 148)");
}

void add_engine_options(CLI::App& command, EngineFlags& flags) {
  add_backend_options(command, flags.target);
  command
      .add_option("--isa", flags.isa,
                  "Use at most this ISA level: scalar, avx2, avx512, avx512_bf16, amx")
      ->group("Engine");
  command
      .add_option("--threads", flags.threads,
                  "Worker threads, each pinned to one CPU (default: the library's executor, "
                  "not pinned)")
      ->group("Engine");
  command
      .add_flag("--batch-invariant", flags.is_batch_invariant,
                "Make each sequence's result independent of the rest of the batch")
      ->group("Engine");
  command
      .add_option("--schedule", flags.schedule,
                  "How a GPU kernel assigns work tiles to CTAs: automatic (default), transient, "
                  "persistent, queue, stream-k")
      ->group("Engine");
  command
      .add_option("--kv-splits", flags.num_kv_splits,
                  "Split the keys of a work tile into so many parts: 1 = none (default: 0, the "
                  "kernel chooses)")
      ->group("Engine");
}

void require_backend(const std::string& flag, const std::string& backend) {
  std::vector<std::string> names;
  for (const BackendInfo& info : backends()) names.push_back(info.name);
  if (!contains(names, backend)) {
    fail(fmt::format("{}: no back end '{}' in this build; there are: {}", flag, backend,
                     fmt::join(names, ", ")));
  }
}

void require_available_backend(const std::string& flag, const std::string& backend) {
  require_backend(flag, backend);
  for (const BackendInfo& info : backends()) {
    if (info.name != backend || info.is_available) continue;
    fail(fmt::format("{}: back end '{}' can't run here: {}", flag, backend, info.description));
  }
}

void require_isa_level(const std::string& flag, const std::string& level,
                       const std::vector<std::string>& levels) {
  if (contains(levels, level)) return;
  fail(fmt::format("{}: '{}' is not a level of this machine; it has: {}", flag, level,
                   fmt::join(levels, ", ")));
}

void use_isa_level(const std::string& flag, const std::string& level) {
  require_isa_level(flag, level, cpu_isa_levels());
  const Status status = set_cpu_isa_level(level);
  if (!status) fail(fmt::format("{}: {}", flag, status.message()));
}

void apply_backend_flags(const BackendFlags& flags) {
  require_available_backend("--backend", flags.backend);
  if (!flags.kernel.empty()) {
    const std::vector<std::string> names = kernels(flags.backend);
    const bool is_known = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return core::is_wanted(flags.kernel, name);
    });
    if (!is_known) {
      fail(fmt::format("--kernel: no kernel '{}' in back end '{}'; there are: {}", flags.kernel,
                       flags.backend, fmt::join(names, ", ")));
    }
  }
  if (flags.num_sms == 0) return;
  if (!flags.backend.starts_with("emu:")) {
    fail(fmt::format("--num-sms: back end '{}' is not emulated", flags.backend));
  }
  const Status status = set_emulated_num_sms(flags.num_sms);
  if (!status) fail(fmt::format("--num-sms: {}", status.message()));
}

Schedule parse_schedule(const std::string& flag, const std::string& text) {
  std::vector<const char*> names;
  for (auto schedule = Schedule::kAutomatic; schedule <= Schedule::kStreamK;
       schedule = static_cast<Schedule>(static_cast<int>(schedule) + 1)) {
    names.push_back(name(schedule));
    if (text == names.back()) return schedule;
  }
  fail(fmt::format("{}: '{}' is none of {}", flag, text, fmt::join(names, ", ")));
}

EngineSetup::EngineSetup(const EngineFlags& flags) {
  require_range("--threads", flags.threads, 0, kMaxThreads);
  apply_backend_flags(flags.target);
  if (!flags.isa.empty()) use_isa_level("--isa", flags.isa);
  if (flags.threads > 0) {
    const auto cpus = static_cast<int32_t>(bench::allowed_cpus().size());
    if (flags.threads > cpus) {
      warn(fmt::format("--threads: {} workers share {} CPUs", flags.threads, cpus));
    }
    executor_ = std::make_unique<bench::PinnedPool>(flags.threads);
  }
  options_.backend = flags.target.backend;
  options_.kernel = flags.target.kernel;
  options_.is_batch_invariant = flags.is_batch_invariant;
  options_.schedule = parse_schedule("--schedule", flags.schedule);
  options_.num_kv_splits = flags.num_kv_splits;
  options_.executor = executor_ ? executor_.get() : &default_executor();
}

}  // namespace pagoda::cli
