// The masks that the conformance table and the tests of ExpressionMask share: one of every kind,
// and combinations of each kind with others.
#pragma once

#include "pagoda/mask.hpp"

namespace pagoda::material {

// Calls add(name, make) for every mask, in a fixed order; make(arrays) builds the mask. `Arrays`
// owns what masks point to: padding(), additive(rank, broadcasts_batch, broadcasts_heads),
// relative_bias(extent), bits(first_keys, density). Masks that need functor() and tree() are
// included if Arrays has them.
template <class Arrays, class Add>
void for_each_mask(Add add) {
  using A = Arrays;
  constexpr bool kHasFunctor = requires(A & a) {
    a.functor();
    a.tree();
  };
  add("causal", [](A&) { return Mask::causal(); });
  add("window8", [](A&) { return Mask::window(7, 0); });
  add("window40", [](A&) { return Mask::window(39, 0); });
  add("window0", [](A&) { return Mask::window(0, 0); });
  add("windowleft", [](A&) { return Mask::window(20, -1); });
  add("windowright", [](A&) { return Mask::window(-1, 6); });
  add("windowboth", [](A&) { return Mask::window(11, 5); });
  add("windowopen", [](A&) { return Mask::window(-1, -1); });
  add("chunked16", [](A&) { return Mask::chunked(16); });
  add("chunked5_causal", [](A&) { return Mask::chunked(5) & Mask::causal(); });
  add("chunked64_causal", [](A&) { return Mask::causal() & Mask::chunked(64); });
  add("padding", [](A& a) { return a.padding(); });
  add("padding_causal", [](A& a) { return a.padding() & Mask::causal(); });
  add("additive3", [](A& a) { return a.additive(3, false, true); });
  add("additive3_shared", [](A& a) { return a.additive(3, true, true); });
  add("additive4", [](A& a) { return a.additive(4, false, false); });
  add("additive4_onehead", [](A& a) { return a.additive(4, false, true); });
  add("additive4_causal", [](A& a) { return a.additive(4, true, false) & Mask::causal(); });
  add("relative4", [](A& a) { return a.relative_bias(4); });
  add("relative0", [](A& a) { return a.relative_bias(0); });
  add("relative300_causal", [](A& a) { return Mask::causal() & a.relative_bias(300); });
  add("additive_relative",
      [](A& a) { return a.additive(4, true, true) & a.relative_bias(9) & Mask::window(30, 2); });
  if constexpr (kHasFunctor) {
    add("tree", [](A& a) { return a.tree(); });
  }
  add("bits", [](A& a) { return a.bits(0, 0.4); });
  add("bits_window", [](A& a) { return a.bits(0, 0.4) & Mask::window(45, 3); });
  add("bits_sparse_causal", [](A& a) { return a.bits(0, 0.03) & Mask::causal(); });
  if constexpr (kHasFunctor) {
    add("functor", [](A& a) { return a.functor(); });
    add("functor_causal", [](A& a) { return Mask::causal() & a.functor(); });
  }
  add("window_and_padding", [](A& a) { return Mask::window(25, 0) & a.padding(); });
  add("window_or_prefix",
      [](A& a) { return Mask::causal() & (Mask::window(6, 0) | a.bits(10, 0)); });
  add("chunk_or_window", [](A&) { return Mask::chunked(12) | Mask::window(3, 1); });
  add("padding_or_window", [](A& a) { return a.padding() | Mask::window(2, 2); });
  add("or_of_distant", [](A& a) { return Mask::window(4, 0) | (a.bits(3, 0) & Mask::causal()); });
  add("nested", [](A& a) {
    const auto any_keys = [&] {
      if constexpr (kHasFunctor) {
        return a.functor();
      } else {
        return a.bits(0, 0.3);
      }
    };
    return (Mask::causal() & (Mask::chunked(32) | a.bits(4, 0.1))) |
           (Mask::window(2, 2) & (a.padding() | any_keys()));
  });
  add("nothing", [](A& a) {
    const Mask own_key = Mask::causal() & Mask::window(-1, 0) & Mask::chunked(1);
    if constexpr (kHasFunctor) {
      static_cast<void>(a);
      return own_key &
             Mask::functor([](void*, int32_t, int32_t, int64_t, int64_t) { return false; });
    } else {
      return own_key & a.bits(0, 0);
    }
  });
  add("bias_and_or",
      [](A& a) { return a.relative_bias(16) & (Mask::window(9, 0) | a.bits(5, 0)); });
}

}  // namespace pagoda::material
