// Kernels are compiled one by one, on all processors at once: each is a program of its own, so that
// a shape takes as long as the slowest of its kernels.
#include "runtime_functor/compile.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "engine/guard.hpp"
#include "pagoda/version.h"
#include "runtime_functor/cache.hpp"
#include "runtime_functor/cubin.hpp"
#include "runtime_functor/digest.hpp"
#include "runtime_functor/headers.hpp"
#include "runtime_functor/nvrtc.hpp"

namespace pagoda::runtime_functor {
namespace {

// The name by which the program includes the functor's source; error messages have it.
constexpr const char* kSourceName = "source";
constexpr const char* kProgram =
    "#include \"source\"\n"
    "#include \"runtime_functor/device/program.hpp\"\n";

// sm_90a, sm_100a and sm_103a have the instructions of their own family.
std::string target(int32_t arch) {
  const bool is_specific = arch == 90 || arch == 100 || arch == 103;
  return "sm_" + std::to_string(arch) + (is_specific ? "a" : "");
}

std::vector<std::string> options_of(const FunctorSource& functor, const Request& request) {
  return {"--std=c++20",
          "--gpu-architecture=" + target(request.arch),
          "--device-as-default-execution-space",
          "--diag-suppress=554",  // a tensor's conversion to itself, which never happens
          "-DPAGODA_FUNCTOR_TYPE=" + functor.type,
          "-DPAGODA_FUNCTOR_FAMILY=" + std::to_string(request.shape->family),
          "-DPAGODA_FUNCTOR_SHAPE=" + std::to_string(request.shape->index),
          "-DPAGODA_FUNCTOR_VARIANT=" + std::to_string(request.variant)};
}

// Of all that a cubin is compiled from but NVRTC, whose version is known only once it is loaded.
class Keys {
 public:
  explicit Keys(const FunctorSource& functor) {
    common_.add(std::to_string(PAGODA_VERSION)).add(kProgram).add(functor.source);
    for (const Header& header : headers()) common_.add(header.name).add(header.text);
  }
  [[nodiscard]] std::string of(const std::vector<std::string>& options) const {
    Digest key = common_;
    for (const std::string& option : options) key.add(option);
    return key.text();
  }

 private:
  Digest common_;
};

Status damaged() {
  return {StatusCode::kInternal, "", "NVRTC made a cubin without the kernel and its facts"};
}

// The cubins of `missing`, or the first error. `store` keeps one of them.
template <class Store>
Status compile_missing(const FunctorSource& functor, const std::vector<Request>& requests,
                       const std::vector<size_t>& missing, Outcome& outcome, const Store& store) {
  const Result<Nvrtc> nvrtc = Nvrtc::load(functor.nvrtc);
  if (!nvrtc) return nvrtc.status();
  std::vector<Header> texts(headers().begin(), headers().end());
  texts.push_back({kSourceName, functor.source.c_str()});

  std::vector<std::optional<Result<Compiled>>> results(missing.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < missing.size(); i = next++) {
      results[i] = engine::guarded([&] {  // no exception leaves a thread
        return nvrtc->compile(kProgram, texts, options_of(functor, requests[missing[i]]));
      });
    }
  };
  const size_t num_threads =
      std::min<size_t>(missing.size(), std::max(1U, std::thread::hardware_concurrency()));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work);
    work();
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    if (!*results[i]) return results[i]->status();
    Compiled& compiled = results[i]->value();
    const std::optional<KernelFacts> facts = read_facts(compiled.cubin);
    if (!facts) return damaged();
    if (outcome.log.find(compiled.log) == std::string::npos) outcome.log += compiled.log + "\n";
    outcome.log += store(missing[i], compiled.cubin);
    outcome.code[missing[i]].cubin = std::move(compiled.cubin);
    outcome.code[missing[i]].facts = *facts;
  }
  return {};
}

}  // namespace

Result<Outcome> compile(const FunctorSource& functor, const std::vector<Request>& requests) {
  const Cache cache(functor.cache_dir);
  const Keys keys(functor);
  Outcome outcome;
  std::vector<size_t> missing;
  for (size_t i = 0; i < requests.size(); ++i) {
    Code& code = outcome.code.emplace_back(Code{requests[i].variant, requests[i].arch, {}, {}});
    std::optional<std::string> cubin = cache.find(keys.of(options_of(functor, requests[i])));
    const std::optional<KernelFacts> facts = cubin ? read_facts(*cubin) : std::nullopt;
    if (facts) {
      code.cubin = std::move(*cubin);
      code.facts = *facts;
    } else {
      missing.push_back(i);
    }
  }
  outcome.num_compiled = static_cast<int32_t>(missing.size());
  if (missing.empty()) return outcome;
  const auto store = [&](size_t i, const std::string& cubin) {
    return cache.store(keys.of(options_of(functor, requests[i])), cubin);
  };
  if (Status s = compile_missing(functor, requests, missing, outcome, store); !s) return s;
  return outcome;
}

}  // namespace pagoda::runtime_functor
