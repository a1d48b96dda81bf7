// Chooses lengths, then tensors, then invalid fields, then allocates.
#include "fuzz_attention.hpp"

#include <algorithm>
#include <array>

#include "core/element.hpp"
#include "engine/validate.hpp"
#include "fuzz_mask.hpp"
#include "fuzz_spoil.hpp"

namespace pagoda::fuzz {
namespace {

struct Types {
  DType q, kv, out;
};
constexpr Types kTypes[] = {
    {DType::kF32, DType::kF32, DType::kF32},      {DType::kF16, DType::kF16, DType::kF16},
    {DType::kBF16, DType::kBF16, DType::kBF16},   {DType::kF16, DType::kF8E4M3, DType::kF16},
    {DType::kBF16, DType::kF8E4M3, DType::kBF16}, {DType::kF8E4M3, DType::kF8E4M3, DType::kBF16}};

struct Builder {
  Builder(FuzzedDataProvider& data_, Memory& memory_) : data(data_), memory(memory_) {}

  FuzzedDataProvider& data;
  Memory& memory;
  FuzzedCall call{};
  std::vector<int32_t> seqlens_q, seqlens_kv;
  int64_t batch = 0, kv_heads = 1, q_heads = 1, dim_qk = 8, dim_vo = 8;
  Types types{};

