// The building blocks of validation: complaints that name field, value and limit, and the checks
// that every tensor goes through. What a call means is not known here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "pagoda/status.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda::engine {

// What one extent of a tensor must be: exactly `extent`, or anything in [least, most].
struct Extent {
  std::string_view name;  // "num_kv_heads"
  int64_t extent = -1;    // -1: free
  int64_t least = 0;
  int64_t most = INT32_MAX;  // lengths and offsets are 32-bit
};

// `name[index]`, or `name` where index < 0.
[[nodiscard]] std::string element_name(std::string_view name, int64_t index);

[[nodiscard]] Status complain(std::string_view field, int64_t value, std::string_view limit);
[[nodiscard]] Status complain(std::string_view field, double value, std::string_view limit);
[[nodiscard]] Status complain(std::string_view field, std::string_view value,
                              std::string_view limit);

// Presence, rank, extents, contiguous last dimension, address range, pointer, alignment.
[[nodiscard]] Status check_tensor(std::string_view name, const ConstTensor& tensor,
                                  std::initializer_list<Extent> extents);

// What a tensor that is written needs besides: no element may have two addresses' worth of owners.
// Strides must nest: each dimension steps over everything that the smaller strides span.
[[nodiscard]] Status check_written(std::string_view name, const ConstTensor& tensor);

// A written tensor may not share memory with another one. Certain overlap is rejected: the same
// first byte, or two gapless tensors whose ranges meet. Interleaved views of one buffer pass.
[[nodiscard]] Status check_apart(std::string_view name, const ConstTensor& written,
                                 std::string_view other_name, const ConstTensor& other);

[[nodiscard]] Status check_dtype(std::string_view name, const ConstTensor& tensor, DType dtype,
                                 std::string_view why);

// Arrays: their sizes, and where the host can read them their contents.
enum class Contents : bool { kUnread, kRead };

// Empty or one entry for each of `count`; every entry finite and, with `is_positive`, above 0.
[[nodiscard]] Status check_numbers(std::string_view name, std::span<const float> values,
                                   int64_t count, std::string_view count_name, bool is_positive,
                                   Contents contents);

// [batch + 1] offsets: start at 0, non-decreasing, the last one at most `end`.
[[nodiscard]] Status check_offsets(std::string_view name, std::span<const int32_t> offsets,
                                   int64_t batch, int64_t end, std::string_view end_name,
                                   Contents contents);

// [batch] lengths, each in [least, most].
[[nodiscard]] Status check_lengths(std::string_view name, std::span<const int32_t> lengths,
                                   int64_t batch, int64_t least, int64_t most,
                                   std::string_view most_name, Contents contents);

}  // namespace pagoda::engine
