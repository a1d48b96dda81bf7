// Draws the values of a case and describes the call. The cache's memory is in cache_data.cpp.
#include "testing/conformance/problem_data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "core/element.hpp"
#include "engine/functors.hpp"
#include "testing/conformance/random.hpp"

namespace pagoda::conformance {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Never returns -infinity, not even for a masked pair, which kernels must mask all the same.
float score_functor(void*, float score, int32_t, int32_t head, int64_t q, int64_t k) {
  return std::max(0.75F * score, -4.0F) - 0.125F * static_cast<float>((q + 2 * k + head) % 5);
}

}  // namespace

ProblemData::ProblemData(Case c, bool has_values) : case_(std::move(c)) {
  measure();
  draw_values(has_values);
  make_query();
  make_cache();
  make_scalars();
  make_outputs();
  make_canonical();
  if (has_values) checksum_ = input_checksum();
}

void ProblemData::measure() {
  for (const Sequence& s : case_.lengths.sequences) {
    rows_ = std::max(rows_, s.q);
    keys_ = std::max(keys_, s.kv);
  }
  rows_ += case_.padding_rows;
  if (case_.kv_layout == KVLayout::kDense) keys_ += case_.padding_keys;
}

void ProblemData::draw_values(bool has_values) {
  const auto size = [&](int64_t extent, int64_t heads, int64_t dim) {
    return static_cast<size_t>(static_cast<int64_t>(batch()) * extent * heads * dim);
  };
  q_.assign(size(rows_, case_.q_heads, case_.dim_qk), kNan);
  k_.assign(size(keys_, case_.kv_heads, case_.dim_qk), kNan);
  v_.assign(size(keys_, case_.kv_heads, case_.dim_vo), kNan);
  if (!has_values) return;
  const auto draw = [](Random& random, std::vector<float>& to, int64_t begin, int64_t count,
                       DType dtype, float amplitude) {
    for (int64_t i = 0; i < count; ++i) {
      to[static_cast<size_t>(begin + i)] = core::rounded_to(dtype, amplitude * random.normal());
    }
  };
  for (size_t b = 0; b < batch(); ++b) {
    const Sequence& s = sequence(b);
    const auto at = static_cast<int64_t>(b);
    Random q_random(case_.seed + "/q", s.id);
    Random k_random(case_.seed + "/k", s.id);
    Random v_random(case_.seed + "/v", s.id);
    const int64_t q_size = int64_t{case_.q_heads} * case_.dim_qk;
    const int64_t k_size = int64_t{case_.kv_heads} * case_.dim_qk;
    const int64_t v_size = int64_t{case_.kv_heads} * case_.dim_vo;
    draw(q_random, q_, at * rows_ * q_size, s.q * q_size, case_.q_dtype, case_.amplitude);
    draw(k_random, k_, at * keys_ * k_size, s.kv * k_size, case_.kv_dtype, 1);
    draw(v_random, v_, at * keys_ * v_size, s.kv * v_size, case_.kv_dtype, 1);
  }
  if (case_.storage != KVStorage::kVInsideK) return;
  for (int64_t i = 0; i < static_cast<int64_t>(v_.size()); ++i) {
    v_[static_cast<size_t>(i)] =
        k_[static_cast<size_t>(i / case_.dim_vo * case_.dim_qk + i % case_.dim_vo)];
  }
}

