// Flags to configuration. Every limit that a flag has is checked here.
#include "cli/replay/replay_flags.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include <CLI/CLI.hpp>

#include "engine/registry.hpp"

namespace pagoda::replay {

namespace {

Result<DType> parse_dtype(const char* flag, const std::string& text, bool allows_fp8) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (text == name(dtype)) return dtype;
  }
  if (allows_fp8 && (text == "fp8" || text == name(DType::kF8E4M3))) return DType::kF8E4M3;
  return Status::invalid(flag, "'" + text + "'",
                         allows_fp8 ? "known: fp32, fp16, bf16, fp8" : "known: fp32, fp16, bf16");
}

Result<ModelShape> make_model(const ReplayFlags& flags) {
  Result<ModelShape> model = find_model(flags.model);
  if (!model) return model;
  const auto replace = [&](int32_t flag, int32_t& field) {
    if (flag == 0) return;
    field = flag;
    model->name = flags.model + " with changes";
  };
  replace(flags.q_heads, model->num_q_heads);
  replace(flags.kv_heads, model->num_kv_heads);
  replace(flags.head_dim, model->head_dim);
  replace(flags.model_layers, model->num_layers);
  if (flags.window) model->window = *flags.window;
  if (flags.softcap) model->softcap = *flags.softcap;
  if (flags.softmax_scale != 0) model->softmax_scale = flags.softmax_scale;
  model->has_sinks = model->has_sinks || flags.has_sinks;
  if (Status s = validate(*model); !s) return s;
  return tensor_parallel_share(*model, flags.tp);
}

Status require(bool is_right, const char* flag, double value, const char* limit) {
  return is_right ? Status{} : Status::invalid(flag, fmt::format("{:g}", value), limit);
}

Status check_numbers(const ReplayFlags& flags) {
  const auto positive = [](const char* flag, double value) {
    return require(std::isfinite(value) && value > 0, flag, value, "must be above 0");
  };
  const auto count = [](const char* flag, int64_t value, int64_t low, int64_t high) {
    return value >= low && value <= high
               ? Status{}
               : Status::invalid(flag, std::to_string(value),
                                 fmt::format("allowed: {}..{}", low, high));
  };
  constexpr int64_t kMany = std::numeric_limits<int32_t>::max();
  const std::array checks{
      count("--requests", flags.requests, 0, kMany),
      count("--budget", flags.limits.token_budget, 1, 1 << 20),
      count("--max-running", flags.limits.max_running, 1, 1 << 20),
      count("--page-size", flags.limits.page_size, 1, 1 << 16),
      count("--cache-tokens", flags.cache_tokens, 0, int64_t{1} << 40),
      positive("--cache-gib", flags.cache_gib),
      positive("--clock-gflops", flags.clock_gflops),
      positive("--clock-gbs", flags.clock_gbs),
      positive("--speedup", flags.speedup),
      require(flags.check_rate >= 0 && flags.check_rate <= 1000, "--check-rate", flags.check_rate,
              "allowed: 0..1000"),
  };
  for (const Status& status : checks) {
    if (!status) return status;
  }
  return {};
}

Result<int64_t> count_pages(const ReplayFlags& flags, const StackConfig& stack) {
  const auto page_bytes = static_cast<double>(stack.token_bytes() * stack.page_size);
  const double pages = flags.cache_tokens > 0 ? std::ceil(static_cast<double>(flags.cache_tokens) /
                                                          static_cast<double>(stack.page_size))
                                              : std::floor(flags.cache_gib * 0x1p30 / page_bytes);
  if (pages < 1) {
    return Status::invalid(
        "--cache-gib", fmt::format("{:g}", flags.cache_gib),
        fmt::format("one page of all layers needs {:.3g} GiB", page_bytes * 0x1p-30));
  }
  if (pages > std::numeric_limits<int32_t>::max()) {
    return Status::invalid(flags.cache_tokens > 0 ? "--cache-tokens" : "--cache-gib",
                           fmt::format("{:.0f} pages", pages), "the limit is 2147483647");
  }
  return static_cast<int64_t>(pages);
}

// The modelled device of the virtual clock is a host: a GPU's steps are measured.
std::string default_clock(const std::string& backend) {
  const core::Backend* found = engine::find_backend(backend);
  const bool is_gpu = found != nullptr && found->memory != DeviceType::kCpu;
  return is_gpu ? "measured" : "virtual";
}

Status set_clock(const ReplayFlags& flags, SessionConfig& config) {
  const std::string clock =
      flags.clock.empty() ? default_clock(config.stack.options.backend) : flags.clock;
  config.device.flops_per_s = flags.clock_gflops * 1e9;
  config.device.bytes_per_s = flags.clock_gbs * 1e9;
  if (clock == "virtual") {
    config.clock = ClockKind::kVirtual;
  } else if (clock == "measured") {
    config.clock = ClockKind::kMeasured;
  } else if (clock == "wall") {
    config.clock = ClockKind::kWall;
  } else {
    return Status::invalid("--clock", "'" + clock + "'", "known: virtual, measured, wall");
  }
  return {};
}

}  // namespace

Result<SessionConfig> make_session_config(const ReplayFlags& flags, const Options& options) {
  if (Status s = check_numbers(flags); !s) return s;
  const Result<ModelShape> model = make_model(flags);
  if (!model) return model.status();
  const Result<DType> dtype = parse_dtype("--dtype", flags.dtype, false);
  if (!dtype) return dtype.status();
  const Result<DType> kv_dtype =
      flags.kv_dtype.empty() ? dtype : parse_dtype("--kv-dtype", flags.kv_dtype, true);
  if (!kv_dtype) return kv_dtype.status();
  if (flags.layers < 0 || flags.layers > model->num_layers) {
    return Status::invalid("--layers", std::to_string(flags.layers),
                           fmt::format("{} has {}", model->name, model->num_layers));
  }
  SessionConfig config;
  config.stack = {.model = *model,
                  .num_layers = flags.layers == 0 ? model->num_layers : flags.layers,
                  .dtype = *dtype,
                  .kv_dtype = *kv_dtype,
                  .page_size = flags.limits.page_size,
                  .num_pages = 0,
                  .options = options};
  const Result<int64_t> pages = count_pages(flags, config.stack);
  if (!pages) return pages.status();
  config.stack.num_pages = *pages;
  config.limits = flags.limits;
  config.speedup = flags.speedup;
  config.check_rate = flags.check_rate;
  config.seed = flags.seed;
  if (Status s = set_clock(flags, config); !s) return s;
  return config;
}

}  // namespace pagoda::replay
