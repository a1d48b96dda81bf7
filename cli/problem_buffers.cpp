// Lays out a problem's tensors and fills them. Data repeat with a prime period, so that gigabytes
// are filled at memory speed and no period matches a page or a row.
#include "cli/problem_buffers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include "bench/machine.hpp"
#include "cli/terminal.hpp"
#include "core/element.hpp"
#include "core/int_math.hpp"
#include "softmax/score.hpp"

namespace pagoda::cli {
namespace {

using Kind = ProblemSpec::KVKind;
constexpr std::byte kNaNByte{0xff};           // four, two or one of it is NaN in every dtype
constexpr int64_t kPatternElements = 524287;  // prime
constexpr int64_t kSparePages = 2;            // pages that no sequence uses

int64_t product(std::initializer_list<int64_t> factors) {
  int64_t result = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) {
      fail(
          "the problem is beyond 2^63 bytes: check --batch, --seqlen-q, --seqlen-kv, --q-heads, "
          "--kv-heads, --head-dim");
    }
  }
  return result;
}

bench::Buffer allocate(std::initializer_list<int64_t> factors) {
  const int64_t bytes = product(factors);
  bench::Buffer buffer(bytes);
  if (buffer.data() == nullptr) {
    fail(
        fmt::format("no memory for a tensor of {}: check --batch, --seqlen-q, --seqlen-kv, "
                    "--q-heads, --kv-heads, --head-dim",
                    format_bytes(static_cast<double>(bytes))));
  }
  return buffer;
}

// Running sums as int32 offsets, [n + 1].
std::vector<int32_t> offsets(const std::string& flag, const std::vector<int32_t>& lengths) {
  std::vector<int32_t> sums{0};
  int64_t sum = 0;
  for (const int32_t length : lengths) {
    sum += length;
    if (sum > std::numeric_limits<int32_t>::max()) {
      fail(fmt::format("{}: {} tokens in all; offsets are 32-bit", flag, sum));
    }
    sums.push_back(static_cast<int32_t>(sum));
  }
  return sums;
}

