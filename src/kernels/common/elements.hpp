// A few consecutive elements of a tensor: loaded and stored in accesses of up to 16 bytes, and
// converted with the same bits as core/element.hpp, NaN included.
#pragma once

#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "core/element.hpp"
#include "core/target.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::kernels {

// A constant, because device code may not call size_bytes().
template <DType kDType>
inline constexpr int kSizeBytes = static_cast<int>(size_bytes(kDType));

// kBytes (1, 2, 4, 8 or a multiple of 16) bytes, not converted.
template <int kBytes>
struct RawElements {
  static constexpr int kWords = (kBytes + 3) / 4;
  uint32_t word[kWords];
};

// Whether the launch may write what it loads: then not by ld.global.nc.
enum class Source : bool { kReadOnly, kWritten };

// `from` must be aligned to min(kBytes, 16).
template <int kBytes, Source source = Source::kReadOnly>
PAGODA_DEVICE RawElements<kBytes> load_raw(arch::GlobalPtr<const void> from,
                                           arch::Where where = arch::Where::current()) {
  const auto load = [&](auto pointer) {
    if constexpr (source == Source::kWritten) return arch::load(pointer, where);
    if constexpr (source == Source::kReadOnly) return arch::load_read_only(pointer, where);
  };
  RawElements<kBytes> raw{};
  if constexpr (kBytes >= 16) {
    PAGODA_UNROLL
    for (int i = 0; i < kBytes / 16; ++i) {
      const arch::Words<4> words = load(from.as<const arch::Words<4>>() + i);
      PAGODA_UNROLL
      for (int j = 0; j < 4; ++j) raw.word[4 * i + j] = words.word[j];
    }
  } else if constexpr (kBytes == 8) {
    const arch::Words<2> words = load(from.as<const arch::Words<2>>());
    raw.word[0] = words.word[0];
    raw.word[1] = words.word[1];
  } else if constexpr (kBytes == 4) {
    raw.word[0] = load(from.as<const uint32_t>());
  } else if constexpr (kBytes == 2) {
    raw.word[0] = load(from.as<const uint16_t>());
  } else {
    raw.word[0] = load(from.as<const uint8_t>());
  }
  return raw;
}

template <int kBytes>
PAGODA_DEVICE void store_raw(arch::GlobalPtr<void> to, const RawElements<kBytes>& raw,
                             arch::Where where = arch::Where::current()) {
  if constexpr (kBytes >= 16) {
    PAGODA_UNROLL
    for (int i = 0; i < kBytes / 16; ++i) {
      arch::Words<4> words;
      PAGODA_UNROLL
      for (int j = 0; j < 4; ++j) words.word[j] = raw.word[4 * i + j];
      arch::store(to.as<arch::Words<4>>() + i, words, where);
    }
  } else if constexpr (kBytes == 8) {
    arch::Words<2> words;
    words.word[0] = raw.word[0];
    words.word[1] = raw.word[1];
    arch::store(to.as<arch::Words<2>>(), words, where);
  } else if constexpr (kBytes == 4) {
    arch::store(to.as<uint32_t>(), raw.word[0], where);
  } else if constexpr (kBytes == 2) {
    arch::store(to.as<uint16_t>(), static_cast<uint16_t>(raw.word[0]), where);
  } else {
    arch::store(to.as<uint8_t>(), static_cast<uint8_t>(raw.word[0]), where);
  }
}

// --- from memory to float -----------------------------------------------------------------------

template <DType kDType, int N>
PAGODA_DEVICE void to_floats(const RawElements<N * kSizeBytes<kDType>>& raw, float (&values)[N]) {
  PAGODA_UNROLL
  for (int i = 0; i < N; ++i) {
    if constexpr (kDType == DType::kF32) {
      values[i] = core::bits_to_float(raw.word[i]);
    } else {
      const auto half = static_cast<uint16_t>(raw.word[i / 2] >> (i % 2 * 16));
      values[i] = kDType == DType::kF16 ? core::f16_to_float(half) : core::bf16_to_float(half);
    }
  }
}

// --- from float to memory -----------------------------------------------------------------------

// The cvt instructions round as core does, but give another NaN: values with a NaN are converted by
// core's functions.
PAGODA_DEVICE bool has_nan(float a, float b) { return a != a || b != b; }

PAGODA_DEVICE uint32_t pair_to_bf16(float low, float high) {
  if (!has_nan(low, high)) return arch::pack_bf16(low, high);
  return core::float_to_bf16(low) | static_cast<uint32_t>(core::float_to_bf16(high)) << 16U;
}
PAGODA_DEVICE uint32_t pair_to_f16(float low, float high) {
  if (!has_nan(low, high)) return arch::pack_f16(low, high);
  return core::float_to_f16(low) | static_cast<uint32_t>(core::float_to_f16(high)) << 16U;
}
// Converts value / scale, an IEEE division. A NaN keeps its sign. The scale is finite and above 0.
PAGODA_DEVICE uint32_t pair_to_e4m3(float low, float high, float scale) {
  if (!has_nan(low, high)) return arch::pack_e4m3(low / scale, high / scale);
  const float a = low != low ? low : low / scale;
  const float b = high != high ? high : high / scale;
  return core::float_to_f8e4m3(a) | static_cast<uint32_t>(core::float_to_f8e4m3(b)) << 8U;
}

// `scale` is used for fp8 only: stored element = value / scale.
template <DType kDType, int N>
PAGODA_DEVICE RawElements<N * kSizeBytes<kDType>> from_floats(const float (&values)[N],
                                                              float scale = 1) {
  RawElements<N * kSizeBytes<kDType>> raw{};
  if constexpr (kDType == DType::kF32) {
    PAGODA_UNROLL
    for (int i = 0; i < N; ++i) raw.word[i] = core::float_to_bits(values[i]);
  } else {
    PAGODA_UNROLL
    for (int i = 0; i < N; i += 2) {
      const float low = values[i];
      const float high = i + 1 < N ? values[i + 1 < N ? i + 1 : 0] : 0.0F;
      if constexpr (kDType == DType::kF8E4M3) {
        raw.word[i / 4] |= pair_to_e4m3(low, high, scale) << (i % 4 * 8);
      } else {
        raw.word[i / 2] = kDType == DType::kF16 ? pair_to_f16(low, high) : pair_to_bf16(low, high);
      }
    }
  }
  return raw;
}

template <DType kDType, int N>
PAGODA_DEVICE void store_floats(arch::GlobalPtr<void> to, const float (&values)[N], float scale = 1,
                                arch::Where where = arch::Where::current()) {
  store_raw<N * kSizeBytes<kDType>>(to, from_floats<kDType>(values, scale), where);
}

}  // namespace pagoda::kernels
