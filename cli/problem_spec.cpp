// One table of fields serves the flags, the JSON files and the messages.
#include "cli/problem_spec.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/json_io.hpp"
#include "cli/mask_parser.hpp"
#include "cli/terminal.hpp"

namespace pagoda::cli {
namespace {

constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();

struct Field {
  const char* name;
  const char* help;
  bool is_switch;
  void (*set)(ProblemSpec& spec, const std::string& flag, const std::string& value);
};

[[noreturn]] void reject(const std::string& flag, const std::string& value,
                         const std::string& limit) {
  fail(fmt::format("{}: '{}' is not {}", flag, value, limit));
}

template <typename T>
T parse_number(const std::string& flag, const std::string& text, T low, T high) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= low && value <= high)) {
    reject(flag, text, fmt::format("a number from {} to {}", low, high));
  }
  return value;
}

int64_t parse_count(const std::string& flag, const std::string& text, int64_t low = 1) {
  return parse_number<int64_t>(flag, text, low, kMaxLength);
}

std::vector<int64_t> parse_lengths(const std::string& flag, const std::string& text) {
  std::vector<int64_t> lengths;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    lengths.push_back(parse_count(flag, text.substr(begin, end - begin), 0));
    begin = end + 1;
  }
  return lengths;
}

bool parse_bool(const std::string& flag, const std::string& text) {
  if (text != "true" && text != "false") reject(flag, text, "true or false");
  return text == "true";
}

template <typename T, size_t kCount>
T parse_name(const std::string& flag, const std::string& text,
             const std::array<std::pair<const char*, T>, kCount>& names) {
  std::string list;
  for (const auto& [known, value] : names) {
    if (text == known) return value;
    list += (list.empty() ? "" : ", ") + std::string(known);
  }
  reject(flag, text, "one of " + list);
}

DType parse_dtype(const std::string& flag, const std::string& text) {
  return parse_name<DType, 5>(flag, text,
                              {{{"fp32", DType::kF32},
                                {"fp16", DType::kF16},
                                {"bf16", DType::kBF16},
                                {"fp8_e4m3", DType::kF8E4M3},
                                {"fp8", DType::kF8E4M3}}});
}

using Kind = ProblemSpec::KVKind;
using Text = const std::string&;
constexpr float kMaxSoftcap = 1e30F;

const std::array kFields = std::to_array<Field>({
    {"batch", "Sequences (default: as many as the longer list of lengths, or 1)", false,
     [](ProblemSpec& s, Text f, Text v) { s.batch = parse_count(f, v); }},
    {"seqlen-q", "Query rows of each sequence: one number or a list, 4,1,1 (default 512)", false,
     [](ProblemSpec& s, Text f, Text v) { s.seqlens_q = parse_lengths(f, v); }},
    {"seqlen-kv", "Keys of each sequence: one number or a list (default: as seqlen-q)", false,
     [](ProblemSpec& s, Text f, Text v) { s.seqlens_kv = parse_lengths(f, v); }},
    {"q-heads", "Query heads (default 32)", false,
     [](ProblemSpec& s, Text f, Text v) { s.num_q_heads = parse_count(f, v); }},
    {"kv-heads", "Key/value heads (default 8)", false,
     [](ProblemSpec& s, Text f, Text v) { s.num_kv_heads = parse_count(f, v); }},
    {"head-dim", "Head dim of Q and K, and of V and O unless --v-head-dim is given (default 128)",
     false, [](ProblemSpec& s, Text f, Text v) { s.head_dim_qk = parse_count(f, v); }},
    {"v-head-dim", "Head dim of V and O", false,
     [](ProblemSpec& s, Text f, Text v) { s.head_dim_vo = parse_count(f, v); }},
    {"v-inside-k", "V is the first --v-head-dim columns of K, in its memory (latent attention)",
     true, [](ProblemSpec& s, Text f, Text v) { s.is_v_inside_k = parse_bool(f, v); }},
    {"dtype", "Type of Q: fp32 (default), fp16, bf16, fp8_e4m3", false,
     [](ProblemSpec& s, Text f, Text v) { s.dtype = parse_dtype(f, v); }},
    {"kv-dtype", "Type of K and V (default: the type of Q)", false,
     [](ProblemSpec& s, Text f, Text v) { s.kv_dtype = parse_dtype(f, v); }},
    {"out-dtype", "Type of O (default: the type of Q, bf16 where that is fp8_e4m3)", false,
     [](ProblemSpec& s, Text f, Text v) { s.out_dtype = parse_dtype(f, v); }},
    {"kv", "Layout of K and V: dense (default), ragged, paged", false,
     [](ProblemSpec& s, Text f, Text v) {
       s.kv_kind = parse_name<Kind, 3>(
           f, v, {{{"dense", Kind::kDense}, {"ragged", Kind::kRagged}, {"paged", Kind::kPaged}}});
     }},
    {"page-size", "Tokens a page, with --kv paged (default 64)", false,
     [](ProblemSpec& s, Text f, Text v) { s.page_size = parse_count(f, v); }},
    {"layout", "Page layout: nhd (default) or hnd", false,
     [](ProblemSpec& s, Text f, Text v) {
       s.layout = parse_name<PageLayout, 2>(
           f, v, {{{"nhd", PageLayout::kNHD}, {"hnd", PageLayout::kHND}}});
     }},
    {"page-table", "Page table: block (default) or csr", false,
     [](ProblemSpec& s, Text f, Text v) {
       s.has_csr_table = parse_name<bool, 2>(f, v, {{{"block", false}, {"csr", true}}});
     }},
    {"padded", "Q as [batch, seqlen, heads, dim] instead of ragged", true,
     [](ProblemSpec& s, Text f, Text v) { s.is_padded = parse_bool(f, v); }},
    {"mask", kMaskGrammar, false,
     [](ProblemSpec& s, Text f, Text v) {
       Result<Mask> mask = parse_mask(v);
       if (!mask) fail(fmt::format("{}: {}", f, mask.status().message()));
       s.mask = *mask;
       s.mask_text = v;
     }},
    {"softcap", "Soft cap of the scores (default 0 = off)", false,
     [](ProblemSpec& s, Text f, Text v) {
       s.softcap = parse_number<float>(f, v, 0.0F, kMaxSoftcap);
     }},
    {"alibi", "ALiBi with the usual slopes", true,
     [](ProblemSpec& s, Text f, Text v) { s.has_alibi = parse_bool(f, v); }},
    {"sinks", "A random sink logit per query head", true,
     [](ProblemSpec& s, Text f, Text v) { s.has_sinks = parse_bool(f, v); }},
    {"lse", "Also compute the log-sum-exp", true,
     [](ProblemSpec& s, Text f, Text v) { s.has_lse = parse_bool(f, v); }},
    {"seed", "Seed of the random data (default 1)", false,
     [](ProblemSpec& s, Text f, Text v) {
       s.seed = parse_number<uint64_t>(f, v, 0, std::numeric_limits<uint64_t>::max());
     }},
});

