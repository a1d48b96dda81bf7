// RegisteredFunctor: a functor of the user as host code calls it, and the functor of a Problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pagoda/functor.hpp"

namespace pagoda::core {

// `value`: the functor of a call, value_bytes bytes aligned to 16.
struct RegisteredFunctor {
  std::string name;
  int32_t number = 0;  // in the order of registration, from 1
  int32_t value_bytes = 0;
  bool is_causal = false;
  // Null where the functor lacks the member; visible requires keep.
  bool (*keep)(const void* value, const QueryRow& row, int32_t key) = nullptr;
  VisibleKeys (*visible)(const void* value, const QueryRows& rows) = nullptr;
  float (*score)(const void* value, const QueryRow& row, int32_t key, float score) = nullptr;

  // A functor that was compiled at run time has none of the three.
  [[nodiscard]] bool has_host_code() const { return keep != nullptr || score != nullptr; }
};

// Borrowed from the call. None: `type` is null.
struct Functor {
  const RegisteredFunctor* type = nullptr;
  const void* value = nullptr;
  std::span<const FunctorCall::Array> arrays;

  // 0: no functor.
  [[nodiscard]] int32_t number() const { return type == nullptr ? 0 : type->number; }
  [[nodiscard]] bool has_mask() const { return type != nullptr && type->keep != nullptr; }
  [[nodiscard]] bool has_score() const { return type != nullptr && type->score != nullptr; }
  [[nodiscard]] bool is_causal() const { return type != nullptr && type->is_causal; }
  [[nodiscard]] bool keep(const QueryRow& row, int32_t key) const {
    return !has_mask() || type->keep(value, row, key);
  }
  [[nodiscard]] float score(const QueryRow& row, int32_t key, float of_pair) const {
    return has_score() ? type->score(value, row, key, of_pair) : of_pair;
  }
};

// Calls `check` for every element that a functor reads on this thread while the scope lives.
class FunctorReadScope {
 public:
  using Check = void (*)(const void* address, size_t bytes);
  explicit FunctorReadScope(Check check);
  ~FunctorReadScope();
  FunctorReadScope(const FunctorReadScope&) = delete;
  FunctorReadScope& operator=(const FunctorReadScope&) = delete;

 private:
  Check before_;
};

}  // namespace pagoda::core
