// Checks of tensors and arrays. Messages are formatted only on errors.
#include "engine/check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/array_elements.hpp"

namespace pagoda::engine {
namespace {

std::string at_least(std::string_view name, int64_t least) {
  return std::string(name) + " must be at least " + std::to_string(least);
}
std::string at_most(std::string_view name, int64_t most) {
  return std::string(name) + " must be at most " + std::to_string(most);
}
std::string equal(std::string_view name, int64_t value) {
  return "must equal " + std::string(name) + " = " + std::to_string(value);
}

// The bytes that a tensor's elements touch, relative to its pointer: [low, high).
struct Range {
  int64_t low = 0, high = 0;
};

bool is_empty(const ConstTensor& t) {
  const auto* const end = t.shape.data() + t.rank;
  return std::find(t.shape.data(), end, 0) != end;
}

// False if the offsets of a tensor with elements do not fit in 63 bits.
bool byte_range(const ConstTensor& t, Range& range) {
  int64_t low = 0, high = 1;
  for (int32_t d = 0; d < t.rank; ++d) {
    const int64_t extent = t.shape[static_cast<size_t>(d)];
    int64_t step = 0;
    if (__builtin_mul_overflow(extent - 1, t.strides[static_cast<size_t>(d)], &step)) return false;
    int64_t& end = step < 0 ? low : high;
    if (__builtin_add_overflow(end, step, &end)) return false;
  }
  const int64_t size = size_bytes(t.dtype);
  return !__builtin_mul_overflow(low, size, &range.low) &&
         !__builtin_mul_overflow(high, size, &range.high);
}

Status check_extents(std::string_view name, const ConstTensor& t,
                     std::initializer_list<Extent> extents) {
  size_t d = 0;
  for (const Extent& e : extents) {
    const int64_t value = t.shape[d];
    const auto complain_here = [&](const std::string& limit) {
      return complain(element_name(std::string(name) + ".shape", static_cast<int64_t>(d)), value,
                      limit);
    };
    if (e.extent >= 0 && value != e.extent) return complain_here(equal(e.name, e.extent));
    if (value < e.least) return complain_here(at_least(e.name, e.least));
    if (value > e.most) return complain_here(at_most(e.name, e.most));
    ++d;
  }
  return {};
}

Status check_memory(std::string_view name, const ConstTensor& t, LastDim last_dim) {
  const std::string field(name);
  if (is_empty(t)) return {};  // whatever its strides are: NumPy has 0 for all of them
  const auto last = static_cast<size_t>(t.rank - 1);
  if (last_dim == LastDim::kContiguous && t.shape[last] > 1 && t.strides[last] != 1) {
    return complain(element_name(field + ".strides", t.rank - 1), t.strides[last],
                    "must be 1: the last dimension is contiguous");
  }
  Range range;
  if (!byte_range(t, range)) {
    return complain(field + ".strides", "too large",
                    "every element's byte offset must fit in 63 bits");
  }
  if (t.data == nullptr) {
    return complain(field + ".data", "null", "must not be null: the tensor has elements");
  }
  const auto address = reinterpret_cast<uintptr_t>(t.data);
  if (address % static_cast<uintptr_t>(size_bytes(t.dtype)) != 0) {
    return complain(
        field + ".data", "misaligned",
        "must be a multiple of the element size, " + std::to_string(size_bytes(t.dtype)));
  }
  if (address + static_cast<uintptr_t>(range.high) < address ||
      address + static_cast<uintptr_t>(range.low) > address) {
    return complain(field + ".strides", "too large",
                    "the tensor must lie inside the address space");
  }
  return {};
}

}  // namespace

std::string element_name(std::string_view name, int64_t index) {
  std::string text(name);
  if (index >= 0) text.append("[").append(std::to_string(index)).append("]");
  return text;
}

Status complain(std::string_view field, int64_t value, std::string_view limit) {
  return Status::invalid(std::string(field), std::to_string(value), std::string(limit));
}
Status complain(std::string_view field, double value, std::string_view limit) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return Status::invalid(std::string(field), text.data(), std::string(limit));
}
Status complain(std::string_view field, std::string_view value, std::string_view limit) {
  return Status::invalid(std::string(field), std::string(value), std::string(limit));
}

