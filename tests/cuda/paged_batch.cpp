// Makes the arrays, computes the expected result with the CPU back end, compares.
#include "paged_batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include "core/element.hpp"

namespace pagoda::cuda_tests {
namespace {

constexpr int32_t kNoPage = 0x7ffffff0;
constexpr uint16_t kNaN = 0x7fc0;

// Relative to the largest value of a row and head: P and O are rounded to bf16, 2^-8 each; twice
// that.
constexpr float kOutTolerance = 0x1p-6F;
constexpr float kLseTolerance = 1e-4F;

std::vector<float> widened(const std::vector<uint16_t>& values) {
  std::vector<float> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), core::bf16_to_float);
  return result;
}

bool is_untouched(float value) { return core::float_to_bits(value) == 0xffffffffU; }

}  // namespace

Attention attention_over(const BatchShape& shape, const BatchMemory& memory) {
  const auto rows_of = [&](auto* data, int64_t last, DType dtype) {
    using Elements = BasicTensor<std::remove_pointer_t<decltype(data)>>;
    if (shape.is_ragged) {
      return last == 0
                 ? Elements::contiguous(data, dtype, {shape.total_q, shape.q_heads}, memory.device)
                 : Elements::contiguous(data, dtype, {shape.total_q, shape.q_heads, last},
                                        memory.device);
    }
    return last == 0
               ? Elements::contiguous(data, dtype, {shape.batch, shape.max_q, shape.q_heads},
                                      memory.device)
               : Elements::contiguous(data, dtype, {shape.batch, shape.max_q, shape.q_heads, last},
                                      memory.device);
  };
  const auto pool = [&](const void* data) {
    return ConstTensor::contiguous(data, memory.dtype,
                                   {shape.num_pages(), shape.kv_heads, shape.page_size, shape.dim},
                                   memory.device);
  };
  const int64_t batch = shape.batch;
  Attention a;
  a.q = rows_of(memory.q, shape.dim, memory.dtype);
  a.out = rows_of(memory.out, shape.dim, memory.dtype);
  a.lse = rows_of(memory.lse, 0, DType::kF32);
  if (shape.is_ragged) a.cu_seqlens_q = {memory.cu_seqlens_q, batch + 1, memory.device};
  const BlockTable table{
      MatrixView<int32_t>::contiguous(memory.table, batch, shape.pages_a_sequence(), memory.device),
      {memory.seqlens_kv, batch, memory.device}};
  a.kv =
      PagedKV{.k = pool(memory.k), .v = pool(memory.v), .layout = PageLayout::kHND, .table = table};
  a.max_seqlen_q = shape.max_q;
  a.max_seqlen_kv = shape.max_kv;
  a.mask = Mask::causal();
  return a;
}

PagedBatch::PagedBatch(const BatchShape& shape, const StepLengths& lengths, uint32_t seed)
    : seqlens_kv(lengths.kv), shape_(shape) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto fill = [&](std::vector<uint16_t>& values, int64_t count) {
    values.resize(static_cast<size_t>(count));
    for (uint16_t& value : values) value = core::float_to_bf16(normal(random));
  };
  fill(q, shape.rows() * shape.q_heads * shape.dim);
  fill(k, shape.num_pages() * shape.kv_heads * shape.page_size * shape.dim);
  fill(v, static_cast<int64_t>(k.size()));
  cu_seqlens_q.assign(1, 0);
  for (const int32_t count : lengths.q) cu_seqlens_q.push_back(cu_seqlens_q.back() + count);
  if (shape.is_ragged && cu_seqlens_q.back() > shape.total_q) {
    throw std::logic_error("the step has more rows than its shape");
  }
  hand_out_pages(lengths, seed);
  compute_expected();
}

