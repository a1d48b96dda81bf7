// append_kv() and merge_states(): validate, then call the back end's function.
#include "engine/guard.hpp"
#include "engine/plan.hpp"
#include "engine/select.hpp"
#include "engine/validate.hpp"

namespace pagoda {
namespace {

template <typename Call>
using StateFunction = Status (*)(const Call&, const core::RunContext&);

template <typename Call>
Status validate_and_run(const char* name, const Call& call, const Options& options,
                        StateFunction<Call> core::Backend::*function) {
  return engine::guarded([&]() -> Status {
    if (Status s = engine::check_options(options); !s) return s;
    const core::Backend& backend = *engine::find_backend(options.backend);
    if (Status s = engine::validate(backend, call, options); !s) return s;
    if (backend.*function == nullptr) {
      return Status::unsupported("backend",
                                 "back end " + options.backend + " does not support " + name);
    }
    const Options resolved = engine::with_executor(options);
    return (backend.*function)(call, {.executor = resolved.executor, .stream = options.stream});
  });
}

}  // namespace

Status append_kv(const AppendKV& append, const Options& options) {
  return validate_and_run("append_kv", append, options, &core::Backend::append_kv);
}

Status merge_states(const MergeStates& merge, const Options& options) {
  return validate_and_run("merge_states", merge, options, &core::Backend::merge_states);
}

}  // namespace pagoda
