// ProblemBuffers: memory and random data for a ProblemSpec, and the Attention over them. Unused
// cache slots and outputs hold NaN; pages are in random order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/buffer.hpp"
#include "cli/problem_spec.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::cli {

class ProblemBuffers {
 public:
  // Without data, the pointers are valid but no memory is touched: sufficient to plan and to
  // explain. Ends the command if the shape exceeds the address space or the memory.
  ProblemBuffers(const ProblemSpec& spec, bool has_data);
  ProblemBuffers(const ProblemBuffers&) = delete;
  ProblemBuffers& operator=(const ProblemBuffers&) = delete;

  // Borrows from this object.
  [[nodiscard]] const Attention& attention() const { return attention_; }

  // Fills the outputs with NaN.
  void poison_outputs();
  // FNV-1a over the bytes of the output, and of the LSE if present.
  [[nodiscard]] uint64_t checksum() const;
  [[nodiscard]] int64_t q_bytes() const { return q_.bytes(); }
  [[nodiscard]] int64_t out_bytes() const { return out_.bytes(); }
  [[nodiscard]] int64_t total_bytes() const;

 private:
  void build_queries(const ProblemSpec& spec);
  void build_kv(const ProblemSpec& spec);
  void build_contiguous_kv(const ProblemSpec& spec);
  void build_paged_kv(const ProblemSpec& spec);
  void build_extras(const ProblemSpec& spec);
  void fill_data(const ProblemSpec& spec);
  void clear_unused_slots(const ProblemSpec& spec);

  Attention attention_;
  bench::Buffer q_, k_, v_, out_, lse_;
  std::vector<int32_t> cu_seqlens_q_, cu_seqlens_kv_, seqlens_q_, seqlens_kv_;
  std::vector<int32_t> pages_, indptr_, last_page_len_;
  std::vector<float> sinks_, slopes_;
  int64_t num_pages_ = 0;
};

}  // namespace pagoda::cli
