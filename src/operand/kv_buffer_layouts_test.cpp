// KVBufferImpl and caches of every layout: dense, ragged, in pages, of 16 bits and of e4m3, with
// rows at any address. What must not be read holds NaN and is outside of every buffer.
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "operand/kv_buffer.hpp"
#include "testing/material/kv_copies.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using arch::Half;

// Complete tiles and incomplete ones, from key 0 and from keys inside of a page.
template <class K, class V>
void expect_all_tiles(CacheFormat format) {
  for (const auto& [first_key, rows] : {std::pair{0, 64}, {64, 64}, {37, 64}, {64, 17}, {95, 33}}) {
    const KVCacheCase cache(format, first_key + rows, static_cast<uint32_t>(first_key + rows));
    EXPECT_EQ((wrong_copies<K, 4>(cache, first_key, rows)), "");
    EXPECT_EQ((wrong_copies<V, 2>(cache, first_key, rows)), "");
  }
}
template <class T>
void expect_prefill_and_token_generation(const CacheFormat& format) {
  expect_all_tiles<PrefillK<T, 2, 4>, PrefillV<T, 1, 2>>(format);
  expect_all_tiles<TokenK<T, 2, 4>, TokenV<T, 128, 32, 2, 2>>(format);
}
constexpr int kPageSizes[] = {1, 3, 16, 48, 64, 128};

TEST(CacheLayouts, dense) { expect_prefill_and_token_generation<BFloat16>({}); }

TEST(CacheLayouts, ragged) {
  expect_prefill_and_token_generation<BFloat16>({.kind = KeyRowsKind::kRagged});
}

TEST(CacheLayouts, pages_by_block_table) {
  for (const int size : kPageSizes) {
    expect_prefill_and_token_generation<BFloat16>({.kind = KeyRowsKind::kPaged, .page_size = size});
  }
}

TEST(CacheLayouts, pages_by_csr) {
  for (const int size : kPageSizes) {
    expect_prefill_and_token_generation<BFloat16>(
        {.kind = KeyRowsKind::kPaged, .page_size = size, .is_csr = true});
  }
}

TEST(CacheLayouts, f16) {
  expect_prefill_and_token_generation<Half>({.dtype = DType::kF16});
  expect_prefill_and_token_generation<Half>(
      {.kind = KeyRowsKind::kPaged, .page_size = 16, .dtype = DType::kF16});
}

TEST(CacheLayouts, rows_at_any_address) {
  for (const int gap : {1, 2, 7}) {
    for (const int first : {0, 1, 4}) {
      expect_all_tiles<PrefillK<BFloat16, 2, 4>, TokenV<BFloat16, 128, 32, 2, 2>>(
          {.row_gap = gap, .first = first});
      expect_all_tiles<PrefillK<BFloat16, 2, 4>, TokenV<BFloat16, 128, 32, 2, 2>>(
          {.dtype = DType::kF8E4M3, .dim = 127, .row_gap = gap, .first = first});
    }
  }
  expect_all_tiles<TokenK<BFloat16, 2, 4>, PrefillV<BFloat16, 1, 2>>(
      {.kind = KeyRowsKind::kPaged, .page_size = 3, .dim = 101, .row_gap = 2, .first = 1});
}

// --- e4m3 --------------------------------------------------------------------------------------

// OCP e4m3, by its definition.
double e4m3(int byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (byte & 0x80) != 0 ? -magnitude : magnitude;
}

template <class T>
void expect_all_bytes(double (*value_of)(uint16_t)) {
  KVCacheCase cache({.dtype = DType::kF8E4M3, .dim = 32}, 64);
  for (int key = 0; key < 64; ++key) {
    for (int column = 0; column < 32; ++column) {
      cache.set_byte(key, column, static_cast<uint8_t>(key * 32 + column));
    }
  }
  constexpr VectorLayout layout = PrefillK<T>::smem_layout;
  const std::vector<uint16_t> out = copied_tiles<CopyKernel<PrefillK<T>, 1>>(cache, 0, 64);
  int nans = 0;
  for (int key = 0; key < 64; ++key) {
    for (int column = 0; column < 32; ++column) {
      const int byte = (key * 32 + column) % 256;
      const uint16_t bits =
          out[static_cast<size_t>(layout.index(key, column / 8) * 8 + column % 8)];
      if ((byte & 0x7f) == 0x7f) {
        ++nans;
        EXPECT_TRUE(std::isnan(value_of(bits))) << byte;
      } else {
        EXPECT_EQ(value_of(bits), e4m3(byte)) << byte;
        EXPECT_EQ(std::signbit(value_of(bits)), (byte & 0x80) != 0) << byte;  // of zero, too
      }
    }
  }
  EXPECT_EQ(nans, 16);
}

TEST(E4m3, every_byte_is_exact_in_bf16) {
  expect_all_bytes<BFloat16>([](uint16_t bits) -> double { return core::bf16_to_float(bits); });
}

TEST(E4m3, every_byte_is_exact_in_f16) {
  expect_all_bytes<Half>([](uint16_t bits) -> double { return core::f16_to_float(bits); });
}

TEST(E4m3, caches_of_every_layout_are_widened) {
  expect_prefill_and_token_generation<BFloat16>({.dtype = DType::kF8E4M3});
  expect_prefill_and_token_generation<Half>({.dtype = DType::kF8E4M3, .dim = 88});
  expect_prefill_and_token_generation<BFloat16>(
      {.kind = KeyRowsKind::kRagged, .dtype = DType::kF8E4M3});
  for (const int size : kPageSizes) {
    expect_all_tiles<PrefillK<Half, 2, 4>, TokenV<BFloat16, 128, 32, 2, 2>>(
        {.kind = KeyRowsKind::kPaged, .page_size = size, .dtype = DType::kF8E4M3});
  }
}

}  // namespace
}  // namespace pagoda::operand
