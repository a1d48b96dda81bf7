// The functors of examples/functors on a GPU, by nvcc and, where there is NVRTC, at run time:
// agreement with the reference, and the time of Causal (a functor) compared with that of
// Mask::causal(), which it re-states. A plain program, so that it
// can be copied to a machine with a GPU. It prints a line per case; exit code 1 = a case failed or
// the functor takes more than 5 % longer, 77 = no GPU.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
#include <exception>
#include <string>
#include <vector>

#include "pagoda/pagoda.hpp"
#include "testing/conformance/random.hpp"
#include "testing/conformance/runner.hpp"
#include "testing/mirror/block.hpp"
#include "testing/mirror/host_space.hpp"
#include "tests/functors/at_run_time.hpp"
#include "tests/functors/functor_cases.hpp"

namespace pagoda::functor_tests {
namespace {

constexpr int kExitSkipped = 77;
constexpr const char* kBackend = "cuda";
constexpr double kMostSlowdown = 1.05;
// Prefill on Hopper: the mask has row tiles of 192 tokens, the functor of 128.
constexpr double kMostPrefillSlowdown = 1.12;
constexpr int64_t kRepeats = 20, kRounds = 5;

// --- results -------------------------------------------------------------------------------------

int count_failures(const std::vector<conformance::Case>& cases) {
  int failures = 0;
  for (const conformance::Case& c : cases) {
    if (c.dim_qk > 128) continue;  // this program has functors of head dim 128
    conformance::CaseRunner runner(c);
    const conformance::Outcome outcome =
        runner.run({.backend = kBackend}, conformance::effort_for(kBackend));
    const bool is_passed = outcome.verdict == conformance::Verdict::kPassed;
    std::printf("%s %s %s %s\n", is_passed ? "passed" : "failed", c.name.c_str(),
                outcome.kernel.c_str(), outcome.message.c_str());
    failures += is_passed ? 0 : 1;
  }
  return failures;
}

// --- times ---------------------------------------------------------------------------------------

struct Shape {
  const char* name;
  int64_t batch, seqlen_q, seqlen_kv;
  double most_slowdown = kMostSlowdown;  // the functor's time over the mask's
};
constexpr int64_t kQHeads = 32, kKVHeads = 8, kDim = 128;
constexpr Shape kShapes[] = {{"prefill_2048", 4, 2048, 2048, kMostPrefillSlowdown},
                             {"prefill_8192", 1, 8192, 8192, kMostPrefillSlowdown},
                             {"chunk_512_of_16384", 2, 512, 16384},
                             {"decode_64_of_4096", 64, 1, 4096}};

// bf16 values of a normal distribution, a block of them again and again.
mirror::Block draw(core::MemorySpace& space, int64_t count) {
  constexpr int64_t kDrawn = 1 << 20;
  std::vector<uint16_t> values(kDrawn);
  conformance::Random random("functor_gpu_test");
  for (uint16_t& value : values) {
    const float drawn = random.normal();
    uint32_t bits = 0;
    std::memcpy(&bits, &drawn, sizeof bits);
    value = static_cast<uint16_t>(bits >> 16U);
  }
  mirror::Block block(space, 2 * count);
  for (int64_t done = 0; done < count; done += kDrawn) {
    space.copy_in(block.data() + 2 * done, values.data(), 2 * std::min(kDrawn, count - done));
  }
  return block;
}

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

// A call with a plan and a workspace.
class Planned {
 public:
  Planned(core::MemorySpace& space, Attention call)
      : call_(std::move(call)), plan_(planned(call_)), workspace_(space, plan_.workspace_bytes()) {
    space.fill(workspace_.data(), std::byte{0}, workspace_.bytes());
  }
  void launch() const {
    if (const Status s = run(plan_, call_, workspace_.span()); !s) {
      throw std::runtime_error(s.message());
    }
  }
  [[nodiscard]] const std::string& kernel() const { return plan_.kernel(); }

 private:
  static Plan planned(const Attention& call) {
    const Result<Plan> result = plan(call, {.backend = kBackend});
    if (!result) throw std::runtime_error(result.status().message());
    return *result;
  }

  Attention call_;
  Plan plan_;
  mirror::Block workspace_;
};

// The functor's time divided by the mask's. Both take turns; the least median of each counts.
double measure(core::MemorySpace& space, const Shape& shape, const FunctorCall& causal_functor,
               const char* suffix) {
  const Device device = space.device();
  const auto tensor = [device](const mirror::Block& block, int64_t batch, int64_t rows,
                               int64_t heads) {
    Tensor t = Tensor::contiguous(block.data(), DType::kBF16, {batch, rows, heads, kDim});
    t.device = device;
    return t;
  };
  const mirror::Block q = draw(space, shape.batch * shape.seqlen_q * kQHeads * kDim);
  const mirror::Block k = draw(space, shape.batch * shape.seqlen_kv * kKVHeads * kDim);
  const mirror::Block v = draw(space, shape.batch * shape.seqlen_kv * kKVHeads * kDim);
  const mirror::Block out(space, q.bytes());
  Attention call;
  call.q = tensor(q, shape.batch, shape.seqlen_q, kQHeads);
  call.kv = DenseKV{tensor(k, shape.batch, shape.seqlen_kv, kKVHeads),
                    tensor(v, shape.batch, shape.seqlen_kv, kKVHeads)};
  call.out = tensor(out, shape.batch, shape.seqlen_q, kQHeads);
  Attention with_functor = call;
  with_functor.functor = causal_functor;
  call.mask = Mask::causal();
  const Planned mask(space, call), functor(space, with_functor);
  double mask_seconds = 1e9, functor_seconds = 1e9;
  for (int64_t round = 0; round < kRounds; ++round) {
    mask_seconds = std::min(mask_seconds, median(space.time(kRepeats, [&] { mask.launch(); })));
    functor_seconds =
        std::min(functor_seconds, median(space.time(kRepeats, [&] { functor.launch(); })));
  }
  const double ratio = functor_seconds / mask_seconds;
  std::printf("%s time_%s%s %s %.1f us, %s %.1f us, ratio %.3f\n",
              ratio <= shape.most_slowdown ? "passed" : "failed", shape.name, suffix,
              functor.kernel().c_str(), 1e6 * functor_seconds, mask.kernel().c_str(),
              1e6 * mask_seconds, ratio);
  return ratio;
}

int32_t arch_of_gpu() {
  int major = 0, minor = 0;
  static_cast<void>(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  static_cast<void>(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  return 10 * major + minor;
}

int run_all() {
  for (const BackendInfo& backend : backends()) {
    if (backend.name != kBackend || backend.is_available) continue;
    std::printf("%s\n", backend.description.c_str());
    return kExitSkipped;
  }
  int failures = count_failures(cases());
  core::MemorySpace& space = mirror::space_of(kBackend);
  const auto count_slow = [&](const FunctorCall& functor, const char* suffix) {
    for (const Shape& shape : kShapes) {
      failures += measure(space, shape, functor, suffix) <= shape.most_slowdown ? 0 : 1;
    }
  };
  count_slow(causal(), "");
  const int32_t arch = arch_of_gpu();
  if (const std::string missing = compile_at_run_time(arch); missing.empty()) {
    failures += count_failures(cases_at_run_time());
    count_slow(causal_at_run_time(), "_at_run_time");
  } else {
    std::printf("not tested: functors at run time; %s\n", missing.c_str());
  }
  std::printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pagoda::functor_tests

int main() {
  try {
    return pagoda::functor_tests::run_all();
  } catch (const std::exception& e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
}