int32_t largest(const std::vector<int32_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// Uniform values of variance 1.
void fill_random(std::span<std::byte> bytes, DType dtype, uint64_t seed) {
  std::mt19937_64 generator(seed);
  const float limit = std::sqrt(3.0F);
  std::uniform_real_distribution<float> uniform(-limit, limit);
  const int64_t element = size_bytes(dtype);
  const auto total = static_cast<int64_t>(bytes.size());
  const int64_t pattern = std::min(kPatternElements * element, total);
  for (int64_t i = 0; i < pattern / element; ++i) {
    core::store_element(bytes.data(), dtype, i, uniform(generator));
  }
  for (int64_t done = pattern; done < total; done += pattern) {
    std::memcpy(bytes.data() + done, bytes.data(),
                static_cast<size_t>(std::min(pattern, total - done)));
  }
}

void fill_nan(std::byte* begin, int64_t bytes) {
  std::memset(begin, std::to_integer<int>(kNaNByte), static_cast<size_t>(bytes));
}

// V of a cache: the first columns of K, or memory of its own, as K is.
ConstTensor values(const ProblemSpec& spec, const ConstTensor& k, const bench::Buffer& v) {
  ConstTensor values = k;
  const auto last = static_cast<size_t>(k.rank - 1);
  values.shape[last] = spec.vo();
  if (spec.is_v_inside_k) return values;
  values.data = v.data();
  for (size_t d = 0; d < last; ++d) values.strides[d] = k.strides[d] / spec.head_dim_qk * spec.vo();
  return values;
}

uint64_t fnv1a(uint64_t hash, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    hash = (hash ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace

ProblemBuffers::ProblemBuffers(const ProblemSpec& spec, bool has_data) {
  for (int64_t b = 0; b < spec.batch; ++b) {
    seqlens_q_.push_back(static_cast<int32_t>(spec.seqlen_q(b)));
    seqlens_kv_.push_back(static_cast<int32_t>(spec.seqlen_kv(b)));
  }
  build_queries(spec);
  build_kv(spec);
  build_extras(spec);
  attention_.max_seqlen_q = largest(seqlens_q_);
  attention_.max_seqlen_kv = largest(seqlens_kv_);
  if (!has_data) return;
  const int64_t free_bytes = bench::describe_machine().free_memory_bytes;
  if (free_bytes > 0 && total_bytes() > free_bytes) {
    fail(
        fmt::format("the problem needs {}, but {} are free: check --batch, --seqlen-q, --seqlen-kv",
                    format_bytes(static_cast<double>(total_bytes())),
                    format_bytes(static_cast<double>(free_bytes))));
  }
  fill_data(spec);
}

int64_t ProblemBuffers::total_bytes() const {
  return q_.bytes() + k_.bytes() + v_.bytes() + out_.bytes() + lse_.bytes();
}

void ProblemBuffers::build_queries(const ProblemSpec& spec) {
  const DType out_dtype = spec.out();
  const int64_t padded = largest(seqlens_q_);
  cu_seqlens_q_ = offsets("--seqlen-q", seqlens_q_);
  const int64_t rows = spec.is_padded ? product({spec.batch, padded}) : cu_seqlens_q_.back();
  q_ = allocate({rows, spec.num_q_heads, spec.head_dim_qk, size_bytes(spec.dtype)});
  out_ = allocate({rows, spec.num_q_heads, spec.vo(), size_bytes(out_dtype)});
  if (spec.has_lse) lse_ = allocate({rows, spec.num_q_heads, 4});

  Attention& a = attention_;
  const int64_t heads = spec.num_q_heads;
  if (spec.is_padded) {
    a.q = ConstTensor::contiguous(q_.data(), spec.dtype,
                                  {spec.batch, padded, heads, spec.head_dim_qk});
    a.out = Tensor::contiguous(out_.data(), out_dtype, {spec.batch, padded, heads, spec.vo()});
    if (spec.has_lse) {
      a.lse = Tensor::contiguous(lse_.data(), DType::kF32, {spec.batch, padded, heads});
    }
    // Without padding rows the call has no used lengths.
    if (std::any_of(seqlens_q_.begin(), seqlens_q_.end(),
                    [padded](int32_t length) { return length < padded; })) {
      a.seqlens_q = seqlens_q_;
    }
  } else {
    a.q = ConstTensor::contiguous(q_.data(), spec.dtype, {rows, heads, spec.head_dim_qk});
    a.out = Tensor::contiguous(out_.data(), out_dtype, {rows, heads, spec.vo()});
    if (spec.has_lse) a.lse = Tensor::contiguous(lse_.data(), DType::kF32, {rows, heads});
    a.cu_seqlens_q = cu_seqlens_q_;
  }
}

void ProblemBuffers::build_kv(const ProblemSpec& spec) {
  if (spec.kv_kind == Kind::kPaged) {
    build_paged_kv(spec);
  } else {
    build_contiguous_kv(spec);
  }
}

void ProblemBuffers::build_contiguous_kv(const ProblemSpec& spec) {
  const int64_t heads = spec.num_kv_heads;
  const int64_t element = size_bytes(spec.kv());
  if (spec.kv_kind == Kind::kRagged) {
    cu_seqlens_kv_ = offsets("--seqlen-kv", seqlens_kv_);
    const int64_t rows = cu_seqlens_kv_.back();
    k_ = allocate({rows, heads, spec.head_dim_qk, element});
    if (!spec.is_v_inside_k) v_ = allocate({rows, heads, spec.vo(), element});
    const ConstTensor k =
        ConstTensor::contiguous(k_.data(), spec.kv(), {rows, heads, spec.head_dim_qk});
    attention_.kv = RaggedKV{.k = k, .v = values(spec, k, v_), .cu_seqlens_kv = cu_seqlens_kv_};
    return;
  }
  const int64_t padded = largest(seqlens_kv_);
  k_ = allocate({spec.batch, padded, heads, spec.head_dim_qk, element});
  if (!spec.is_v_inside_k) v_ = allocate({spec.batch, padded, heads, spec.vo(), element});
  const ConstTensor k =
      ConstTensor::contiguous(k_.data(), spec.kv(), {spec.batch, padded, heads, spec.head_dim_qk});
  attention_.kv = DenseKV{.k = k, .v = values(spec, k, v_), .seqlens_kv = seqlens_kv_};
}

void ProblemBuffers::build_paged_kv(const ProblemSpec& spec) {
  const auto page_size = static_cast<int32_t>(spec.page_size);
  std::vector<int32_t> counts;
  for (const int32_t length : seqlens_kv_) {
    counts.push_back(static_cast<int32_t>(core::ceil_div<int64_t>(length, page_size)));
    last_page_len_.push_back(length == 0 ? page_size : (length - 1) % page_size + 1);
  }
  indptr_ = offsets("--seqlen-kv", counts);
  num_pages_ = indptr_.back() + kSparePages;
  const int64_t heads = spec.num_kv_heads;
  k_ = allocate({num_pages_, page_size, heads, spec.head_dim_qk, size_bytes(spec.kv())});
  if (!spec.is_v_inside_k) {
    v_ = allocate({num_pages_, page_size, heads, spec.vo(), size_bytes(spec.kv())});
  }

  std::vector<int32_t> order(static_cast<size_t>(num_pages_));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(spec.seed + 17));
  order.resize(order.size() - kSparePages);

  const bool is_nhd = spec.layout == PageLayout::kNHD;
  const int64_t dim = spec.head_dim_qk;
  const ConstTensor k =
      is_nhd ? ConstTensor::contiguous(k_.data(), spec.kv(), {num_pages_, page_size, heads, dim})
             : ConstTensor::contiguous(k_.data(), spec.kv(), {num_pages_, heads, page_size, dim});
  PagedKV kv{.k = k, .v = values(spec, k, v_), .layout = spec.layout, .table = {}};
  if (spec.has_csr_table) {
    pages_ = std::move(order);
    kv.table = CsrPages{.indptr = indptr_, .indices = pages_, .last_page_len = last_page_len_};
  } else {
    const int64_t row = std::max(1, largest(counts));
    pages_.assign(static_cast<size_t>(product({spec.batch, row})), -1);
    for (size_t b = 0; b < counts.size(); ++b) {
      std::copy_n(order.begin() + indptr_[b], counts[b],
                  pages_.begin() + static_cast<int64_t>(b) * row);
    }
    kv.table =
        BlockTable{MatrixView<int32_t>::contiguous(pages_.data(), spec.batch, row), seqlens_kv_};
  }
  attention_.kv = kv;
}

void ProblemBuffers::build_extras(const ProblemSpec& spec) {
  attention_.mask = spec.mask;
  attention_.score_mod.softcap = spec.softcap;
  const auto heads = static_cast<size_t>(spec.num_q_heads);
  if (spec.has_alibi) {
    const auto count = static_cast<int32_t>(spec.num_q_heads);
    for (int32_t h = 0; h < count; ++h) slopes_.push_back(softmax::alibi_slope(h, count));
    attention_.score_mod.alibi_slopes = slopes_;
  }
  if (spec.has_sinks) {
    std::mt19937_64 generator(spec.seed + 31);
    std::normal_distribution<float> normal;
    for (size_t h = 0; h < heads; ++h) sinks_.push_back(normal(generator));
    attention_.sinks = sinks_;
  }
}

void ProblemBuffers::fill_data(const ProblemSpec& spec) {
  fill_random(q_.span(), spec.dtype, spec.seed);
  fill_random(k_.span(), spec.kv(), spec.seed + 1);
  if (!spec.is_v_inside_k) fill_random(v_.span(), spec.kv(), spec.seed + 2);
  clear_unused_slots(spec);
  poison_outputs();
}

void ProblemBuffers::poison_outputs() {
  fill_nan(out_.data(), out_.bytes());
  if (lse_.data() != nullptr) fill_nan(lse_.data(), lse_.bytes());
}

void ProblemBuffers::clear_unused_slots(const ProblemSpec& spec) {
  // Rows [used, count) of the block that begins at `row`; `row_bytes` apart.
  const auto clear_rows = [](const bench::Buffer& of, int64_t row, int64_t used, int64_t count,
                             int64_t row_bytes) {
    if (of.data() == nullptr) return;  // V inside K
    fill_nan(of.data() + (row + used) * row_bytes, (count - used) * row_bytes);
  };
  const int64_t q_row = spec.num_q_heads * spec.head_dim_qk * size_bytes(spec.dtype);
  const int64_t k_row = spec.num_kv_heads * spec.head_dim_qk * size_bytes(spec.kv());
  const int64_t v_row = spec.num_kv_heads * spec.vo() * size_bytes(spec.kv());
  if (spec.is_padded) {
    const int64_t padded = largest(seqlens_q_);
    for (int64_t b = 0; b < spec.batch; ++b) {
      clear_rows(q_, b * padded, spec.seqlen_q(b), padded, q_row);
    }
  }
  if (spec.kv_kind == Kind::kDense) {
    const int64_t padded = largest(seqlens_kv_);
    for (int64_t b = 0; b < spec.batch; ++b) {
      clear_rows(k_, b * padded, spec.seqlen_kv(b), padded, k_row);
      clear_rows(v_, b * padded, spec.seqlen_kv(b), padded, v_row);
    }
  }
  if (spec.kv_kind != Kind::kPaged) return;

  // Valid rows of each page; 0 for the spare ones.
  std::vector<int64_t> used(static_cast<size_t>(num_pages_), 0);
  const int64_t row = spec.has_csr_table ? 0 : static_cast<int64_t>(pages_.size()) / spec.batch;
  for (size_t b = 0; b < seqlens_kv_.size(); ++b) {
    const int64_t first = spec.has_csr_table ? indptr_[b] : static_cast<int64_t>(b) * row;
    for (int32_t i = 0; i < indptr_[b + 1] - indptr_[b]; ++i) {
      used[static_cast<size_t>(pages_[static_cast<size_t>(first + i)])] =
          std::min<int64_t>(spec.page_size, seqlens_kv_[b] - i * spec.page_size);
    }
  }
  const bool is_nhd = spec.layout == PageLayout::kNHD;
  const int64_t blocks = is_nhd ? 1 : spec.num_kv_heads;  // of page_size rows each, per page
  for (int64_t page = 0; page < num_pages_; ++page) {
    const int64_t rows = used[static_cast<size_t>(page)];
    if (rows == spec.page_size) continue;
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t block = (page * blocks + i) * spec.page_size;
      clear_rows(k_, block, rows, spec.page_size, k_row / blocks);
      clear_rows(v_, block, rows, spec.page_size, v_row / blocks);
    }
  }
}

uint64_t ProblemBuffers::checksum() const {
  uint64_t hash = fnv1a(0xcbf29ce484222325U, out_.span());
  if (lse_.data() != nullptr) hash = fnv1a(hash, lse_.span());
  return hash;
}

}  // namespace pagoda::cli
