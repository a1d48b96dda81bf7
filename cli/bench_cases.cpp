// Builds the grids: prefill by length, type and mask; decode by group and by the memory level of
// the cache; mixed batches; planning.
#include "cli/bench_cases.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <random>

namespace pagoda::cli {
namespace {

using Kind = ProblemSpec::KVKind;

const char* short_name(DType dtype) { return dtype == DType::kF32 ? "fp32" : "bf16"; }

// Full: as many key heads as query heads, what every peer can do. Causal: four query heads on one
// key head, as in Llama 3.
BenchCase prefill_case(DType dtype, int64_t dim, int64_t length, bool is_causal) {
  ProblemSpec spec;
  spec.seqlens_q = spec.seqlens_kv = {length};
  spec.num_q_heads = is_causal ? 16 : 8;
  spec.num_kv_heads = is_causal ? 4 : 8;
  spec.head_dim_qk = dim;
  spec.dtype = dtype;
  if (is_causal) {
    spec.mask_text = "causal";
    spec.mask = Mask::causal();
  }
  return {fmt::format("prefill.{}.d{}.s{}.{}", short_name(dtype), dim, length,
                      is_causal ? "causal" : "full"),
          "prefill", spec};
}

std::vector<BenchCase> prefill_grid(const GridLimits& limits) {
  const std::vector<int64_t> lengths = limits.is_quick
                                           ? std::vector<int64_t>{512}
                                           : std::vector<int64_t>{512, 1024, 2048, 4096, 8192};
  std::vector<BenchCase> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool is_causal : {false, true}) {
      for (const int64_t length : lengths) {
        cases.push_back(prefill_case(dtype, 128, length, is_causal));
      }
      if (!limits.is_quick) cases.push_back(prefill_case(dtype, 64, 2048, is_causal));
    }
  }
  return cases;
}

// One token a sequence over a bf16 cache of 8 key heads of 128: 4 KiB a token.
BenchCase decode_case(const std::string& where, int64_t batch, int64_t context, int64_t group) {
  ProblemSpec spec;
  spec.batch = batch;
  spec.seqlens_q = {1};
  spec.seqlens_kv = {context};
  spec.num_q_heads = 8 * group;
  spec.num_kv_heads = 8;
  spec.dtype = DType::kBF16;
  spec.kv_kind = Kind::kPaged;
  spec.page_size = 64;
  spec.layout = PageLayout::kHND;
  return {fmt::format("decode.bf16.d128.g{}.{}", group, where), "decode", spec};
}

constexpr int64_t kDecodeTokenBytes = int64_t{8} * 128 * 2 * 2;

std::vector<BenchCase> decode_grid(const GridLimits& limits) {
  // Twice the last cache and more, within a third of the free memory.
  const int64_t wanted = std::max<int64_t>(int64_t{512} << 20, 3 * limits.largest_cache_bytes);
  const int64_t big = std::min(wanted, limits.free_memory_bytes / 3);
  const int64_t context = 4096;
  const int64_t batch = std::max<int64_t>(1, big / (context * kDecodeTokenBytes));
  // Half of one L2, so that one thread's share fits with room for the rest.
  const int64_t small = std::max<int64_t>(64, limits.l2_bytes / 2 / kDecodeTokenBytes / 64 * 64);
  std::vector<BenchCase> cases;
  for (const int64_t group : {1, 4, 8}) {
    if (!limits.is_quick) {
      cases.push_back(
          decode_case(fmt::format("dram.b{}x{}", batch, context), batch, context, group));
      cases.push_back(decode_case("one.b1x32768", 1, 32768, group));
    }
    cases.push_back(decode_case(fmt::format("l2.b1x{}", small), 1, small, group));
  }
  return cases;
}

// A serving step: decodes of various contexts, and chunks of prompts.
ProblemSpec mixed_spec(int64_t decodes, int64_t chunks, int64_t chunk, int64_t max_context,
                       DType dtype) {
  ProblemSpec spec;
  spec.seqlens_q.clear();
  spec.seqlens_kv.clear();
  std::mt19937_64 generator(7);
  std::uniform_int_distribution<int64_t> context(64, max_context);
  for (int64_t i = 0; i < decodes + chunks; ++i) {
    const int64_t queries = i < decodes ? 1 : chunk;
    spec.seqlens_q.push_back(queries);
    spec.seqlens_kv.push_back(context(generator) + queries);
  }
  spec.batch = decodes + chunks;
  spec.dtype = dtype;
  spec.kv_kind = Kind::kPaged;
  spec.page_size = 64;
  spec.layout = PageLayout::kHND;
  spec.mask_text = "causal";
  spec.mask = Mask::causal();
  return spec;
}

std::vector<BenchCase> mixed_grid(const GridLimits& limits) {
  if (limits.is_quick) {
    return {{"mixed.bf16.d128.b16+1x128", "mixed", mixed_spec(16, 1, 128, 512, DType::kBF16)}};
  }
  std::vector<BenchCase> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    cases.push_back({fmt::format("mixed.{}.d128.b32+2x512", short_name(dtype)), "mixed",
                     mixed_spec(32, 2, 512, 4096, dtype)});
  }
  return cases;
}

std::vector<BenchCase> plan_grid() {
  std::vector<BenchCase> cases;
  cases.push_back({"plan.bf16.d128.b248+8x256", "plan", mixed_spec(248, 8, 256, 1024, DType::kBF16),
                   /*times_planning=*/true});
  cases.push_back({"plan.fp32.d128.b248+8x256", "plan", mixed_spec(248, 8, 256, 1024, DType::kF32),
                   /*times_planning=*/true});
  return cases;
}

}  // namespace

const std::vector<std::string>& grid_names() {
  static const std::vector<std::string> kNames = {"prefill", "decode", "mixed", "plan"};
  return kNames;
}

std::vector<BenchCase> bench_cases(const std::string& grid, const GridLimits& limits) {
  if (grid == "prefill") return prefill_grid(limits);
  if (grid == "decode") return decode_grid(limits);
  if (grid == "mixed") return mixed_grid(limits);
  if (grid == "plan") return plan_grid();
  std::vector<BenchCase> all;
  for (const std::string& each : grid_names()) {
    for (BenchCase& one : bench_cases(each, limits)) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace pagoda::cli
