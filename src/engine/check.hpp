// The building blocks of validation: errors that name field, value and limit, and the checks of
// tensors and arrays. They do not depend on which call is validated.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/overlap.hpp"
#include "pagoda/array_view.hpp"
#include "pagoda/status.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda::engine {

// The valid values of one extent of a tensor: exactly `extent`, or any in [least, most].
struct Extent {
  std::string_view name;  // "num_kv_heads"
  int64_t extent = -1;    // -1 = any in [least, most]
  int64_t least = 0;
  int64_t most = INT32_MAX;  // lengths and offsets are 32-bit
};

// `name[index]`, or `name` where index < 0.
[[nodiscard]] std::string element_name(std::string_view name, int64_t index);

[[nodiscard]] Status complain(std::string_view field, int64_t value, std::string_view limit);
[[nodiscard]] Status complain(std::string_view field, double value, std::string_view limit);
[[nodiscard]] Status complain(std::string_view field, std::string_view value,
                              std::string_view limit);

// Presence, rank, extents, contiguous last dimension if wanted, address range, pointer, alignment.
enum class LastDim : bool { kAnyStride, kContiguous };
[[nodiscard]] Status check_tensor(std::string_view name, const ConstTensor& tensor,
                                  std::initializer_list<Extent> extents,
                                  LastDim last_dim = LastDim::kContiguous);

// An additional check of written tensors: no two elements may share an address. Strides must nest:
// each stride is at least the span of the dimensions with smaller strides.
[[nodiscard]] Status check_written(std::string_view name, const ConstTensor& tensor);

// A written tensor must not share memory with another array. Accepts interleaved views of one
// buffer: where the address ranges intersect, share_bytes() decides, and where it does not, certain
// overlap is rejected: the same first byte, or two arrays without gaps.
[[nodiscard]] Status check_apart(std::string_view name, const ByteView& written,
                                 std::string_view other_name, const ByteView& other);
[[nodiscard]] inline Status check_apart(std::string_view name, const ConstTensor& written,
                                        std::string_view other_name, const ConstTensor& other) {
  return check_apart(name, bytes_of(written), other_name, bytes_of(other));
}

// The same where `written` may be one of other's outermost elements, such as a part of a merge.
[[nodiscard]] Status check_apart_or_inside(std::string_view name, const ConstTensor& written,
                                           std::string_view other_name, const ConstTensor& other);

[[nodiscard]] Status check_dtype(std::string_view name, const ConstTensor& tensor, DType dtype,
                                 std::string_view why);

// Whether a check reads the contents of an array (host memory) or its size only (GPU memory).
enum class Contents : bool { kUnread, kRead };

// The pointer of an array: present where it has elements, and aligned to one.
[[nodiscard]] Status check_address(std::string_view name, const void* data, int64_t size,
                                   int64_t alignment);
template <typename T>
[[nodiscard]] Status check_address(std::string_view name, const ArrayView<T>& array) {
  return check_address(name, array.data(), array.size(), alignof(T));
}

// Size 0 or `count`; every entry finite and, if `is_positive`, above 0.
[[nodiscard]] Status check_numbers(std::string_view name, ArrayView<float> values, int64_t count,
                                   std::string_view count_name, bool is_positive,
                                   Contents contents);

// offsets: [batch + 1], starts at 0, non-decreasing, the last one at most `end`.
[[nodiscard]] Status check_offsets(std::string_view name, ArrayView<int32_t> offsets, int64_t batch,
                                   int64_t end, std::string_view end_name, Contents contents);

// lengths: [batch], each in [least, most].
[[nodiscard]] Status check_lengths(std::string_view name, ArrayView<int32_t> lengths, int64_t batch,
                                   int64_t least, int64_t most, std::string_view most_name,
                                   Contents contents);

// used: empty, or [batch], each in [0, offsets[b + 1] - offsets[b]]. `offsets` are valid.
[[nodiscard]] Status check_used(std::string_view name, ArrayView<int32_t> used,
                                ArrayView<int32_t> offsets, Contents contents);

}  // namespace pagoda::engine
