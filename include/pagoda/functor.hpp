// Functors: a mask, a score modification or both, written by the user as one C++ type that runs on
// every back end. docs/functors.md has the contract, a complete example and the CMake function that
// compiles one.
//
//   struct Prefix {                        // trivially copyable, at most kMaxFunctorBytes bytes
//     int32_t length;
//     // Mask. Whether the query row sees the key, 0 <= key < row.seqlen_kv.
//     PAGODA_FUNCTOR bool keep(const pagoda::QueryRow& row, int32_t key) const;
//     // Optional, with keep(): keys outside are not loaded, unmasked keys are not tested.
//     PAGODA_FUNCTOR pagoda::VisibleKeys visible(const pagoda::QueryRows& rows) const;
//     // Score modification. `score` is the scaled product, in natural units; so is the result.
//     PAGODA_FUNCTOR float score(const pagoda::QueryRow& row, int32_t key, float score) const;
//     // Optional: later rows see more keys, and work tiles with the most keys start first.
//     static constexpr bool kIsCausal = true;
//   };
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "pagoda/array_view.hpp"

#if defined(__CUDACC__)
#define PAGODA_FUNCTOR __host__ __device__ __forceinline__
#else
#define PAGODA_FUNCTOR inline
#endif

namespace pagoda {

inline constexpr int32_t kMaxFunctorBytes = 128;
inline constexpr int32_t kMaxFunctorArrays = 4;

// Keys [begin, end) of a sequence; empty when end <= begin.
struct KeyRange {
  int32_t begin = 0;
  int32_t end = 0;
};

// One query row and head.
struct QueryRow {
  int32_t sequence = 0;
  int32_t seqlen_kv = 0;  // keys of the sequence
  int32_t row = 0;        // of the sequence
  int32_t position = 0;   // row + cache_length; negative where there are fewer keys than queries
  int32_t q_head = 0;
};

// Query rows [first_row, first_row + num_rows) of one sequence, for all query heads. num_rows > 0.
struct QueryRows {
  int32_t sequence = 0;
  int32_t seqlen_kv = 0;
  int32_t first_row = 0;
  int32_t num_rows = 0;
  int32_t first_position = 0;  // of row first_row

  [[nodiscard]] PAGODA_FUNCTOR int32_t last_row() const { return first_row + num_rows - 1; }
  [[nodiscard]] PAGODA_FUNCTOR int32_t last_position() const {
    return first_position + num_rows - 1;
  }
};

// What a tile of query rows sees. A KV tile outside of both ranges is skipped; one inside of
// `unmasked` is not tested; keep() decides in all others. Ranges may reach past [0, seqlen_kv).
struct VisibleKeys {
  // Every key that some row and head sees is in `keys` or `prefix`. Where both hold keys, `prefix`
  // begins first.
  KeyRange keys{};
  KeyRange prefix{};
  // Every row and head sees all of these keys.
  KeyRange unmasked{};
};

namespace detail {  // the emulator checks what a functor reads
void check_functor_read(const void* address, size_t bytes);
}  // namespace detail

// An array in the memory of the back end, as a functor holds it. Elements of 1, 2, 4 or 8 bytes.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): as a view of the same elements
  constexpr DeviceArray(const ArrayView<T>& view) : data_(view.data()) {}

  [[nodiscard]] PAGODA_FUNCTOR T load(int64_t index) const {
#if defined(__CUDA_ARCH__)
    return __ldg(data_ + index);
#else
    detail::check_functor_read(data_ + index, sizeof(T));
    return data_[index];
#endif
  }

 private:
  const T* data_ = nullptr;
};

// The functor of a call: its registered name, its value, and the arrays that it reads.
struct FunctorCall {
  struct Array {
    const void* data = nullptr;
    int64_t bytes = 0;
    Device device{};
  };
  std::string_view name{};  // empty: no functor
  alignas(16) std::array<std::byte, kMaxFunctorBytes> value{};
  int32_t value_bytes = 0;
  std::array<Array, kMaxFunctorArrays> arrays{};
  int32_t num_arrays = 0;
};

// `value` is copied into the call; `name` and the arrays stay the caller's. Every array that the
// value reads is listed, so that it is checked like the other arrays of a call:
//   a.functor = pagoda::functor("documents", Documents{begins}, begins);
template <class F, class... Elements>
[[nodiscard]] FunctorCall functor(std::string_view name, const F& value,
                                  const ArrayView<Elements>&... arrays) {
  static_assert(std::is_trivially_copyable_v<F>, "a functor is copied into kernel parameters");
  static_assert(sizeof(F) <= kMaxFunctorBytes, "a functor is too large");
  static_assert(alignof(F) <= 16, "a functor's alignment is too large");
  static_assert(sizeof...(arrays) <= kMaxFunctorArrays, "a functor reads too many arrays");
  FunctorCall call;
  call.name = name;
  std::memcpy(call.value.data(), &value, sizeof value);
  call.value_bytes = sizeof value;
  (...,
   (call.arrays[static_cast<size_t>(call.num_arrays++)] = {
        arrays.data(), arrays.size() * static_cast<int64_t>(sizeof(Elements)), arrays.device()}));
  return call;
}

}  // namespace pagoda