// One length for all sequences or one for each.
void check_list(const std::string& flag, const std::vector<int64_t>& lengths, int64_t batch) {
  if (lengths.size() != 1 && static_cast<int64_t>(lengths.size()) != batch) {
    fail(fmt::format("{}: a list of {}, but the batch has {} sequences", flag, lengths.size(),
                     batch));
  }
}

ProblemSpec parse_fields(const RawProblem& raw, const std::string& prefix) {
  ProblemSpec spec;
  for (const Field& field : kFields) {
    const auto found = raw.find(field.name);
    if (found != raw.end()) field.set(spec, prefix + field.name, found->second);
  }
  if (!raw.contains("seqlen-kv")) spec.seqlens_kv = spec.seqlens_q;
  if (!raw.contains("batch")) {
    spec.batch = static_cast<int64_t>(std::max(spec.seqlens_q.size(), spec.seqlens_kv.size()));
  }
  check_list(prefix + "seqlen-q", spec.seqlens_q, spec.batch);
  check_list(prefix + "seqlen-kv", spec.seqlens_kv, spec.batch);
  if (spec.is_v_inside_k && spec.vo() > spec.head_dim_qk) {
    fail(
        fmt::format("{0}v-inside-k: K has {1} columns, V {2}: {0}v-head-dim is larger than "
                    "{0}head-dim",
                    prefix, spec.head_dim_qk, spec.vo()));
  }
  return spec;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kDense: return "dense";
    case Kind::kRagged: return "ragged";
    case Kind::kPaged: return "paged";
  }
  return "?";
}

// Fields of pages are refused where the cache has none.
void check_page_fields(const RawProblem& given, const ProblemSpec& spec,
                       const std::string& prefix) {
  if (spec.kv_kind == Kind::kPaged) return;
  for (const char* name : {"page-size", "layout", "page-table"}) {
    if (!given.contains(name)) continue;
    fail(fmt::format("{0}{1}: needs {0}kv paged; it is {2}", prefix, name, name_of(spec.kv_kind)));
  }
}

// One JSON value as the text that a flag would have.
std::string to_text(const std::string& key, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const nlohmann::json& item : value) {
    if (item.is_array() || item.is_object()) fail(fmt::format("problem.{}: nested list", key));
    text += (text.empty() ? "" : ",") + item.dump();
  }
  return text;
}

