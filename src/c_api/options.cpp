// Options, and the caller's executor.
#include "c_api/options.hpp"

#include <exception>
#include <mutex>
#include <string>

#include "c_api/structs.hpp"
#include "engine/check.hpp"

namespace pagoda::c_api {
namespace {

using engine::complain;

// The bodies of one parallel region. The first exception waits until all have returned, because it
// must not pass through the caller's code.
class Region {
 public:
  Region(void (*body)(void*, int32_t), void* context) : body_(body), context_(context) {}

  static void run_body(void* region, int32_t i) noexcept { static_cast<Region*>(region)->run(i); }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run(int32_t i) noexcept {
    try {
      body_(context_, i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  void (*body_)(void*, int32_t);
  void* context_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

Status to_executor(const pagoda_executor* from, std::unique_ptr<CallerExecutor>& to) {
  if (from == nullptr) return {};
  pagoda_executor executor;
  if (Status s = read_struct("options.executor", from, executor); !s) return s;
  if (executor.parallel == nullptr) return complain_null("options.executor.parallel");
  if (executor.workers < 1) {
    return complain("options.executor.workers", int64_t{executor.workers}, "must be at least 1");
  }
  if (Status s = check_reserved("options.executor", executor.reserved); !s) return s;
  to = std::make_unique<CallerExecutor>(executor);
  return {};
}

}  // namespace

void CallerExecutor::parallel(int32_t n, void (*body)(void* context, int32_t i), void* context) {
  Region region(body, context);
  caller_.parallel(caller_.context, n, &Region::run_body, &region);
  region.rethrow();
}

Status to_options(const pagoda_options* from, CallOptions& to) {
  pagoda_options options;
  if (Status s = read_optional("options", from, options); !s) return s;
  if (options.backend != nullptr) to.options.backend = options.backend;
  if (options.kernel != nullptr) to.options.kernel = options.kernel;
  if (Status s = to_executor(options.executor, to.executor); !s) return s;
  to.options.executor = to.executor.get();
  to.options.stream = {options.stream};
  if (options.schedule < 0 || options.schedule > PAGODA_SCHEDULE_STREAM_K) {
    return Status::invalid("options.schedule", std::to_string(options.schedule),
                           "must be one of PAGODA_SCHEDULE_*");
  }
  to.options.schedule = static_cast<Schedule>(options.schedule);
  to.options.num_kv_splits = options.num_kv_splits;
  if (Status s = to_bool("options.is_batch_invariant", options.is_batch_invariant,
                         to.options.is_batch_invariant);
      !s) {
    return s;
  }
  return to_bool("options.checks_indices", options.checks_indices, to.options.checks_indices);
}

}  // namespace pagoda::c_api
