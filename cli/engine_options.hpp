// The flags of pagoda::Options, shared by every command that runs attention.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pagoda/attention.hpp"

namespace CLI {
class App;
}

namespace pagoda::cli {

struct EngineFlags {
  std::string backend = "cpu";
  std::string kernel;
  std::string isa;
  int32_t threads = 0;  // 0 = the default executor
  int32_t num_sms = 0;  // of an emulated back end; 0 = its default
  bool is_batch_invariant = false;
};

void add_engine_options(CLI::App& command, EngineFlags& flags);

// Options for a call, and the executor that they point to.
class EngineSetup {
 public:
  // Ends the command with a message that names the flag where a name is unknown.
  explicit EngineSetup(const EngineFlags& flags);
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] int32_t threads() const { return options_.executor->workers(); }

 private:
  Options options_;
  std::unique_ptr<Executor> executor_;
};

// Ends the command where the name is not a registered back end, one of its kernels, or an ISA level of this
// machine.
void require_backend(const std::string& flag, const std::string& backend);
void require_kernel(const std::string& flag, const std::string& backend, const std::string& kernel);
void use_isa_level(const std::string& flag, const std::string& level);
// Gives emulated back ends `num_sms` multiprocessors; 0: nothing. Ends the command where `backend` is none of
// them, or the number is out of range.
void use_num_sms(const std::string& flag, const std::string& backend, int32_t num_sms);
// Likewise where the back end can't run here.
void require_available_backend(const std::string& flag, const std::string& backend);

}  // namespace pagoda::cli
