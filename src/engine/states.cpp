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
Status validate_and_run(const char* name, const Call& call, Device device, const Options& options,
                        StateFunction<Call> core::Backend::*function) {
  return engine::guarded([&]() -> Status {
    const Result<const core::Backend*> found = engine::check_options(options, device);
    if (!found) return found.status();
    const core::Backend& backend = **found;
    if (Status s = engine::validate(backend, call, options); !s) return s;
    if (backend.*function == nullptr) {
      return Status::unsupported(
          "backend", "back end " + std::string(backend.name) + " does not support " + name);
    }
    const Options resolved = engine::with_executor(options);
    return (backend.*function)(call, {.executor = resolved.executor, .stream = options.stream});
  });
}

}  // namespace

Status append_kv(const AppendKV& append, const Options& options) {
  return validate_and_run("append_kv", append, append.k_new.device, options,
                          &core::Backend::append_kv);
}

Status merge_states(const MergeStates& merge, const Options& options) {
  return validate_and_run("merge_states", merge, merge.partial_out.device, options,
                          &core::Backend::merge_states);
}

}  // namespace pagoda