Status check_tensor(std::string_view name, const ConstTensor& tensor,
                    std::initializer_list<Extent> extents, LastDim last_dim) {
  const auto rank = static_cast<int32_t>(extents.size());
  if (tensor.rank != rank) {
    std::string limit = "must be " + std::to_string(rank) + " [";
    for (const Extent& e : extents) {
      if (&e != extents.begin()) limit += ", ";
      limit += e.name;
    }
    return complain(std::string(name) + ".rank", int64_t{tensor.rank}, limit + "]");
  }
  if (size_bytes(tensor.dtype) == 0) {
    return complain(std::string(name) + ".dtype", static_cast<int64_t>(tensor.dtype),
                    "must be one of DType's values");
  }
  if (Status s = check_extents(name, tensor, extents); !s) return s;
  return check_memory(name, tensor, last_dim);
}

Status check_written(std::string_view name, const ConstTensor& tensor) {
  struct Dim {
    int64_t stride, extent;
    int32_t index;
  };
  std::array<Dim, kMaxRank> dims{};
  size_t count = 0;
  for (int32_t d = tensor.rank - 1; d >= 0; --d) {  // equal strides: report the outer dimension
    const int64_t extent = tensor.shape[static_cast<size_t>(d)];
    if (extent == 0) return {};
    if (extent == 1) continue;
    // check_tensor has shown that (extent - 1) * stride fits, so |stride| does.
    const Dim dim{std::abs(tensor.strides[static_cast<size_t>(d)]), extent, d};
    size_t at = count++;  // insertion sort of at most kMaxRank strides
    for (; at > 0 && dims[at - 1].stride > dim.stride; --at) dims[at] = dims[at - 1];
    dims[at] = dim;
  }
  int64_t span = 1;  // elements that the dimensions so far span
  for (size_t i = 0; i < count; ++i) {
    if (dims[i].stride < span) {
      return complain(element_name(std::string(name) + ".strides", dims[i].index),
                      tensor.strides[static_cast<size_t>(dims[i].index)],
                      "written elements must not overlap: must be at least " +
                          std::to_string(span) + " in magnitude");
    }
    span += (dims[i].extent - 1) * dims[i].stride;
  }
  return {};
}

Status check_apart(std::string_view name, const ByteView& written, std::string_view other_name,
                   const ByteView& other) {
  const std::optional<bool> is_shared = share_bytes(written, other);
  const bool overlap =
      is_shared ? *is_shared
                : written.first == other.first || (written.is_gapless() && other.is_gapless());
  if (!overlap) return {};
  return complain(std::string(name) + ".data", "inside " + std::string(other_name),
                  "a written tensor must not overlap another tensor");
}

Status check_apart_or_inside(std::string_view name, const ConstTensor& written,
                             std::string_view other_name, const ConstTensor& other) {
  bool is_inside = written.present() && written.dtype == other.dtype;
  for (size_t d = 0; is_inside && d < static_cast<size_t>(written.rank); ++d) {
    is_inside = written.strides[d] == other.strides[d + 1] || written.shape[d] == 1;
  }
  if (is_inside) {
    const auto distance = static_cast<int64_t>(reinterpret_cast<uintptr_t>(written.data) -
                                               reinterpret_cast<uintptr_t>(other.data));
    const int64_t step = other.strides[0] * size_bytes(other.dtype);
    if (distance == 0) return {};
    if (step != 0 && distance % step == 0 && distance / step > 0 &&
        distance / step < other.shape[0]) {
      return {};
    }
  }
  return check_apart(name, written, other_name, other);
}

Status check_dtype(std::string_view name, const ConstTensor& tensor, DType dtype,
                   std::string_view why) {
  if (tensor.dtype == dtype) return {};
  return complain(std::string(name) + ".dtype", pagoda::name(tensor.dtype),
                  "must be " + std::string(pagoda::name(dtype)) + std::string(why));
}

