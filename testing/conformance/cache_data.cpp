// The cache of a case: dense, ragged or paged memory filled with the drawn values, NaN everywhere
// else, physical pages shuffled, unused table entries out of range.
#include <algorithm>
#include <numeric>

#include "testing/conformance/problem_data.hpp"
#include "testing/conformance/random.hpp"

namespace pagoda::conformance {
namespace {

constexpr int32_t kUnusedPages = 3;
constexpr int32_t kInvalidPage = 0x3fffffff;  // reading it crashes instead of giving a wrong number

}  // namespace

float ProblemData::k_value(size_t b, int64_t key, int64_t head, int64_t d) const {
  const auto row = static_cast<int64_t>(b) * keys_ + key;
  return k_[static_cast<size_t>((row * case_.kv_heads + head) * case_.dim_qk + d)];
}

float ProblemData::v_value(size_t b, int64_t key, int64_t head, int64_t d) const {
  const auto row = static_cast<int64_t>(b) * keys_ + key;
  return v_[static_cast<size_t>((row * case_.kv_heads + head) * case_.dim_vo + d)];
}

void ProblemData::make_cache() {
  int32_t total = 0;
  kv_offsets_.push_back(0);
  for (size_t b = 0; b < batch(); ++b) {
    kv_lengths_.push_back(sequence(b).kv);
    leftpads_.push_back(leftpad(b));
    used_kv_.push_back(leftpad(b) + sequence(b).kv);
    kv_offsets_.push_back(total += used_kv_.back() + case_.padding_keys);
  }
  if (case_.leftpad > 0) attention_.leftpad_kv = leftpads_;
  if (case_.is_paged()) {
    make_pages();
  } else {
    make_contiguous_cache();
  }
}

// [batch, keys, heads, dim] or [total_kv, heads, dim].
void ProblemData::make_contiguous_cache() {
  const bool is_dense = case_.kv_layout == KVLayout::kDense;
  const int64_t keys = keys_ + most_leftpad();  // dense: rows of a sequence
  const auto fill = [&](Memory& memory, int32_t dim, auto value) {
    const int64_t head_stride = dim + case_.inner_gap;
    const int64_t row_stride = case_.kv_heads * head_stride + case_.middle_gap;
    const int64_t outer_stride = is_dense ? keys * row_stride + case_.outer_gap : 0;
    const auto n = static_cast<int64_t>(batch());
    const int64_t last = is_dense ? (n - 1) * outer_stride + (keys - 1) * row_stride
                                  : (kv_offsets_.back() - 1) * row_stride;
    memory = Memory((std::max<int64_t>(last + (case_.kv_heads - 1) * head_stride, 0) + dim) *
                    size_bytes(case_.kv_dtype));
    memory.fill_with_nan(case_.kv_dtype);
    for (size_t b = 0; b < batch(); ++b) {
      const int64_t start =
          (is_dense ? static_cast<int64_t>(b) * outer_stride : kv_offsets_[b] * row_stride) +
          leftpads_[b] * row_stride;
      for (int64_t key = 0; key < sequence(b).kv; ++key) {
        for (int64_t h = 0; h < case_.kv_heads; ++h) {
          memory.store(case_.kv_dtype, start + key * row_stride + h * head_stride, dim,
                       [&](int64_t d) { return value(b, key, h, d); });
        }
      }
    }
    ConstTensor t = is_dense ? ConstTensor::contiguous(memory.data(), case_.kv_dtype,
                                                       {n, keys, case_.kv_heads, dim})
                             : ConstTensor::contiguous(memory.data(), case_.kv_dtype,
                                                       {kv_offsets_.back(), case_.kv_heads, dim});
    if (is_dense) {
      t.strides = {outer_stride, row_stride, head_stride, 1};
    } else {
      t.strides = {row_stride, head_stride, 1};
    }
    return t;
  };
  const ConstTensor k =
      fill(k_memory_, case_.dim_qk,
           [&](size_t b, int64_t j, int64_t h, int64_t d) { return k_value(b, j, h, d); });
  const ConstTensor v =
      fill(v_memory_, case_.dim_vo,
           [&](size_t b, int64_t j, int64_t h, int64_t d) { return v_value(b, j, h, d); });
  if (!is_dense) {
    attention_.kv = RaggedKV{k, v, kv_offsets_, {}};
    if (case_.padding_keys > 0) std::get<RaggedKV>(attention_.kv).seqlens_kv = used_kv_;
    return;
  }
  const bool is_full =
      std::all_of(used_kv_.begin(), used_kv_.end(), [&](int32_t length) { return length == keys; });
  attention_.kv = DenseKV{k, v, is_full ? ArrayView<int32_t>{} : used_kv_};
}

void ProblemData::make_pages() {
  const int32_t page_size = case_.page_size;
  std::vector<std::vector<int32_t>> pages_of(batch());
  int32_t used = 0;
  for (size_t b = 0; b < batch(); ++b) {
    pages_of[b].resize(static_cast<size_t>((used_kv_[b] + page_size - 1) / page_size));
    used += static_cast<int32_t>(pages_of[b].size());
  }
  std::vector<int32_t> ids(static_cast<size_t>(used + kUnusedPages));
  std::iota(ids.begin(), ids.end(), 0);
  Random random(case_.name + "/pages");
  for (size_t i = ids.size(); i > 1; --i) {
    std::swap(ids[i - 1], ids[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  size_t next = 0;
  for (auto& pages : pages_of) {
    for (int32_t& page : pages) page = static_cast<int32_t>(ids[next++] * case_.page_id_step);
  }
  const int64_t num_pages = (static_cast<int64_t>(ids.size()) - 1) * case_.page_id_step + 1;

  // Strides of one page, by layout; the last page ends with its last vector.
  const bool is_hnd = case_.page_layout == PageLayout::kHND;
  struct Strides {
    int64_t row, head, page, page_extent;
  };
  const auto strides_of = [&](int32_t dim) {
    const int64_t inner = dim + case_.inner_gap;
    const int64_t middle = (is_hnd ? page_size : case_.kv_heads) * inner + case_.middle_gap;
    const int64_t row = is_hnd ? inner : middle;
    const int64_t head = is_hnd ? middle : inner;
    return Strides{row, head, (is_hnd ? case_.kv_heads : page_size) * middle + case_.outer_gap,
                   (page_size - 1) * row + (case_.kv_heads - 1) * head + dim};
  };
  Strides k = strides_of(case_.dim_qk);
  Strides v = strides_of(case_.dim_vo);
  const int64_t element = size_bytes(case_.kv_dtype);
  int64_t v_start = 0;
  Memory* v_home = &k_memory_;
  switch (case_.storage) {
    case KVStorage::kSeparate:
      k_memory_ = Memory(((num_pages - 1) * k.page + k.page_extent) * element);
      v_memory_ = Memory(((num_pages - 1) * v.page + v.page_extent) * element);
      v_memory_.fill_with_nan(case_.kv_dtype);
      v_home = &v_memory_;
      break;
    case KVStorage::kInterleaved:
      v_start = k.page;
      k.page = v.page = k.page + v.page;
      k_memory_ = Memory(((num_pages - 1) * v.page + v_start + v.page_extent) * element);
      break;
    case KVStorage::kVInsideK:
      v = k;
      k_memory_ = Memory(((num_pages - 1) * k.page + k.page_extent) * element);
      break;
  }
  k_memory_.fill_with_nan(case_.kv_dtype);

  for (size_t b = 0; b < batch(); ++b) {
    for (int64_t key = 0; key < sequence(b).kv; ++key) {
      const int64_t row = leftpads_[b] + key;
      const int64_t page = pages_of[b][static_cast<size_t>(row / page_size)];
      const int64_t slot = row % page_size;
      for (int64_t h = 0; h < case_.kv_heads; ++h) {
        k_memory_.store(case_.kv_dtype, page * k.page + slot * k.row + h * k.head, case_.dim_qk,
                        [&](int64_t d) { return k_value(b, key, h, d); });
        v_home->store(case_.kv_dtype, v_start + page * v.page + slot * v.row + h * v.head,
                      case_.dim_vo, [&](int64_t d) { return v_value(b, key, h, d); });
      }
    }
  }

  const auto tensor = [&](const std::byte* data, const Strides& s, int32_t dim) {
    const int64_t middle = is_hnd ? case_.kv_heads : page_size;
    const int64_t inner = is_hnd ? page_size : case_.kv_heads;
    ConstTensor t = ConstTensor::contiguous(data, case_.kv_dtype, {num_pages, middle, inner, dim});
    t.strides = {s.page, is_hnd ? s.head : s.row, is_hnd ? s.row : s.head, 1};
    return t;
  };
  attention_.kv = PagedKV{.k = tensor(k_memory_.data(), k, case_.dim_qk),
                          .v = tensor(v_home->data() + v_start * element, v, case_.dim_vo),
                          .layout = case_.page_layout};
  make_page_table(pages_of);
}

void ProblemData::make_page_table(const std::vector<std::vector<int32_t>>& pages_of) {
  auto& paged = std::get<PagedKV>(attention_.kv);
  if (case_.kv_layout == KVLayout::kCsr) {
    indptr_.push_back(0);
    for (size_t b = 0; b < batch(); ++b) {
      indices_.insert(indices_.end(), pages_of[b].begin(), pages_of[b].end());
      indptr_.push_back(static_cast<int32_t>(indices_.size()));
      // Ignored for a sequence without pages.
      last_page_len_.push_back(pages_of[b].empty() ? -5 : (used_kv_[b] - 1) % case_.page_size + 1);
    }
    paged.table = CsrPages{indptr_, indices_, last_page_len_};
    return;
  }
  size_t longest = 1;
  for (const auto& pages : pages_of) longest = std::max(longest, pages.size());
  const size_t row_stride = longest + 2;
  table_.assign(batch() * row_stride, kInvalidPage);
  for (size_t b = 0; b < batch(); ++b) {
    std::copy(pages_of[b].begin(), pages_of[b].end(),
              table_.begin() + static_cast<int64_t>(b * row_stride));
  }
  paged.table = BlockTable{{table_.data(), static_cast<int64_t>(batch()),
                            static_cast<int64_t>(longest), static_cast<int64_t>(row_stride)},
                           used_kv_};
}

}  // namespace pagoda::conformance
