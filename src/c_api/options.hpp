// CallOptions: pagoda_options as Options, with the executor that they point to.
#pragma once

#include <cstdint>
#include <memory>

#include "pagoda/attention.hpp"
#include "pagoda/executor.hpp"
#include "pagoda/pagoda.h"
#include "pagoda/status.hpp"

namespace pagoda::c_api {

// The caller's threads.
class CallerExecutor final : public Executor {
 public:
  explicit CallerExecutor(const pagoda_executor& caller) : caller_(caller) {}
  [[nodiscard]] int32_t workers() const override { return caller_.workers; }
  void parallel(int32_t n, void (*body)(void* context, int32_t i), void* context) override;

 private:
  pagoda_executor caller_;
};

struct CallOptions {
  Options options;
  std::unique_ptr<CallerExecutor> executor;  // options.executor points to it; null = the default
};

[[nodiscard]] Status to_options(const pagoda_options* from, CallOptions& to);

}  // namespace pagoda::c_api