Status check_address(std::string_view name, const void* data, int64_t size, int64_t alignment) {
  if (size < 0) return complain(std::string(name) + ".size()", size, "must be at least 0");
  if (size > 0 && data == nullptr) {
    return complain(std::string(name) + ".data", "null",
                    "must not be null: it has " + std::to_string(size) + " elements");
  }
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) == 0) return {};
  return complain(std::string(name) + ".data", "misaligned",
                  "must be a multiple of " + std::to_string(alignment));
}

Status check_numbers(std::string_view name, ArrayView<float> values, int64_t count,
                     std::string_view count_name, bool is_positive, Contents contents) {
  if (values.empty()) return {};
  const int64_t size = values.size();
  if (size != count) {
    return complain(std::string(name) + ".size()", size,
                    "must be 0 or " + std::string(count_name) + " = " + std::to_string(count));
  }
  if (Status s = check_address(name, values); !s) return s;
  if (contents == Contents::kUnread) return {};
  const std::span<const float> numbers = core::host_elements(values);
  for (int64_t i = 0; i < size; ++i) {
    const float value = numbers[static_cast<size_t>(i)];
    if (!std::isfinite(value) || (is_positive && value <= 0)) {
      return complain(element_name(name, i), double{value},
                      is_positive ? "must be finite and above 0" : "must be finite");
    }
  }
  return {};
}

Status check_offsets(std::string_view name, ArrayView<int32_t> offsets, int64_t batch, int64_t end,
                     std::string_view end_name, Contents contents) {
  const int64_t size = offsets.size();
  if (size != batch + 1) {
    return complain(std::string(name) + ".size()", size,
                    "must be batch + 1 = " + std::to_string(batch + 1));
  }
  if (Status s = check_address(name, offsets); !s) return s;
  if (contents == Contents::kUnread) return {};
  const std::span<const int32_t> entries = core::host_elements(offsets);
  if (entries[0] != 0) {
    return complain(element_name(name, 0), int64_t{entries[0]}, "offsets must start at 0");
  }
  for (int64_t i = 1; i < size; ++i) {
    const int32_t before = entries[static_cast<size_t>(i - 1)];
    const int32_t offset = entries[static_cast<size_t>(i)];
    if (offset < before) {
      return complain(element_name(name, i), int64_t{offset},
                      "must not be below the entry before it, " + std::to_string(before));
    }
  }
  if (entries.back() > end) {
    return complain(element_name(name, size - 1), int64_t{entries.back()}, at_most(end_name, end));
  }
  return {};
}

Status check_lengths(std::string_view name, ArrayView<int32_t> lengths, int64_t batch,
                     int64_t least, int64_t most, std::string_view most_name, Contents contents) {
  const int64_t size = lengths.size();
  if (size != batch) {
    return complain(std::string(name) + ".size()", size,
                    "must equal batch = " + std::to_string(batch));
  }
  if (Status s = check_address(name, lengths); !s) return s;
  if (contents == Contents::kUnread) return {};
  const std::span<const int32_t> entries = core::host_elements(lengths);
  for (int64_t i = 0; i < size; ++i) {
    const int32_t length = entries[static_cast<size_t>(i)];
    if (length < least || length > most) {
      return complain(element_name(name, i), int64_t{length},
                      "must be in [" + std::to_string(least) + ", " + std::string(most_name) +
                          " = " + std::to_string(most) + "]");
    }
  }
  return {};
}

Status check_used(std::string_view name, ArrayView<int32_t> used, ArrayView<int32_t> offsets,
                  Contents contents) {
  if (used.empty()) return {};
  if (Status s = check_lengths(name, used, offsets.size() - 1, 0, INT32_MAX, "the largest length",
                               contents);
      !s || contents == Contents::kUnread) {
    return s;
  }
  const std::span<const int32_t> lengths = core::host_elements(used);
  const std::span<const int32_t> ends = core::host_elements(offsets);
  for (size_t b = 0; b < lengths.size(); ++b) {
    const int32_t rows = ends[b + 1] - ends[b];
    if (lengths[b] <= rows) continue;
    return complain(element_name(name, static_cast<int64_t>(b)), int64_t{lengths[b]},
                    "must be at most the rows of the sequence, " + std::to_string(rows));
  }
  return {};
}

}  // namespace pagoda::engine
