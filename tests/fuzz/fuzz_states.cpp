// Small calls, sometimes with one nonsensical field; results checked where the call was accepted.
#include "fuzz_states.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/array_elements.hpp"
#include "core/element.hpp"
#include "fuzz_spoil.hpp"

namespace pagoda::fuzz {
namespace {

constexpr DType kCacheTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3};
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

void fill(const ConstTensor& t, Memory& memory) {  // rank 3 or 4, backed
  const int64_t outer = t.rank == 4 ? t.shape[0] : 1;
  const auto d = static_cast<size_t>(t.rank - 3);
  for (int64_t a = 0; a < outer; ++a) {
    for (int64_t i = 0; i < t.shape[d]; ++i) {
      for (int64_t h = 0; h < t.shape[d + 1]; ++h) {
        for (int64_t c = 0; c < t.shape[d + 2]; ++c) {
          const int64_t offset =
              (t.rank == 4 ? a * t.strides[0] : 0) + i * t.strides[d] + h * t.strides[d + 1] + c;
          core::store_element(const_cast<void*>(t.data), t.dtype, offset, memory.value());
        }
      }
    }
  }
}

void require(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// The last token of a slot is there, converted.
void check_appended(const AppendKV& a, const ConstTensor& from, const Tensor& to, float scale) {
  const std::span<const int64_t> slots = core::host_elements(a.slot_mapping);
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t slot = slots[i];
    const bool is_nhd = a.layout == PageLayout::kNHD;
    const int64_t page_size = to.shape[is_nhd ? 1 : 2];
    if (slot < 0) continue;
    for (int64_t h = 0; h < from.shape[1]; ++h) {
      const int64_t source = static_cast<int64_t>(i) * from.strides[0] + h * from.strides[1];
      const int64_t target = slot / page_size * to.strides[0] +
                             slot % page_size * to.strides[is_nhd ? 1 : 2] +
                             h * to.strides[is_nhd ? 2 : 1];
      for (int64_t c = 0; c < from.shape[2]; ++c) {
        float value = core::load_element(from.data, from.dtype, source + c);
        if (to.dtype == DType::kF8E4M3) value /= scale;
        float stored = 0;
        core::store_element(&stored, to.dtype, 0, value);
        require(same(core::load_element(&stored, to.dtype, 0),
                     core::load_element(to.data, to.dtype, target + c)),
                "append_kv stored something else");
      }
    }
  }
}

}  // namespace

void append_once(FuzzedDataProvider& data, Memory& memory) {
  const auto number = [&](int64_t least, int64_t most) {
    return data.ConsumeIntegralInRange<int64_t>(least, most);
  };
  const int64_t tokens = number(0, 9), heads = number(1, 4), dim_qk = 8 * number(1, 10);
  const int64_t dim_vo = 8 * number(1, 10), pages = number(0, 5), page_size = number(1, 9);
  const bool is_nhd = data.ConsumeBool();
  const int64_t second = is_nhd ? page_size : heads, third = is_nhd ? heads : page_size;
  const DType from = data.PickValueInArray(kTypes), to = data.PickValueInArray(kCacheTypes);
  ConstTensor tensors[] = {Memory::view(data, from, {tokens, heads, dim_qk}),
                           Memory::view(data, from, {tokens, heads, dim_vo}),
                           Memory::view(data, to, {pages, second, third, dim_qk}),
                           Memory::view(data, to, {pages, second, third, dim_vo})};
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < tokens; ++i) slots.push_back(number(-2, pages * page_size - 1));
  AppendKV append{.layout = is_nhd ? PageLayout::kNHD : PageLayout::kHND};
  if (to == DType::kF8E4M3) append.kv_scales.k = data.ConsumeFloatingPointInRange(0.1F, 2.0F);

  const bool is_spoiled = number(0, 3) == 0;
  if (is_spoiled) {
    if (data.ConsumeBool()) {
      spoil(data, tensors[number(0, 3)]);
    } else {
      slots.push_back(nasty_number(data));
      if (data.ConsumeBool() && slots.size() > 1) slots.erase(slots.begin());
    }
  }
  for (ConstTensor& t : tensors) memory.back(t);
  if (!is_spoiled && memory.is_backed) {
    fill(tensors[0], memory);
    fill(tensors[1], memory);
  }
  append.k_new = tensors[0];
  append.v_new = tensors[1];
  append.k_cache = writable(tensors[2]);
  append.v_cache = writable(tensors[3]);
  append.slot_mapping = memory.keep(slots);
  if (!memory.is_backed) return;
  const Options options{.executor = &serial_executor(), .checks_indices = true};
  const Status status = append_kv(append, options);
  require(status.ok() || !status.field().empty(), "append_kv named no field");
  if (!status) return;
  check_appended(append, append.k_new, append.k_cache, append.kv_scales.k);
  check_appended(append, append.v_new, append.v_cache, append.kv_scales.v);
}

void merge_once(FuzzedDataProvider& data, Memory& memory) {
  const auto number = [&](int64_t least, int64_t most) {
    return data.ConsumeIntegralInRange<int64_t>(least, most);
  };
  const int64_t parts = number(1, 5), rows = number(0, 6), heads = number(1, 4);
  const int64_t dim = number(1, 70);
  ConstTensor tensors[] = {
      Memory::view(data, data.PickValueInArray(kTypes), {parts, rows, heads, dim}),
      Memory::view(data, DType::kF32, {parts, rows, heads}),
      Memory::view(data, data.PickValueInArray(kTypes), {rows, heads, dim}),
      Memory::view(data, DType::kF32, {rows, heads})};
  const bool is_spoiled = number(0, 3) == 0;
  if (is_spoiled) spoil(data, tensors[number(0, 3)]);
  for (ConstTensor& t : tensors) memory.back(t);
  if (!is_spoiled && memory.is_backed) {
    fill(tensors[0], memory);
    fill(tensors[1], memory);
  }
  MergeStates merge{.partial_out = tensors[0],
                    .partial_lse = tensors[1],
                    .out = writable(tensors[2]),
                    .lse = writable(tensors[3])};
  if (data.ConsumeBool()) merge.lse = {};
  if (!memory.is_backed) return;
  const Status status = merge_states(merge, {.executor = &serial_executor()});
  require(status.ok() || !status.field().empty(), "merge_states named no field");
  if (!status || is_spoiled) return;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      // A weighted mean of numbers in [-2, 2], so it is in there too.
      const float value = core::load_element(merge.out.data, merge.out.dtype,
                                             r * merge.out.strides[0] + h * merge.out.strides[1]);
      require(std::abs(value) <= 2.0F, "merge_states left the range of its parts");
    }
  }
}

}  // namespace pagoda::fuzz
