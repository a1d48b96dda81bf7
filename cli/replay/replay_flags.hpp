// The flags of `pagoda replay`, and the configuration that they give.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/engine_options.hpp"
#include "cli/replay/session.hpp"

namespace CLI {
class App;
}

namespace pagoda::replay {

struct ReplayFlags {
  std::string trace;
  int64_t requests = 0;
  bool is_strict = false;

  std::string model = "llama-3.2-1b";
  int32_t tp = 1;
  int32_t layers = 0;
  // Override the model's; 0 or absent = keep.
  int32_t q_heads = 0, kv_heads = 0, head_dim = 0, model_layers = 0;
  std::optional<int32_t> window;
  std::optional<float> softcap;
  float softmax_scale = 0;
  bool has_sinks = false;
  std::string dtype = "bf16", kv_dtype;

  double cache_gib = 1;
  int64_t cache_tokens = 0;
  SchedulerLimits limits;

  std::string clock;  // empty: virtual on the host, measured on a GPU
  double clock_gflops = 250, clock_gbs = 25;
  double speedup = 1;
  double check_rate = 1;
  uint64_t seed = 1;
  cli::EngineFlags engine;

  bool is_json = false;
  bool skips_ceilings = false;
  std::string report;
};

void add_replay_flags(CLI::App& command, ReplayFlags& flags);

// Fails with a message that names the flag.
[[nodiscard]] Result<SessionConfig> make_session_config(const ReplayFlags& flags,
                                                        const Options& options);

}  // namespace pagoda::replay
