// The flags for pagoda::Options, shared by the commands that run attention.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pagoda/attention.hpp"

namespace CLI {
class App;
}

namespace pagoda::cli {

// --backend, --kernel and --num-sms.
struct BackendFlags {
  std::string backend = "cpu";
  std::string kernel;   // empty = the engine selects
  int32_t num_sms = 0;  // of an emulated back end; 0 = its default
};

void add_backend_options(CLI::App& command, BackendFlags& flags);
// Ends the command with a message that names the flag if the back end is unknown or can't run
// here, or if the kernel is unknown. Sets the number of multiprocessors of emulated back ends.
void apply_backend_flags(const BackendFlags& flags);

struct EngineFlags {
  BackendFlags target;
  std::string isa;
  int32_t threads = 0;  // 0 = the default executor
  bool is_batch_invariant = false;
  std::string schedule = "automatic";
  int32_t num_kv_splits = 0;
};

void add_engine_options(CLI::App& command, EngineFlags& flags);

// Ends the command with a message that names the flag if `text` is no schedule.
[[nodiscard]] Schedule parse_schedule(const std::string& flag, const std::string& text);

// Options for a call, and the executor that they point to.
class EngineSetup {
 public:
  // Ends the command with a message that names the flag if a value is invalid.
  explicit EngineSetup(const EngineFlags& flags);
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] int32_t threads() const { return options_.executor->workers(); }

 private:
  Options options_;
  std::unique_ptr<Executor> executor_;
};

// These end the command with a message that names the flag if the value is invalid.
void require_backend(const std::string& flag, const std::string& backend);
void require_available_backend(const std::string& flag, const std::string& backend);
void require_isa_level(const std::string& flag, const std::string& level,
                       const std::vector<std::string>& levels);
void use_isa_level(const std::string& flag, const std::string& level);

}  // namespace pagoda::cli
