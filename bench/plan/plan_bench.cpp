// Host time of a call: plan() and run()'s checks for a mixed batch of 256 sequences, paged
// by block table, prefill chunks and decode together. The bound in the design is 50 us.
#include <benchmark/benchmark.h>
#include <random>
#include <vector>

#include "engine/cost.hpp"
#include "engine/signature.hpp"
#include "engine/validate.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

constexpr int64_t kBatch = 256, kPageSize = 16, kQHeads = 32, kKvHeads = 8, kDim = 128;
constexpr int64_t kMaxPages = 8192 / kPageSize;

// Nothing runs, so q, k, v and out need addresses but no memory.
struct MixedBatch {
  MixedBatch() {
    std::mt19937 random(1);
    for (int64_t b = 0; b < kBatch; ++b) {
      const bool is_decode = b % 8 != 0;
      const auto rows = static_cast<int32_t>(is_decode ? 1 : 64 + random() % 448);
      offsets.push_back(offsets.back() + rows);
      lengths.push_back(rows + static_cast<int32_t>(random() % 7000));
    }
    pages.assign(kBatch * kMaxPages, 0);
    static std::byte memory[64];
    const int64_t total_q = offsets.back(), num_pages = 100000;
    const auto cache =
        ConstTensor::contiguous(memory, DType::kBF16, {num_pages, kPageSize, kKvHeads, kDim});
    call.q = ConstTensor::contiguous(memory, DType::kBF16, {total_q, kQHeads, kDim});
    call.out = Tensor::contiguous(memory + 2, DType::kBF16, {total_q, kQHeads * 2, kDim});
    call.out.shape[1] = kQHeads;  // gaps, so that the address range may overlap that of q
    call.cu_seqlens_q = offsets;
    const auto table = MatrixView<int32_t>::contiguous(pages.data(), kBatch, kMaxPages);
    call.kv = PagedKV{.k = cache, .v = cache, .table = BlockTable{table, lengths}};
    call.mask = Mask::causal();
  }

  std::vector<int32_t> offsets{0}, lengths, pages;
  Attention call;
};

void plan_mixed_batch(benchmark::State& state, const char* backend, const Mask& mask) {
  MixedBatch batch;
  batch.call.mask = mask;
  const Options options{.backend = backend};
  if (Status s = plan(batch.call, options).status(); !s) state.SkipWithError(s.message().c_str());
  for ([[maybe_unused]] auto _ : state) {
    Result<Plan> planned = plan(batch.call, options);
    benchmark::DoNotOptimize(planned);
  }
}

void validate_mixed_batch(benchmark::State& state) {
  MixedBatch batch;
  for ([[maybe_unused]] auto _ : state) {
    Result<core::Problem> problem = engine::validate(batch.call, {});
    benchmark::DoNotOptimize(problem);
  }
}

void match_signature(benchmark::State& state) {
  MixedBatch batch;
  const Result<core::Problem> problem = engine::validate(batch.call, {});
  const engine::Signature signature(*problem);
  for ([[maybe_unused]] auto _ : state) {
    Status status = signature.match(*problem);
    benchmark::DoNotOptimize(status);
  }
}

void count_cost(benchmark::State& state, const Mask& mask) {
  MixedBatch batch;
  batch.call.mask = mask;
  const Result<core::Problem> problem = engine::validate(batch.call, {});
  for ([[maybe_unused]] auto _ : state) {
    engine::Cost cost = engine::cost(*problem);
    benchmark::DoNotOptimize(cost);
  }
}

const Mask kWindow = Mask::window(1023, 0);
const Mask kChunkedCausal = Mask::chunked(2048) & Mask::causal();

BENCHMARK_CAPTURE(plan_mixed_batch, cpu_causal, "cpu", Mask::causal())
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_mixed_batch, cpu_window, "cpu", kWindow)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_mixed_batch, cpu_chunked_causal, "cpu", kChunkedCausal)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_mixed_batch, reference_causal, "reference", Mask::causal())
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(validate_mixed_batch)->Unit(benchmark::kMicrosecond);
BENCHMARK(match_signature)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(count_cost, causal, Mask::causal())->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(count_cost, chunked_causal, kChunkedCausal)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pagoda

BENCHMARK_MAIN();