  int64_t number(int64_t least, int64_t most) {
    return data.ConsumeIntegralInRange<int64_t>(least, most);
  }
  void choose_shape();
  void place_queries();
  void place_cache();
  void place_pages(int64_t page_size);
  void choose_scores();
  void back();
};

std::vector<int32_t> offsets_of(std::span<const int32_t> lengths) {
  std::vector<int32_t> offsets{0};
  for (const int32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

// Many rows or many keys, not both: the reference computes every pair in double precision.
void Builder::choose_shape() {
  struct Size {
    int64_t most_rows, most_keys, most_heads, most_dims;
  };
  constexpr Size kSizes[] = {{3, 40, 3, 12},    // decode
                             {20, 90, 2, 6},    // a chunk
                             {80, 80, 1, 3},    // several tiles of rows
                             {2, 1500, 1, 3},   // several splits of keys
                             {1, 9000, 1, 1}};  // splits of batch-invariant calls
  const Size& size = data.PickValueInArray(kSizes);
  batch = number(0, 4);
  kv_heads = number(1, size.most_heads);
  q_heads = kv_heads * number(1, 5);
  dim_qk = 8 * number(1, size.most_dims);
  dim_vo = data.ConsumeBool() ? dim_qk : 8 * number(1, size.most_dims);
  types = data.PickValueInArray(kTypes);
  for (int64_t b = 0; b < batch; ++b) {
    seqlens_q.push_back(static_cast<int32_t>(number(0, size.most_rows)));
    seqlens_kv.push_back(static_cast<int32_t>(number(0, size.most_keys)));
  }
}

void Builder::place_queries() {
  Attention& a = call.attention;
  const bool has_lse = data.ConsumeBool(), has_row_max = data.ConsumeBool();
  if (data.ConsumeBool()) {
    const std::vector<int32_t> offsets = offsets_of(seqlens_q);
    a.zero_padding_rows = data.ConsumeBool();
    const int64_t total = offsets.back() + (a.zero_padding_rows ? number(0, 3) : 0);
    a.cu_seqlens_q = memory.keep(offsets);
    a.q = Memory::view(data, types.q, {total, q_heads, dim_qk});
    a.out = writable(Memory::view(data, types.out, {total, q_heads, dim_vo}));
    if (has_lse) a.lse = writable(Memory::view(data, DType::kF32, {total, q_heads}));
    if (has_row_max) a.row_max = writable(Memory::view(data, DType::kF32, {total, q_heads}));
    return;
  }
  int64_t rows = 0;
  for (const int32_t length : seqlens_q) rows = std::max<int64_t>(rows, length);
  if (data.ConsumeBool()) {
    a.seqlens_q = memory.keep(seqlens_q);
  } else {
    std::fill(seqlens_q.begin(), seqlens_q.end(), static_cast<int32_t>(rows));
  }
  a.q = Memory::view(data, types.q, {batch, rows, q_heads, dim_qk});
  a.out = writable(Memory::view(data, types.out, {batch, rows, q_heads, dim_vo}));
  if (has_lse) a.lse = writable(Memory::view(data, DType::kF32, {batch, rows, q_heads}));
  if (has_row_max) a.row_max = writable(Memory::view(data, DType::kF32, {batch, rows, q_heads}));
}

void Builder::place_pages(int64_t page_size) {
  int64_t num_pages = number(1, 4), width = 0;
  std::vector<int32_t> counts, indices, last;
  for (const int32_t keys : seqlens_kv) {
    counts.push_back(static_cast<int32_t>((keys + page_size - 1) / page_size));
    last.push_back(keys == 0 ? -7 : static_cast<int32_t>(keys - (counts.back() - 1) * page_size));
    width = std::max<int64_t>(width, counts.back());
    num_pages += counts.back();
  }
  const bool is_nhd = data.ConsumeBool();
  const int64_t second = is_nhd ? page_size : kv_heads, third = is_nhd ? kv_heads : page_size;
  PagedKV kv{.k = Memory::view(data, types.kv, {num_pages, second, third, dim_qk}),
             .v = Memory::view(data, types.kv, {num_pages, second, third, dim_vo}),
             .layout = is_nhd ? PageLayout::kNHD : PageLayout::kHND};
  const auto page = [&] { return static_cast<int32_t>(number(0, num_pages - 1)); };
  if (data.ConsumeBool()) {
    const std::vector<int32_t> indptr = offsets_of(counts);
    for (int32_t i = 0; i < indptr.back(); ++i) indices.push_back(page());
    kv.table = CsrPages{memory.keep(indptr), memory.keep(indices), memory.keep(last)};
  } else {
    const int64_t row_stride = width + number(0, 2);
    std::vector<int32_t> table(
        static_cast<size_t>(batch == 0 ? 0 : (batch - 1) * row_stride + width), INT32_MIN);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < counts[static_cast<size_t>(b)]; ++i) {
        table[static_cast<size_t>(b * row_stride + i)] = page();
      }
    }
    const auto kept = memory.keep(table);
    kv.table = BlockTable{{kept.data(), batch, width, row_stride}, memory.keep(seqlens_kv)};
  }
  call.attention.kv = kv;
}

void Builder::place_cache() {
  switch (number(0, 3)) {
    case 0: {
      int64_t keys = number(0, 3);
      for (const int32_t length : seqlens_kv) keys = std::max<int64_t>(keys, length);
      call.attention.kv =
          DenseKV{.k = Memory::view(data, types.kv, {batch, keys, kv_heads, dim_qk}),
                  .v = Memory::view(data, types.kv, {batch, keys, kv_heads, dim_vo}),
                  .seqlens_kv = memory.keep(seqlens_kv)};
      return;
    }
    case 1: {
      const std::vector<int32_t> offsets = offsets_of(seqlens_kv);
      const int64_t total = offsets.back() + number(0, 2);
      call.attention.kv = RaggedKV{.k = Memory::view(data, types.kv, {total, kv_heads, dim_qk}),
                                   .v = Memory::view(data, types.kv, {total, kv_heads, dim_vo}),
                                   .cu_seqlens_kv = memory.keep(offsets)};
      return;
    }
    default: place_pages(number(1, 20));
  }
}

void Builder::choose_scores() {
  Attention& a = call.attention;
  const auto floats = [&](int64_t count, float least, float most) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(data.ConsumeFloatingPointInRange<float>(least, most));
    }
    return memory.keep(values);
  };
  if (data.ConsumeBool()) a.softmax_scale = data.ConsumeFloatingPointInRange<float>(0.01F, 0.5F);
  if (data.ConsumeBool()) a.sinks = floats(q_heads, -20, 20);
  if (data.ConsumeBool()) a.score_mod.softcap = data.ConsumeFloatingPointInRange<float>(1, 50);
  if (data.ConsumeBool()) a.score_mod.alibi_slopes = floats(q_heads, 0, 0.5F);
  if (data.ConsumeBool()) {
    a.score_mod.functor = [](void*, float score, int32_t, int32_t head, int64_t q, int64_t k) {
      return 0.5F * score + 0.01F * static_cast<float>((q - k) % 7 + head);
    };
  }
  if (types.kv == DType::kF8E4M3) {
    a.kv_scales.k = data.ConsumeFloatingPointInRange<float>(0.1F, 2);
    a.kv_scales.v = data.ConsumeFloatingPointInRange<float>(0.1F, 2);
  }
  // [heads] or [batch, heads], whose strides may be anything. At least [heads] in memory: a shape
  // that spoil() changes may be right again.
  const auto scales = [&](int64_t heads) -> ConstTensor {
    if (!data.ConsumeBool()) return {};
    const ArrayView<float> values = floats(std::max<int64_t>(batch, 1) * heads, 0.1F, 2);
    if (data.ConsumeBool() || batch == 0) {
      return ConstTensor::contiguous(values.data(), DType::kF32, {heads});
    }
    return ConstTensor::contiguous(values.data(), DType::kF32, {heads, batch}).transposed(0, 1);
  };
  a.kv_scales.k_per_head = scales(kv_heads);
  a.kv_scales.v_per_head = scales(kv_heads);
  if (types.q == DType::kF8E4M3) {
    a.q_scale_per_head = scales(data.ConsumeBool() ? q_heads : kv_heads);
  }
  if (data.ConsumeBool()) {
    std::vector<int32_t> pads;
    for (const int32_t length : seqlens_kv) {
      pads.push_back(static_cast<int32_t>(number(0, length)));
    }
    a.leftpad_kv = memory.keep(pads);
  }
  if (data.ConsumeBool()) {
    std::vector<int32_t> positions;
    for (int64_t b = 0; b < batch; ++b) positions.push_back(static_cast<int32_t>(number(0, 100)));
    a.cache_lengths = memory.keep(positions);
  }
}