// Pages in random order. Slots past a sequence's end, and unused pages, hold NaN.
void PagedBatch::hand_out_pages(const StepLengths& lengths, uint32_t seed) {
  std::vector<int32_t> free(static_cast<size_t>(shape_.num_pages()));
  std::iota(free.begin(), free.end(), 0);
  std::shuffle(free.begin(), free.end(), std::mt19937(seed + 1));
  table.assign(static_cast<size_t>(shape_.batch * shape_.pages_a_sequence()), kNoPage);
  const auto clear = [&](int32_t page, int32_t from) {
    for (int32_t head = 0; head < shape_.kv_heads; ++head) {
      const int64_t row = (int64_t{page} * shape_.kv_heads + head) * shape_.page_size;
      const auto begin = static_cast<ptrdiff_t>((row + from) * shape_.dim);
      const auto end = static_cast<ptrdiff_t>((row + shape_.page_size) * shape_.dim);
      std::fill(k.begin() + begin, k.begin() + end, kNaN);
      std::fill(v.begin() + begin, v.begin() + end, kNaN);
    }
  };
  for (int32_t b = 0; b < shape_.batch; ++b) {
    int32_t left = lengths.kv[static_cast<size_t>(b)];
    for (int64_t i = b * shape_.pages_a_sequence(); left > 0; ++i, left -= shape_.page_size) {
      table[static_cast<size_t>(i)] = free.back();
      if (left < shape_.page_size) clear(free.back(), left);
      free.pop_back();
    }
  }
  for (const int32_t page : free) clear(page, 0);
}

void PagedBatch::compute_expected() {
  const std::vector<float> q32 = widened(q), k32 = widened(k), v32 = widened(v);
  const auto rows = static_cast<size_t>(shape_.rows() * shape_.q_heads);
  expected_out.assign(rows * static_cast<size_t>(shape_.dim),
                      std::numeric_limits<float>::quiet_NaN());
  expected_lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
  // The host's rows must end where its offsets do.
  BatchShape exact = shape_;
  if (exact.is_ragged) exact.total_q = cu_seqlens_q.back();
  const Attention call = attention_over(exact, {.q = q32.data(),
                                                .k = k32.data(),
                                                .v = v32.data(),
                                                .out = expected_out.data(),
                                                .lse = expected_lse.data(),
                                                .cu_seqlens_q = cu_seqlens_q.data(),
                                                .seqlens_kv = seqlens_kv.data(),
                                                .table = table.data(),
                                                .dtype = DType::kF32});
  if (const Status status = run(call); !status) throw std::runtime_error(status.message());
}

int64_t PagedBatch::first_row(int32_t b) const {
  return shape_.is_ragged ? cu_seqlens_q[static_cast<size_t>(b)] : int64_t{b} * shape_.max_q;
}

std::string PagedBatch::difference(const std::vector<uint16_t>& out,
                                   const std::vector<float>& lse) const {
  const int64_t rows = shape_.is_ragged ? cu_seqlens_q.back() : shape_.rows();
  const auto dim = static_cast<size_t>(shape_.dim);
  for (size_t head = 0; head < lse.size(); ++head) {
    const auto row = static_cast<int64_t>(head) / shape_.q_heads;
    const std::string where = "row " + std::to_string(row) + ", head " +
                              std::to_string(static_cast<int64_t>(head) % shape_.q_heads);
    const uint16_t* got = &out[head * dim];
    if (row >= rows) {
      if (std::any_of(got, got + dim, [](uint16_t x) { return x != kUntouched; }) ||
          !is_untouched(lse[head])) {
        return where + " belongs to no sequence and was written";
      }
      continue;
    }
    const float* want = &expected_out[head * dim];
    float largest = 0;
    for (size_t d = 0; d < dim; ++d) largest = std::max(largest, std::fabs(want[d]));
    for (size_t d = 0; d < dim; ++d) {
      const float value = core::bf16_to_float(got[d]);
      // Negated: NaN must not pass.
      if (!(std::fabs(value - want[d]) <= kOutTolerance * largest)) {
        return where + ", element " + std::to_string(d) + " is " + std::to_string(value) +
               ", want " + std::to_string(want[d]);
      }
    }
    if (lse[head] != expected_lse[head] &&
        !(std::fabs(lse[head] - expected_lse[head]) <= kLseTolerance)) {
      return "LSE of " + where + " is " + std::to_string(lse[head]) + ", want " +
             std::to_string(expected_lse[head]);
    }
  }
  return {};
}

}  // namespace pagoda::cuda_tests