void ProblemData::make_query() {
  int32_t total = 0;
  q_offsets_.push_back(0);
  for (const Sequence& s : case_.lengths.sequences) {
    q_lengths_.push_back(s.q);
    q_offsets_.push_back(total += s.q + (case_.is_q_ragged ? case_.padding_rows : 0));
  }
  total += case_.zeroed_rows;
  attention_.zero_padding_rows = case_.zeroed_rows > 0;
  const int64_t head_stride = case_.dim_qk + case_.inner_gap;
  const int64_t row_stride = case_.q_heads * head_stride + case_.middle_gap;
  const int64_t sequence_stride =
      case_.is_q_ragged ? 0 : rows_ * row_stride + case_.outer_gap + case_.q_outer_gap;
  const auto offset = [&](int64_t b, int64_t row, int64_t head) {
    const int64_t first = case_.is_q_ragged ? q_offsets_[static_cast<size_t>(b)] : 0;
    return b * sequence_stride + (first + row) * row_stride + head * head_stride;
  };
  const auto last = static_cast<int64_t>(batch()) - 1;
  const int64_t elements = std::max<int64_t>(
      case_.is_q_ragged ? (total - 1) * row_stride + (case_.q_heads - 1) * head_stride
                        : offset(last, rows_ - 1, case_.q_heads - 1),
      0);
  q_memory_ = Memory((elements + case_.dim_qk) * size_bytes(case_.q_dtype));
  q_memory_.fill_with_nan(case_.q_dtype);
  for (size_t b = 0; b < batch(); ++b) {
    for (int64_t row = 0; row < sequence(b).q; ++row) {
      for (int64_t head = 0; head < case_.q_heads; ++head) {
        const int64_t from =
            ((static_cast<int64_t>(b) * rows_ + row) * case_.q_heads + head) * case_.dim_qk;
        q_memory_.store(case_.q_dtype, offset(static_cast<int64_t>(b), row, head), case_.dim_qk,
                        [&](int64_t d) { return q_[static_cast<size_t>(from + d)]; });
      }
    }
  }
  ConstTensor& q = attention_.q;
  if (case_.is_q_ragged) {
    q = ConstTensor::contiguous(q_memory_.data(), case_.q_dtype,
                                {total, case_.q_heads, case_.dim_qk});
    q.strides = {row_stride, head_stride, 1};
    attention_.cu_seqlens_q = q_offsets_;
    if (case_.padding_rows > 0) attention_.seqlens_q = q_lengths_;
  } else {
    q = ConstTensor::contiguous(q_memory_.data(), case_.q_dtype,
                                {last + 1, rows_, case_.q_heads, case_.dim_qk});
    q.strides = {sequence_stride, row_stride, head_stride, 1};
    const bool is_full = std::all_of(q_lengths_.begin(), q_lengths_.end(),
                                     [&](int32_t length) { return length == rows_; });
    if (!is_full) attention_.seqlens_q = q_lengths_;
  }
}

void ProblemData::make_scalars() {
  bool says_cache_lengths = false;
  for (const Sequence& s : case_.lengths.sequences) {
    const bool is_omitted = s.cache_length == Sequence::kOmitted;
    says_cache_lengths |= !is_omitted;
    cache_lengths_.push_back(is_omitted ? s.kv - s.q : s.cache_length);
  }
  if (says_cache_lengths) attention_.cache_lengths = cache_lengths_;
  attention_.softmax_scale = case_.softmax_scale;
  attention_.q_scale = case_.q_scale;
  for (int32_t h = 0; h < case_.q_heads; ++h) {
    slopes_.push_back(
        std::exp2(-8.0F * static_cast<float>(h + 1) / static_cast<float>(case_.q_heads)));
  }
  attention_.score_mod.softcap = case_.softcap;
  if (case_.has_alibi) attention_.score_mod.alibi_slopes = slopes_;
  if (case_.has_score_functor) attention_.score_mod.functor = score_functor;
  if (case_.sinks) {
    Random random(case_.seed + "/sinks");
    for (int32_t h = 0; h < case_.q_heads; ++h) sinks_.push_back(*case_.sinks + random.normal());
    attention_.sinks = sinks_;
  }
  if (case_.scales == Scales::kPerTensor) {
    attention_.kv_scales.k = 0.7F;
    attention_.kv_scales.v = 1.6F;
  }
  KVScales& scales = attention_.kv_scales;
  scales.k_per_head = draw_scales(case_.scales, case_.kv_heads, 0.5F, 0.3F, k_scales_);
  scales.v_per_head = draw_scales(case_.scales, case_.kv_heads, 1.5F, -0.2F, v_scales_);
  const int32_t q_heads = case_.q_scales == Scales::kPerHead ? case_.q_heads : case_.kv_heads;
  attention_.q_scale_per_head = draw_scales(case_.q_scales, q_heads, 0.6F, 0.2F, q_scales_);
  material_.emplace(case_, rows_, keys_);
  if (case_.mask.make) attention_.mask = case_.mask.make(*material_);
  if (case_.functor) attention_.functor = case_.functor();
}

ConstTensor ProblemData::draw_scales(Scales scales, int32_t heads, float first, float step,
                                     std::vector<float>& values) const {
  if (scales == Scales::kNone || scales == Scales::kPerTensor) return {};
  const size_t sequences = scales == Scales::kPerSequence ? batch() : 1;
  for (int32_t h = 0; h < heads; ++h) {
    for (size_t b = 0; b < sequences; ++b) {
      const float more =
          scales == Scales::kPerSequence ? 0.15F * static_cast<float>(sequence(b).id % 4) : 0;
      values.push_back(first + step * static_cast<float>(h) + more);
    }
  }
  if (scales == Scales::kPerHead) {
    return ConstTensor::contiguous(values.data(), DType::kF32, {heads});
  }
  return ConstTensor::contiguous(values.data(), DType::kF32,
                                 {heads, static_cast<int64_t>(sequences)})
      .transposed(0, 1);
}

