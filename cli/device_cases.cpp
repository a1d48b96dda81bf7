// Prefill of 16k tokens in all by depth, length and mask; decode over pages; an fp8 cache; a few
// query tokens; a long chunk.
#include "cli/device_cases.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace pagoda::cli {
namespace {

using Kind = ProblemSpec::KVKind;

constexpr int64_t kTokens = 16384;  // of a prefill batch
constexpr int64_t kWidth = 2048;    // heads * depth

void make_causal(ProblemSpec& spec) {
  spec.mask_text = "causal";
  spec.mask = Mask::causal();
}

BenchCase prefill(int64_t depth, int64_t length, bool is_causal) {
  ProblemSpec spec;
  spec.batch = kTokens / length;
  spec.seqlens_q = spec.seqlens_kv = {length};
  spec.num_q_heads = spec.num_kv_heads = kWidth / depth;
  spec.head_dim_qk = depth;
  spec.dtype = DType::kBF16;
  if (is_causal) make_causal(spec);
  return {fmt::format("prefill.d{}.s{}.{}", depth, length, is_causal ? "causal" : "full"),
          "prefill", spec};
}

// 32 query heads on 8, pages of 64.
BenchCase decode(const std::string& grid, int64_t batch, int64_t queries, int64_t keys) {
  ProblemSpec spec;
  spec.batch = batch;
  spec.seqlens_q = {queries};
  spec.seqlens_kv = {keys};
  spec.dtype = DType::kBF16;
  if (grid == "fp8") spec.kv_dtype = DType::kF8E4M3;
  spec.kv_kind = Kind::kPaged;
  if (queries > 1) make_causal(spec);
  const std::string tokens = grid == "queries" ? fmt::format("q{}.", queries) : "";
  return {fmt::format("{}.{}b{}.k{}", grid, tokens, batch, keys), grid, spec};
}

BenchCase chunk() {
  ProblemSpec spec;
  spec.seqlens_q = {256};
  spec.seqlens_kv = {131072};
  spec.num_q_heads = 8;
  spec.num_kv_heads = 1;
  spec.dtype = DType::kBF16;
  make_causal(spec);
  return {"chunk.8x1.q256.k131072", "chunk", spec};
}

std::vector<BenchCase> grid_of(const std::string& grid, bool is_quick) {
  std::vector<BenchCase> cases;
  if (grid == "prefill") {
    for (const int64_t depth : {64, 128, 256}) {
      for (const bool is_causal : {false, true}) {
        for (const int64_t length : {2048, 4096, 8192, 16384}) {
          if (!is_quick || length == 2048) cases.push_back(prefill(depth, length, is_causal));
        }
      }
    }
  } else if (grid == "chunk") {
    cases.push_back(chunk());
  } else if (grid == "queries") {
    for (const int64_t queries : {1, 4, 16}) {
      cases.push_back(decode(grid, 64, queries, 4096));
    }
  } else {
    cases.push_back(decode(grid, 64, 1, 4096));
    cases.push_back(decode(grid, 1, 1, 65536));
  }
  return cases;
}

}  // namespace

const std::vector<std::string>& device_grid_names() {
  static const std::vector<std::string> kNames = {"prefill", "decode", "fp8", "queries", "chunk"};
  return kNames;
}

std::vector<BenchCase> device_cases(const std::string& grid, bool is_quick) {
  const std::vector<std::string>& names = device_grid_names();
  if (std::find(names.begin(), names.end(), grid) != names.end()) return grid_of(grid, is_quick);
  std::vector<BenchCase> all;
  for (const std::string& each : names) {
    for (BenchCase& one : grid_of(each, is_quick)) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace pagoda::cli