void Builder::back() {
  Attention& a = call.attention;
  memory.back(a.q);
  memory.back(a.out);
  if (a.lse.present()) memory.back(a.lse);
  if (a.row_max.present()) memory.back(a.row_max);
  std::visit([&](auto& kv) { memory.back(kv.k), memory.back(kv.v); }, a.kv);
}

}  // namespace

FuzzedCall make_call(FuzzedDataProvider& data, Memory& memory) {
  Builder builder(data, memory);
  builder.choose_shape();
  builder.place_queries();
  builder.place_cache();
  builder.choose_scores();
  const int64_t errors = builder.number(0, 3) - 1;  // every other call stays valid
  builder.call.is_spoiled = errors > 0;
  builder.call.attention.mask =
      make_mask(data, memory, {builder.seqlens_q, builder.seqlens_kv, builder.q_heads},
                errors > 0 && data.ConsumeBool());
  for (int64_t i = 0; i < errors; ++i) spoil(data, memory, builder.call.attention);
  builder.back();

  builder.call.options.is_batch_invariant = data.ConsumeBool();
  builder.call.options.checks_indices = true;
  if (data.ConsumeBool()) {
    builder.call.options.kernel =
        data.PickValueInArray(std::array{"cpu.f32.scalar", "cpu.f32.avx2", "cpu.f32.avx512",
                                         "cpu.bf16.avx512_bf16", "cpu.bf16.amx", "reference", "?"});
  }
  return builder.call;
}

void fill_inputs(const FuzzedCall& call, Memory& memory) {
  const Result<core::Problem> valid = engine::validate(call.attention, call.options);
  if (!valid) return;
  const core::Problem& p = *valid;
  const auto fill_row = [&](const void* data, DType dtype, int64_t offset, int32_t count) {
    for (int32_t c = 0; c < count; ++c) {
      core::store_element(const_cast<void*>(data), dtype, offset + c, memory.value());
    }
  };
  for (int32_t b = 0; b < p.batch; ++b) {
    for (int32_t h = 0; h < p.num_q_heads; ++h) {
      for (int32_t i = 0; i < p.seqlen_q(b); ++i) {
        fill_row(p.q.data, p.q.dtype, p.row_offset(p.q, b, i, h), p.head_dim_qk);
      }
    }
    for (int32_t h = 0; h < p.num_kv_heads; ++h) {
      for (int32_t key = 0; key < p.seqlen_kv(b); ++key) {
        fill_row(p.k.data, p.k.dtype, p.kv_offset(p.k, b, key, h), p.head_dim_qk);
        fill_row(p.v.data, p.v.dtype, p.kv_offset(p.v, b, key, h), p.head_dim_vo);
      }
    }
  }
}

}  // namespace pagoda::fuzz
