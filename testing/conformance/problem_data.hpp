// ProblemData: a Case turned into memory. It holds the call under test and, apart from it, the same
// values in one plain dense fp32 form for the reference, so that an error in strides, offsets or
// page tables is not made on both sides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "pagoda/attention.hpp"
#include "testing/conformance/case.hpp"
#include "testing/conformance/mask_material.hpp"
#include "testing/conformance/memory.hpp"
#include "testing/mirror/mirror.hpp"

namespace pagoda::conformance {

class ProblemData {
 public:
  // Without values the inputs are NaN: for plans, which read none.
  explicit ProblemData(Case c, bool has_values = true);
  ProblemData(const ProblemData&) = delete;  // attention() and canonical() point into it
  ProblemData& operator=(const ProblemData&) = delete;

  [[nodiscard]] const Attention& attention() const { return attention_; }
  // Q padded, K and V dense, contiguous fp32; no outputs.
  [[nodiscard]] const core::Problem& canonical() const { return canonical_; }

  // Rows that the call writes for sequence b, padding rows included.
  [[nodiscard]] int32_t output_rows(int32_t b) const;
  [[nodiscard]] float out(int32_t b, int32_t row, int32_t head, int32_t d) const;
  [[nodiscard]] float lse(int32_t b, int32_t row, int32_t head) const;  // natural logarithm
  [[nodiscard]] float row_max(int32_t b, int32_t row, int32_t head) const;
  // The bits of everything written for sequence b's valid rows.
  [[nodiscard]] std::vector<uint32_t> result_bits(int32_t b) const;

  // The first of the zeroed rows past the last sequence that is not; empty = none.
  [[nodiscard]] std::string unzeroed_row() const;

  void poison_outputs();
  // A write outside the outputs or into an input; empty = none.
  [[nodiscard]] std::string damage() const;

  // Properties of the memory, for a mirror of the call.
  [[nodiscard]] mirror::Surroundings surroundings();
  [[nodiscard]] int64_t input_bytes() const {
    return q_memory_.bytes() + k_memory_.bytes() + v_memory_.bytes();
  }
  // The maxima of query rows (ragged: unused ones included) and keys over all sequences.
  [[nodiscard]] int32_t max_seqlen_q() const;
  [[nodiscard]] int32_t max_seqlen_kv() const;

  // For tests of the tests.
  OutputTensor& mutable_out() { return out_; }
  OutputTensor& mutable_lse() { return lse_; }
  void touch_input() { k_memory_.data()[0] ^= std::byte{1}; }

 private:
  void measure();
  void draw_values(bool has_values);
  void make_query();
  void make_cache();
  void make_contiguous_cache();
  void make_pages();
  void make_page_table(const std::vector<std::vector<int32_t>>& pages_of);
  void make_scalars();
  void make_outputs();
  void make_canonical();

  [[nodiscard]] size_t batch() const { return case_.lengths.sequences.size(); }
  [[nodiscard]] const Sequence& sequence(size_t b) const { return case_.lengths.sequences[b]; }
  [[nodiscard]] int32_t leftpad(size_t b) const {
    return case_.leftpad * static_cast<int32_t>((sequence(b).id + 1) % 3);
  }
  [[nodiscard]] int32_t most_leftpad() const { return 2 * case_.leftpad; }
  // A scale of each sequence and head, and the tensor that says so.
  [[nodiscard]] ConstTensor draw_scales(Scales scales, int32_t heads, float first, float step,
                                        std::vector<float>& values) const;
  [[nodiscard]] float k_value(size_t b, int64_t key, int64_t head, int64_t d) const;
  [[nodiscard]] float v_value(size_t b, int64_t key, int64_t head, int64_t d) const;
  [[nodiscard]] float statistic(const OutputTensor& memory, int32_t b, int32_t row,
                                int32_t head) const;
  [[nodiscard]] uint64_t input_checksum() const;

  const Case case_;
  int32_t rows_ = 0, keys_ = 0;   // extents of the padded, dense form
  std::vector<float> q_, k_, v_;  // that form: [batch, rows | keys, heads, dim]
  std::vector<int32_t> q_lengths_, q_offsets_, kv_lengths_, kv_offsets_, cache_lengths_;
  std::vector<int32_t> leftpads_, used_kv_;  // used_kv_: keys and the left padding before them
  std::vector<int32_t> table_, indptr_, indices_, last_page_len_;
  std::vector<float> slopes_, sinks_, q_scales_, k_scales_, v_scales_;
  Memory q_memory_, k_memory_, v_memory_;
  OutputTensor out_, lse_, row_max_;
  std::optional<MaskMaterial> material_;
  Attention attention_;
  core::Problem canonical_;
  uint64_t checksum_ = 0;
};

}  // namespace pagoda::conformance
