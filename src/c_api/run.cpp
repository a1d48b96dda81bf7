// pagoda_run(), plans, append_kv and merge_states.
#include <memory>
#include <utility>

#include "c_api/attention.hpp"
#include "c_api/options.hpp"
#include "c_api/status.hpp"
#include "c_api/structs.hpp"
#include "engine/check.hpp"

// A plan with the executor that it uses.
struct pagoda_plan {
  std::unique_ptr<pagoda::c_api::CallerExecutor> executor;
  pagoda::Plan plan;
};

using namespace pagoda;  // NOLINT(google-build-using-namespace): definitions of C functions
using namespace pagoda::c_api;

pagoda_status_code pagoda_run(const pagoda_attention* attention, const pagoda_options* options,
                              pagoda_status* status) {
  return guarded_call(status, [&]() -> Status {
    Attention a;
    if (Status s = to_attention(attention, a); !s) return s;
    CallOptions call;
    if (Status s = to_options(options, call); !s) return s;
    return run(a, call.options);
  });
}

pagoda_status_code pagoda_plan_create(const pagoda_attention* attention,
                                      const pagoda_options* options, pagoda_plan** plan,
                                      pagoda_status* status) {
  if (plan != nullptr) *plan = nullptr;
  return guarded_call(status, [&]() -> Status {
    if (plan == nullptr) return complain_null("plan");
    Attention a;
    if (Status s = to_attention(attention, a); !s) return s;
    CallOptions call;
    if (Status s = to_options(options, call); !s) return s;
    Result<Plan> planned = pagoda::plan(a, call.options);
    if (!planned) return planned.status();
    *plan = new pagoda_plan{std::move(call.executor), *std::move(planned)};
    return {};
  });
}

void pagoda_plan_destroy(pagoda_plan* plan) { delete plan; }

pagoda_status_code pagoda_plan_run(const pagoda_plan* plan, const pagoda_attention* attention,
                                   void* workspace, int64_t workspace_bytes, void* stream,
                                   pagoda_status* status) {
  return guarded_call(status, [&]() -> Status {
    if (plan == nullptr) return complain_null("plan");
    if (workspace_bytes < 0) {
      return engine::complain("workspace_bytes", workspace_bytes, "must be at least 0");
    }
    if (workspace == nullptr && workspace_bytes > 0) {
      return engine::complain("workspace", "null", "must not be null: workspace_bytes is above 0");
    }
    Attention a;
    if (Status s = to_attention(attention, a); !s) return s;
    return run(plan->plan, a,
               {static_cast<std::byte*>(workspace), static_cast<size_t>(workspace_bytes)},
               {stream});
  });
}

pagoda_status_code pagoda_plan_get_info(const pagoda_plan* plan, pagoda_plan_info* info,
                                        pagoda_status* status) {
  return guarded_call(status, [&]() -> Status {
    if (plan == nullptr) return complain_null("plan");
    const Plan& p = plan->plan;
    return write_struct("info",
                        pagoda_plan_info{.struct_size = 0,
                                         .kernel = p.kernel().c_str(),
                                         .workspace_bytes = p.workspace_bytes(),
                                         .zeroed_workspace_bytes = p.zeroed_workspace_bytes(),
                                         .worker_scratch_bytes = p.worker_scratch_bytes(),
                                         .num_work_items = p.num_work_items(),
                                         .num_split_rows = p.num_split_rows(),
                                         .flops = p.flops(),
                                         .kv_bytes = p.kv_bytes()},
                        info);
  });
}

pagoda_status_code pagoda_append_kv(const pagoda_append_kv_args* append,
                                    const pagoda_options* options, pagoda_status* status) {
  return guarded_call(status, [&]() -> Status {
    AppendKV a;
    if (Status s = to_append_kv(append, a); !s) return s;
    CallOptions call;
    if (Status s = to_options(options, call); !s) return s;
    return append_kv(a, call.options);
  });
}

pagoda_status_code pagoda_merge_states(const pagoda_merge_states_args* merge,
                                       const pagoda_options* options, pagoda_status* status) {
  return guarded_call(status, [&]() -> Status {
    MergeStates m;
    if (Status s = to_merge_states(merge, m); !s) return s;
    CallOptions call;
    if (Status s = to_options(options, call); !s) return s;
    return merge_states(m, call.options);
  });
}
