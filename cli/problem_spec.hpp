// ProblemSpec: one attention problem as flags or JSON describe it. Shapes only; the data is made by
// problem_buffers. Shared by explain, run and bench.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pagoda/dtype.hpp"
#include "pagoda/kv_cache.hpp"
#include "pagoda/mask.hpp"

namespace CLI {
class App;
}

namespace pagoda::cli {

struct ProblemSpec {
  int64_t batch = 1;
  std::vector<int64_t> seqlens_q{512};   // one for all, or one per sequence
  std::vector<int64_t> seqlens_kv{512};  // likewise
  int64_t num_q_heads = 32;
  int64_t num_kv_heads = 8;
  int64_t head_dim_qk = 128;
  int64_t head_dim_vo = 0;     // 0 = head_dim_qk
  bool is_v_inside_k = false;  // V is the first head_dim_vo columns of K (latent attention)
  DType dtype = DType::kF32;
  std::optional<DType> kv_dtype;   // default: dtype
  std::optional<DType> out_dtype;  // default: dtype, bf16 where it is fp8
  enum class KVKind : uint8_t { kDense, kRagged, kPaged } kv_kind = KVKind::kDense;
  int64_t page_size = 64;
  PageLayout layout = PageLayout::kNHD;
  bool has_csr_table = false;
  bool is_padded = false;  // Q as [batch, seqlen_q, ...] instead of ragged
  std::string mask_text = "none";
  Mask mask;
  float softcap = 0;
  bool has_alibi = false;
  bool has_sinks = false;
  bool has_lse = false;
  uint64_t seed = 1;

  [[nodiscard]] int64_t seqlen_q(int64_t b) const { return at(seqlens_q, b); }
  [[nodiscard]] int64_t seqlen_kv(int64_t b) const { return at(seqlens_kv, b); }
  [[nodiscard]] int64_t vo() const { return head_dim_vo == 0 ? head_dim_qk : head_dim_vo; }
  [[nodiscard]] DType kv() const { return kv_dtype.value_or(dtype); }
  [[nodiscard]] DType out() const {
    return out_dtype.value_or(dtype == DType::kF8E4M3 ? DType::kBF16 : dtype);
  }
  // "prefill-like" one-line description: "1 x 512 q, 512 kv, 32/8 heads of 128, bf16, paged 64".
  [[nodiscard]] std::string summary() const;

 private:
  [[nodiscard]] static int64_t at(const std::vector<int64_t>& lengths, int64_t b) {
    return lengths.size() == 1 ? lengths[0] : lengths[static_cast<size_t>(b)];
  }
};

// Names and values as text, from flags or a file, before parsing.
using RawProblem = std::map<std::string, std::string>;

// Adds a flag for every field ("--seqlen-q" ...) and --problem FILE. Flags fill `raw`; the file's
// name is kept under the key "problem".
void add_problem_options(CLI::App& command, RawProblem& raw);

// Parses `raw`; flags override the file that it names. Ends the command with a message that names
// the flag if a value is invalid.
[[nodiscard]] ProblemSpec parse_problem(const RawProblem& raw);

// The same from a JSON object with the flags' names ("seqlen-q" or "seqlen_q"). Lists may be
// arrays.
[[nodiscard]] ProblemSpec parse_problem_json(const nlohmann::json& json);

[[nodiscard]] nlohmann::ordered_json to_json(const ProblemSpec& spec);

}  // namespace pagoda::cli