void ProblemData::make_outputs() {
  const int64_t gap = case_.outputs_have_gaps ? 3 : 0;
  const auto n = static_cast<int64_t>(batch());
  const int64_t heads = case_.q_heads;
  const int64_t total = q_offsets_.back() + case_.zeroed_rows;
  out_ = case_.is_q_ragged
             ? OutputTensor(case_.out_dtype(), {total, heads, case_.dim_vo}, gap, gap)
             : OutputTensor(case_.out_dtype(), {n, rows_, heads, case_.dim_vo}, gap, gap);
  attention_.out = out_.tensor();
  attention_.out_scale = case_.out_scale;
  const auto statistic = [&](int64_t inner_gap) {
    const int64_t rows = case_.is_q_ragged ? total : rows_;
    const int64_t outer = case_.has_heads_first ? heads : rows;
    const int64_t inner = case_.has_heads_first ? rows : heads;
    return case_.is_q_ragged ? OutputTensor(DType::kF32, {outer, inner}, inner_gap, gap)
                             : OutputTensor(DType::kF32, {n, outer, inner}, inner_gap, gap);
  };
  lse_ = statistic(gap);
  row_max_ = statistic(0);
  if (!case_.wants_statistics) return;
  attention_.lse_base = case_.lse_base;
  for (const auto& [tensor, memory] :
       {std::pair(&attention_.lse, &lse_), std::pair(&attention_.row_max, &row_max_)}) {
    if (memory == &row_max_ && !case_.wants_row_max) continue;
    *tensor = memory->tensor();
    if (case_.has_heads_first) *tensor = tensor->transposed(tensor->rank - 2, tensor->rank - 1);
  }
}

float ProblemData::statistic(const OutputTensor& memory, int32_t b, int32_t row,
                             int32_t head) const {
  const int64_t first = case_.is_q_ragged ? q_offsets_[static_cast<size_t>(b)] + row : row;
  const int64_t second = head;
  const auto [outer, inner] =
      case_.has_heads_first ? std::pair(second, first) : std::pair(first, second);
  return case_.is_q_ragged ? memory.at({outer, inner}) : memory.at({b, outer, inner});
}

void ProblemData::make_canonical() {
  core::Problem& p = canonical_;
  const auto dense = [](std::vector<float>& values, int64_t extent, int64_t heads, int64_t dim) {
    return core::KVView{values.data(), DType::kF32, extent * heads * dim, heads * dim, dim};
  };
  p.batch = static_cast<int32_t>(batch());
  p.num_q_heads = case_.q_heads;
  p.num_kv_heads = case_.kv_heads;
  p.group = case_.q_heads / case_.kv_heads;
  p.head_dim_qk = case_.dim_qk;
  p.head_dim_vo = case_.dim_vo;
  p.max_seqlen_q = rows_;
  const int64_t q_row = int64_t{case_.q_heads} * case_.dim_qk;
  p.q = {q_.data(), DType::kF32, rows_ * q_row, q_row, case_.dim_qk};
  p.k = dense(k_, keys_, case_.kv_heads, case_.dim_qk);
  p.v = dense(v_, keys_, case_.kv_heads, case_.dim_vo);
  p.softmax_scale = case_.softmax_scale.value_or(1 / std::sqrt(static_cast<float>(case_.dim_qk)));
  if (case_.q_scales == Scales::kNone) p.softmax_scale *= case_.q_scale;
  p.seqlens_q_valid = q_lengths_;
  p.cache_lengths = cache_lengths_;
  p.seqlens_kv = kv_lengths_;
  p.max_seqlen_kv = keys_;
  p.mask = attention_.mask.nodes();
  p.score_mod = attention_.score_mod;
  const FunctorCall& functor = attention_.functor;
  if (!functor.name.empty()) {
    p.functor = {engine::find_functor(functor.name), functor.value.data(), {}};
  }
  p.sinks = core::elements(attention_.sinks);
  const KVScales& scales = attention_.kv_scales;
  const auto of = [](const ConstTensor& t, float shared, int32_t group) -> core::HeadScales {
    if (!t.present()) return {.shared = shared};
    const auto heads = static_cast<size_t>(t.rank - 1);
    return {shared, static_cast<const float*>(t.data), heads == 0 ? 0 : t.strides[0],
            t.strides[heads], group};
  };
  p.k_scales = of(scales.k_per_head, scales.k, 1);
  p.v_scales = of(scales.v_per_head, scales.v, 1);
  p.q_scales =
      of(attention_.q_scale_per_head, 1, case_.q_scales == Scales::kPerSequence ? p.group : 1);
  p.out_scale = case_.out_scale;
}