RawProblem raw_from_json(const nlohmann::json& json) {
  if (!json.is_object()) fail("problem: not a JSON object");
  RawProblem raw;
  for (const auto& [key, value] : json.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    const bool is_known = std::any_of(kFields.begin(), kFields.end(),
                                      [&](const Field& field) { return name == field.name; });
    if (!is_known) fail(fmt::format("problem.{}: no such field", key));
    raw[name] = to_text(key, value);
  }
  return raw;
}

std::string lengths_text(const std::vector<int64_t>& lengths) {
  if (lengths.size() <= 6) return fmt::format("{}", fmt::join(lengths, ","));
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  return fmt::format("{}..{}", *low, *high);
}

}  // namespace

void add_problem_options(CLI::App& command, RawProblem& raw) {
  for (const Field& field : kFields) {
    const std::string flag = std::string("--") + field.name;
    const auto keep = [&raw, name = std::string(field.name)](const std::string& value) {
      raw[name] = value;
    };
    CLI::Option* option = field.is_switch
                              ? command.add_flag_callback(
                                    flag, [keep] { keep("true"); }, field.help)
                              : command.add_option_function<std::string>(flag, keep, field.help);
    option->group("Problem");
  }
  command
      .add_option_function<std::string>(
          "--problem", [&raw](const std::string& value) { raw["problem"] = value; },
          "JSON file with these flags' names as keys; flags override it")
      ->group("Problem");
}

ProblemSpec parse_problem(const RawProblem& raw) {
  RawProblem merged = raw;
  if (const auto file = raw.find("problem"); file != raw.end()) {
    merged.merge(raw_from_json(read_json_file("--problem", file->second)));  // keeps the flags
  }
  ProblemSpec spec = parse_fields(merged, "--");
  // A --kv takes the place of the file's, whose pages then mean nothing.
  check_page_fields(raw.contains("kv") ? raw : merged, spec, "--");
  return spec;
}

ProblemSpec parse_problem_json(const nlohmann::json& json) {
  const RawProblem raw = raw_from_json(json);
  ProblemSpec spec = parse_fields(raw, "problem.");
  check_page_fields(raw, spec, "problem.");
  return spec;
}

nlohmann::ordered_json to_json(const ProblemSpec& spec) {
  const auto lengths = [](const std::vector<int64_t>& list) {
    return list.size() == 1 ? nlohmann::ordered_json(list[0]) : nlohmann::ordered_json(list);
  };
  nlohmann::ordered_json json = {{"batch", spec.batch},
                                 {"seqlen-q", lengths(spec.seqlens_q)},
                                 {"seqlen-kv", lengths(spec.seqlens_kv)},
                                 {"q-heads", spec.num_q_heads},
                                 {"kv-heads", spec.num_kv_heads},
                                 {"head-dim", spec.head_dim_qk},
                                 {"v-head-dim", spec.vo()},
                                 {"v-inside-k", spec.is_v_inside_k},
                                 {"dtype", name(spec.dtype)},
                                 {"kv-dtype", name(spec.kv())},
                                 {"out-dtype", name(spec.out())},
                                 {"kv", name_of(spec.kv_kind)}};
  if (spec.kv_kind == Kind::kPaged) {
    json["page-size"] = spec.page_size;
    json["layout"] = spec.layout == PageLayout::kNHD ? "nhd" : "hnd";
    json["page-table"] = spec.has_csr_table ? "csr" : "block";
  }
  json["padded"] = spec.is_padded;
  json["mask"] = spec.mask_text;
  json["softcap"] = spec.softcap;
  json["alibi"] = spec.has_alibi;
  json["sinks"] = spec.has_sinks;
  json["lse"] = spec.has_lse;
  json["seed"] = spec.seed;
  return json;
}

std::string ProblemSpec::summary() const {
  std::string text = fmt::format("{} sequence{}, q {}, kv {}, {}/{} heads of {}", batch,
                                 batch == 1 ? "" : "s", lengths_text(seqlens_q),
                                 lengths_text(seqlens_kv), num_q_heads, num_kv_heads, head_dim_qk);
  if (vo() != head_dim_qk) text += fmt::format("/{}", vo());
  if (is_v_inside_k) text += " inside K";
  text += fmt::format(", {}", name(dtype));
  if (kv() != dtype) text += fmt::format(" over {}", name(kv()));
  if (out_dtype) text += fmt::format(" to {}", name(*out_dtype));
  text += fmt::format(", {}", name_of(kv_kind));
  if (kv_kind == Kind::kPaged) text += fmt::format(" pages of {}", page_size);
  if (mask_text != "none") text += ", " + mask_text;
  if (softcap > 0) text += fmt::format(", softcap {}", softcap);
  if (has_alibi) text += ", alibi";
  if (has_sinks) text += ", sinks";
  return text;
}

}  // namespace pagoda::cli
