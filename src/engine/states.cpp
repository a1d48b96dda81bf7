// append_kv() and merge_states(): validate, then the one implementation that the host has.
#include "cpu/append_kv.hpp"
#include "cpu/merge_states.hpp"
#include "engine/guard.hpp"
#include "engine/plan.hpp"
#include "engine/select.hpp"
#include "engine/validate.hpp"

namespace pagoda {
namespace {

template <typename Call>
Status validate_and_run(const Call& call, const Options& options,
                        void (*run_call)(const Call&, Executor&)) {
  return engine::guarded([&]() -> Status {
    if (Status s = engine::check_options(options); !s) return s;
    if (Status s = engine::validate(call, options); !s) return s;
    run_call(call, *engine::with_executor(options).executor);
    return {};
  });
}

}  // namespace

Status append_kv(const AppendKV& append, const Options& options) {
  return validate_and_run(append, options, cpu::append_kv);
}

Status merge_states(const MergeStates& merge, const Options& options) {
  return validate_and_run(merge, options, cpu::merge_states);
}

}  // namespace pagoda
