// The functors have names of their own, "documents_at_run_time", because the program has kernels of
// the others.
#include "tests/functors/at_run_time.hpp"

#include <stdexcept>

#include "pagoda/runtime_functor.hpp"
#include "tests/functors/functor_cases.hpp"
#include "tests/functors/functor_sources.hpp"

namespace pagoda::functor_tests {
namespace {

struct AtRunTime {
  const char* name;
  const char* type;
  const char* file;
};
constexpr AtRunTime kDocumentsAtRunTime{"documents_at_run_time", "Documents", "documents.hpp"};
constexpr AtRunTime kDecayAtRunTime{"head_decay_at_run_time", "HeadDecay", "head_decay.hpp"};
constexpr AtRunTime kCausalAtRunTime{"causal_at_run_time", "CausalAgain", "causal.hpp"};

FunctorCall renamed(FunctorCall call, const char* name) {
  call.name = name;
  return call;
}
FunctorCall documents_at_run_time() { return renamed(documents(), kDocumentsAtRunTime.name); }
FunctorCall decay_at_run_time() { return renamed(head_decay(), kDecayAtRunTime.name); }

// The family of a GPU's own, and the one of every GPU.
std::vector<std::string> shapes_of(int32_t arch) {
  std::vector<std::string> shapes{"sm80.d128.bf16"};
  if (arch == 90) shapes.emplace_back("sm90.d128.bf16");
  if (arch == 100 || arch == 103) shapes.emplace_back("sm100.d128.bf16");
  return shapes;
}

}  // namespace

std::string compile_at_run_time(int32_t arch) {
  for (const AtRunTime& each : {kDocumentsAtRunTime, kDecayAtRunTime, kCausalAtRunTime}) {
    const Result<CompiledFunctor> compiled = compile_functor({.name = each.name,
                                                              .type = each.type,
                                                              .source = functor_source(each.file),
                                                              .shapes = shapes_of(arch),
                                                              .cache_dir = ""});
    if (compiled) continue;
    const Status s = compiled.status();
    if (s.code() == StatusCode::kNotFound) return s.message();
    throw std::runtime_error(s.message());
  }
  return {};
}

FunctorCall causal_at_run_time() { return renamed(causal(), kCausalAtRunTime.name); }

std::vector<conformance::Case> cases_at_run_time() {
  std::vector<conformance::Case> all = cases();
  for (conformance::Case& c : all) {
    const std::string_view name = c.functor().name;
    c.functor = name == "documents" ? documents_at_run_time
                : name == "causal"  ? causal_at_run_time
                                    : decay_at_run_time;
    c.name += "_at_run_time";
  }
  return all;
}

}  // namespace pagoda::functor_tests
