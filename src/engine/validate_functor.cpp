// Checks the functor of a call: its name, its value, its arrays. Checked mode: what visible() says
// of the rows of host memory, pair by pair.
#include <algorithm>
#include <array>
#include <string>

#include "engine/functors.hpp"
#include "engine/validate_steps.hpp"

namespace pagoda::engine {
namespace {

// Row tiles of visible(): a row, and tiles that start anywhere in a work tile of a kernel.
constexpr std::array<int32_t, 4> kCheckedRows = {1, 16, 64, 192};

bool contains(KeyRange range, int32_t key) { return range.begin <= key && key < range.end; }

std::string rows_text(const QueryRows& rows) {
  return "rows " + std::to_string(rows.first_row) + " to " + std::to_string(rows.last_row()) +
         " of sequence " + std::to_string(rows.sequence);
}

std::string pair_text(const QueryRow& row, int32_t key) {
  return "key " + std::to_string(key) + " of row " + std::to_string(row.row) + ", head " +
         std::to_string(row.q_head);
}

// Compares visible() of one tile of rows with keep().
Status check_tile(const core::Problem& p, const QueryRows& rows) {
  const core::RegisteredFunctor& type = *p.functor.type;
  const VisibleKeys seen = type.visible(p.functor.value, rows);
  const bool has_both = seen.keys.begin < seen.keys.end && seen.prefix.begin < seen.prefix.end;
  if (has_both && seen.prefix.begin > seen.keys.begin) {
    return complain("functor", '"' + type.name + '"',
                    "visible() of " + rows_text(rows) + " has a prefix that begins after its keys");
  }
  for (int32_t i = 0; i < rows.num_rows; ++i) {
    for (int32_t head = 0; head < p.num_q_heads; ++head) {
      const QueryRow row{rows.sequence, rows.seqlen_kv, rows.first_row + i, rows.first_position + i,
                         head};
      for (int32_t key = 0; key < rows.seqlen_kv; ++key) {
        const bool is_kept = p.functor.keep(row, key);
        const bool is_visible = contains(seen.keys, key) || contains(seen.prefix, key);
        if (is_kept && !is_visible) {
          return complain("functor", '"' + type.name + '"',
                          "keep() keeps " + pair_text(row, key) + ", which visible() of " +
                              rows_text(rows) + " leaves out");
        }
        if (!is_kept && contains(seen.unmasked, key)) {
          return complain("functor", '"' + type.name + '"',
                          "keep() excludes " + pair_text(row, key) + ", which visible() of " +
                              rows_text(rows) + " calls unmasked");
        }
      }
    }
  }
  return {};
}

}  // namespace

Status check_functor(const Attention& a, core::Problem& p) {
  const FunctorCall& call = a.functor;
  if (call.name.empty()) {
    if (call.value_bytes == 0 && call.num_arrays == 0) return {};
    return complain("functor.name", "\"\"", "must be given: functor has a value or arrays");
  }
  const std::string name = '"' + std::string(call.name) + '"';
  const core::RegisteredFunctor* type = find_functor(call.name);
  if (type == nullptr) {
    const std::string names = functor_names();
    return complain("functor.name", name,
                    names.empty() ? "this program has registered no functor"
                                  : "must be one of the registered functors: " + names);
  }
  if (is_ambiguous(*type)) {
    return complain("functor.name", name, "two functors are registered by this name");
  }
  if (a.q.device.type == DeviceType::kCpu && !type->has_host_code()) {
    return complain("functor.name", name,
                    "it was compiled at run time, for GPUs alone; calls in host memory need a "
                    "functor that is compiled into the program");
  }
  if (call.value_bytes != type->value_bytes) {
    return complain("functor.value_bytes", int64_t{call.value_bytes},
                    "must be the size of " + name + ", " + std::to_string(type->value_bytes));
  }
  if (call.num_arrays < 0 || call.num_arrays > kMaxFunctorArrays) {
    return complain("functor.num_arrays", int64_t{call.num_arrays},
                    "must be in [0, " + std::to_string(kMaxFunctorArrays) + "]");
  }
  for (int32_t i = 0; i < call.num_arrays; ++i) {
    const FunctorCall::Array& array = call.arrays[static_cast<size_t>(i)];
    if (Status s = check_address(element_name("functor.arrays", i), array.data, array.bytes, 1);
        !s) {
      return s;
    }
  }
  p.functor = {type, call.value.data(), {call.arrays.data(), static_cast<size_t>(call.num_arrays)}};
  return {};
}

Status check_functor_ranges(const core::Problem& p) {
  if (!p.functor.has_mask() || p.functor.type->visible == nullptr) return {};
  for (int32_t b = 0; b < p.batch; ++b) {
    const int32_t num_rows = p.seqlen_q(b), position = p.q_position(b);
    for (const int32_t tile : kCheckedRows) {
      for (int32_t first = 0; first < num_rows; first += tile) {
        const QueryRows rows{b, p.seqlen_kv(b), first, std::min(tile, num_rows - first),
                             position + first};
        if (Status s = check_tile(p, rows); !s) return s;
      }
    }
  }
  return {};
}

}  // namespace pagoda::engine
