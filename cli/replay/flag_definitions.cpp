// The flags' names and help texts.
#include <CLI/CLI.hpp>

#include "cli/replay/replay_flags.hpp"

namespace pagoda::replay {

namespace {

std::string model_names() {
  std::string names;
  for (const ModelShape& model : known_models()) {
    names += (names.empty() ? "" : ", ") + model.name;
  }
  return names;
}

void add_model_flags(CLI::App& command, ReplayFlags& f) {
  const auto add = [&](const char* name, auto& value, const std::string& help) {
    command.add_option(name, value, help)->group("Model");
  };
  add("--model", f.model, "One of " + model_names() + " (default llama-3.2-1b)");
  add("--tp", f.tp, "Run one of N tensor-parallel shares of the heads (default 1)");
  add("--layers", f.layers, "Run only the first N layers (default: all)");
  add("--q-heads", f.q_heads, "Replace the model's number of query heads");
  add("--kv-heads", f.kv_heads, "Replace its number of key heads");
  add("--head-dim", f.head_dim, "Replace its head dimension");
  add("--model-layers", f.model_layers, "Replace its number of layers");
  add("--window", f.window, "Sliding window of the even layers, 0 = none");
  add("--softcap", f.softcap, "Soft cap of the scores, 0 = none");
  add("--softmax-scale", f.softmax_scale, "Factor of the scores (default 1 / sqrt(head dim))");
  command.add_flag("--sinks", f.has_sinks, "Give every query head a sink")->group("Model");
  add("--dtype", f.dtype, "Queries, new keys and values, outputs: bf16 (default), fp16, fp32");
  add("--kv-dtype", f.kv_dtype, "The cache: as --dtype (default), or fp8");
}

void add_serving_flags(CLI::App& command, ReplayFlags& f) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    command.add_option(name, value, help)->group("Serving");
  };
  add("--cache-gib", f.cache_gib, "Size of the cache, all layers that are run (default 1)");
  add("--cache-tokens", f.cache_tokens, "The same in tokens; replaces --cache-gib");
  add("--page-size", f.limits.page_size, "Tokens in a page of the cache (default 64)");
  add("--budget", f.limits.token_budget, "Tokens that a step computes at most (default 2048)");
  add("--max-running", f.limits.max_running, "Requests served at the same time (default 64)");
  add("--clock", f.clock,
      "virtual: a modelled device, the same run every time (default on the host); measured: the "
      "attention time here (default on a GPU); wall: real time, arrivals are waited for");
  add("--clock-gflops", f.clock_gflops, "The modelled device's GFLOP/s (default 250)");
  add("--clock-gbs", f.clock_gbs, "The modelled device's GB/s (default 25)");
  add("--speedup", f.speedup, "Let requests arrive this many times as fast (default 1)");
}

}  // namespace

void add_replay_flags(CLI::App& command, ReplayFlags& f) {
  command.add_option("trace", f.trace, "Trace: one JSON object a line")->required();
  command.add_option("--requests", f.requests, "Serve only the first N (default: all)");
  command.add_flag("--strict", f.is_strict, "End at the first malformed line of the trace");
  command.add_option("--check-rate", f.check_rate,
                     "Output rows checked per step and phase, on average (default 1); besides, "
                     "the first chunk behind every reused prefix. 0 = check nothing");
  command.add_option("--seed", f.seed, "Of queries, keys, values and checks (default 1)");
  command.add_flag("--json", f.is_json, "Print one JSON object");
  command.add_option("--report", f.report,
                     "Directory for replay.json, latency.png, timeline.png, roofline.png");
  command.add_flag("--no-ceilings", f.skips_ceilings,
                   "Do not measure the machine's roofline (about a second)");
  add_model_flags(command, f);
  add_serving_flags(command, f);
  cli::add_engine_options(command, f.engine);
}

}  // namespace pagoda::replay
