// libFuzzer over the public API: structured calls on memory of exactly their size. Whatever is
// accepted must run without touching anything else, repeat bit for bit and agree with the
// reference; a rejected call must name a field and must not write the outputs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/element.hpp"
#include "engine/validate.hpp"
#include "fuzz_attention.hpp"
#include "fuzz_calls.hpp"
#include "fuzz_outputs.hpp"
#include "fuzz_states.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::fuzz {
namespace {

constexpr int64_t kMostRows = 10000;
constexpr double kMostFlops = 4e6, kMostComparedFlops = 1e6;

// Five workers that take their turns on one thread, backwards: split rows without threads.
class BackwardsExecutor final : public Executor {
 public:
  [[nodiscard]] int32_t workers() const override { return 5; }
  void parallel(int32_t n, void (*body)(void*, int32_t), void* context) override {
    while (n-- > 0) body(context, n);
  }
};

[[noreturn]] void fail(const char* what, const std::string& detail) {
  std::fprintf(stderr, "fuzz: %s: %s\n", what, detail.c_str());
  std::abort();
}

double tolerance(const Attention& a) {
  if (a.q.dtype == DType::kF32) return 5e-4;
  return a.q.dtype == DType::kF16 ? 8e-3 : 8e-2;
}

// `expected` is what the reference left, `t` what the kernel did; gaps must be equal bit for bit.
void compare(const char* name, const Snapshot& expected, double tolerance) {
  const Tensor& t = expected.tensor;
  for (int64_t i = 0; i < expected.count; ++i) {
    const auto size = static_cast<size_t>(size_bytes(t.dtype));
    const std::byte* x = expected.bytes.data() + static_cast<size_t>(i) * size;
    const std::byte* y = expected.first() + static_cast<size_t>(i) * size;
    if (std::memcmp(x, y, size) == 0) continue;
    const double a = core::load_element(x, t.dtype, 0), b = core::load_element(y, t.dtype, 0);
    const double limit = tolerance * std::max(1.0, std::abs(a));
    if (!(std::abs(a - b) <= limit)) {
      fail(name, "element " + std::to_string(i) + ": reference " + std::to_string(a) + ", kernel " +
                     std::to_string(b));
    }
  }
}

void run_accepted(const FuzzedCall& call, const Plan& plan, Memory& memory, bool compares) {
  const Attention& a = call.attention;
  const Outputs before(a);
  const auto workspace = memory.keep(
      std::vector<std::byte>(static_cast<size_t>(plan.workspace_bytes()) + 64, std::byte{0xff}));
  // From a 64-byte boundary to exactly workspace_bytes().
  auto* start = const_cast<std::byte*>(workspace.data());
  const size_t skip = (64 - reinterpret_cast<uintptr_t>(start) % 64) % 64;
  const std::span<std::byte> scratch(start + skip, static_cast<size_t>(plan.workspace_bytes()));
  std::fill_n(scratch.data(), plan.zeroed_workspace_bytes(), std::byte{0});
  if (Status s = run(plan, a, scratch); !s) fail("a planned call was rejected", s.message());
  const Outputs first(a);

  before.restore();
  if (Status s = run(a, call.options); !s) fail("run() rejected", s.message());
  if (!first.are_unchanged()) fail("not deterministic", plan.kernel());
  if (!compares) return;

  before.restore();
  Options reference = call.options;
  reference.backend = "reference";
  reference.kernel = "";
  if (Status s = run(a, reference); !s) fail("the reference rejected", s.message());
  const Outputs expected(a);
  first.restore();
  const double limit = tolerance(a);
  compare("out", expected.all[0], limit);
  compare("lse", expected.all[1], limit);
  compare("row_max", expected.all[2], limit);
}

void attention_once(FuzzedDataProvider& data, Memory& memory) {
  FuzzedCall call = make_call(data, memory);
  static BackwardsExecutor backwards;
  Executor* const executors[] = {&backwards, &backwards, &serial_executor()};
  call.options.executor = data.PickValueInArray(executors);
  const bool compares = !call.is_spoiled;
  if (call.options.kernel == "reference") call.options.backend = "reference";
  if (const auto valid = engine::validate(call.attention, call.options);
      valid && int64_t{valid->batch} * valid->max_seqlen_q > kMostRows) {
    return;  // a plan is as long as the call; this one has no memory anyway
  }

  const auto infos = explain(call.attention, call.options);
  const Result<Plan> planned = plan(call.attention, call.options);
  if (!planned) {
    const Status status = planned.status();
    if (status.field().empty()) fail("no field named", status.message());
    if (status.code() == StatusCode::kInternal) fail("internal error", status.message());
    if (!call.is_spoiled && status.code() == StatusCode::kInvalidArgument) {
      fail("a valid call was rejected", status.message());
    }
    if (!memory.is_backed) return;
    const Outputs before(call.attention);
    if (run(call.attention, call.options)) fail("run() accepts what plan() rejects", "");
    if (!before.are_unchanged()) fail("a rejected call wrote", status.message());
    return;
  }
  if (!infos) fail("explain() rejects what plan() accepts", infos.status().message());
  if (!memory.is_backed || planned->flops() > kMostFlops) return;
  fill_inputs(call, memory);
  run_accepted(call, *planned, memory, compares && planned->flops() < kMostComparedFlops);
}

}  // namespace
}  // namespace pagoda::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pagoda::fuzz;  // NOLINT(google-build-using-namespace): the calls
  fuzz_call(bytes, size, append_once, merge_once, attention_once);
  return 0;
}