int32_t ProblemData::output_rows(int32_t b) const {
  if (!case_.is_q_ragged) return rows_;
  return sequence(static_cast<size_t>(b)).q + case_.padding_rows;
}

float ProblemData::out(int32_t b, int32_t row, int32_t head, int32_t d) const {
  if (!case_.is_q_ragged) return out_.at({b, row, head, d});
  return out_.at({q_offsets_[static_cast<size_t>(b)] + row, head, d});
}

float ProblemData::lse(int32_t b, int32_t row, int32_t head) const {
  const float value = statistic(lse_, b, row, head);
  return case_.lse_base == LogBase::k2 ? value * std::numbers::ln2_v<float> : value;
}

float ProblemData::row_max(int32_t b, int32_t row, int32_t head) const {
  return statistic(row_max_, b, row, head);
}

std::string ProblemData::unzeroed_row() const {
  const int64_t first = q_offsets_.back();
  for (int64_t row = first; row < first + case_.zeroed_rows; ++row) {
    for (int64_t head = 0; head < case_.q_heads; ++head) {
      bool is_right = true;
      for (int64_t d = 0; d < case_.dim_vo; ++d) is_right &= out_.at({row, head, d}) == 0;
      for (const OutputTensor* statistics : {&lse_, &row_max_}) {
        const auto [outer, inner] =
            case_.has_heads_first ? std::pair(head, row) : std::pair(row, head);
        if (!case_.wants_statistics) continue;
        if (statistics == &row_max_ && !case_.wants_row_max) continue;
        is_right &= statistics->at({outer, inner}) == -std::numeric_limits<float>::infinity();
      }
      if (is_right) continue;
      return "row " + std::to_string(row) + " past the last sequence, head " +
             std::to_string(head) + ", is not zeroed";
    }
  }
  return {};
}

std::vector<uint32_t> ProblemData::result_bits(int32_t b) const {
  std::vector<uint32_t> bits;
  for (int32_t row = 0; row < sequence(static_cast<size_t>(b)).q; ++row) {
    for (int32_t h = 0; h < case_.q_heads; ++h) {
      for (int32_t d = 0; d < case_.dim_vo; ++d) {
        bits.push_back(std::bit_cast<uint32_t>(out(b, row, h, d)));
      }
      bits.push_back(std::bit_cast<uint32_t>(lse(b, row, h)));
      bits.push_back(std::bit_cast<uint32_t>(row_max(b, row, h)));
    }
  }
  return bits;
}

void ProblemData::poison_outputs() {
  out_.poison();
  lse_.poison();
  row_max_.poison();
}

mirror::Surroundings ProblemData::surroundings() {
  mirror::Surroundings all{
      .outputs = {out_.bytes(), lse_.bytes(), row_max_.bytes()}, .sparse = {}, .touched = {}};
  for (const Memory* memory : {&q_memory_, &k_memory_, &v_memory_}) {
    if (!memory->is_sparse()) continue;
    all.sparse.push_back(memory->span());
    all.touched.insert(all.touched.end(), memory->touched().begin(), memory->touched().end());
  }
  return all;
}

int32_t ProblemData::max_seqlen_q() const {
  const int32_t longest = *std::max_element(q_lengths_.begin(), q_lengths_.end());
  return longest + (case_.is_q_ragged ? case_.padding_rows : 0);
}
int32_t ProblemData::max_seqlen_kv() const {
  return *std::max_element(kv_lengths_.begin(), kv_lengths_.end());
}

uint64_t ProblemData::input_checksum() const {
  return q_memory_.checksum() ^ k_memory_.checksum() * 3 ^ v_memory_.checksum() * 5;
}

std::string ProblemData::damage() const {
  const std::pair<const char*, const OutputTensor*> outputs[] = {
      {"out", &out_}, {"lse", &lse_}, {"row_max", &row_max_}};
  for (const auto& [name, output] : outputs) {
    const std::string stray = output->stray_write();
    if (!stray.empty()) return std::string(name) + ": " + stray;
  }
  return input_checksum() == checksum_ ? "" : "an input was written";
}

}  // namespace pagoda::conformance
