// SharedValue: a value in shared memory that threads store and load whole, word by word.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "arch/memory.hpp"
#include "core/target.hpp"

namespace pagoda::kernels {

template <class T>
class SharedValue {
 public:
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(int32_t) == 0);

  PAGODA_DEVICE T load() {
    int32_t words[kWords];
    PAGODA_UNROLL
    for (int i = 0; i < kWords; ++i) words[i] = arch::load(words_.at(i));
    T result;
    memcpy(&result, words, sizeof result);
    return result;
  }
  PAGODA_DEVICE void store(const T& from) {
    int32_t words[kWords];
    memcpy(words, &from, sizeof from);
    PAGODA_UNROLL
    for (int i = 0; i < kWords; ++i) arch::store(words_.at(i), words[i]);
  }

 private:
  static constexpr int kWords = sizeof(T) / sizeof(int32_t);
  arch::SharedArray<int32_t, kWords> words_;
};

}  // namespace pagoda::kernels
