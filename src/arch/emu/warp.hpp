// Warp operations in the emulator: the last lane that arrives computes for all.
#pragma once

#include <bit>
#include <span>

#include "arch/emu/thread.hpp"
#include "arch/layout/where.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::arch {
inline namespace emu {

inline constexpr uint32_t kAllLanes = ~0U;

namespace detail {

struct LaneValue {
  uint32_t in = 0;
  uint32_t select = 0;
  uint64_t out = 0;  // ballot: a bit a lane
};

using Lanes = std::span<LaneValue*>;

// combine(lanes) sets `out` of every lane; lanes[i] is nullptr where lane i takes no part.
template <class Combine>
uint64_t exchange(const char* primitive, const Where& where, LaneValue mine, Combine combine) {
  emulator::Machine::current().collectives().warp(
      emulator::kAllLanes, primitive, where, &mine, [&](emulator::Collective& group) {
        LaneValue* lanes[64];
        const int count = emulator::Machine::current().shape().warp_size;
        for (int i = 0; i < count; ++i) {
          const auto member = static_cast<size_t>(i);
          lanes[i] = group.threads[member] != nullptr
                         ? static_cast<LaneValue*>(group.arguments[member])
                         : nullptr;
        }
        combine(std::span<LaneValue*>(lanes, static_cast<size_t>(count)));
      });
  return mine.out;
}

template <class T, class Source>
T shuffle_from(const char* primitive, T value, Source source, const Where& where) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  const uint64_t out =
      exchange(primitive, where, {.in = std::bit_cast<uint32_t>(value)}, [&](Lanes lanes) {
        for (size_t i = 0; i < lanes.size(); ++i) {
          if (lanes[i] == nullptr) continue;
          // Below lane 0: a large number.
          const auto from = static_cast<size_t>(source(static_cast<int>(i)));
          lanes[i]->out = lanes[from < lanes.size() && lanes[from] != nullptr ? from : i]->in;
        }
      });
  return std::bit_cast<T>(static_cast<uint32_t>(out));
}

}  // namespace detail

inline void syncwarp(uint32_t mask = kAllLanes, Where where = Where::current()) {
  emulator::Machine& machine = emulator::Machine::current();
  if (machine.mutations().is_dropped("syncwarp", where)) return;
  const uint64_t lanes = mask == kAllLanes ? emulator::kAllLanes : mask;
  machine.collectives().warp(lanes, "syncwarp", where, nullptr, [&](emulator::Collective& group) {
    emulator::Clocks all;
    for (emulator::Thread* thread : group.threads) {
      if (thread != nullptr) thread->release_into(all);
    }
    for (emulator::Thread* thread : group.threads) {
      if (thread != nullptr) thread->acquire(all);
    }
  });
}

inline void converge_warp() {}  // an emulated warp has no state of convergence

inline int32_t elect_one(Where where = Where::current()) {
  emulator::Machine::current().collectives().warp(emulator::kAllLanes, "elect_one", where, nullptr,
                                                  [](emulator::Collective&) {});
  return emulator::Machine::current_thread().lane() == 0 ? 1 : 0;
}

// `lane` may differ between lanes.
template <class T>
T shuffle(T value, int lane, Where where = Where::current()) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  const uint64_t out = detail::exchange(
      "shuffle", where,
      {.in = std::bit_cast<uint32_t>(value), .select = static_cast<uint32_t>(lane)},
      [](detail::Lanes of_warp) {
        for (detail::LaneValue* each : of_warp) {
          if (each == nullptr) continue;
          const detail::LaneValue* from = of_warp[each->select % of_warp.size()];
          each->out = from != nullptr ? from->in : each->in;
        }
      });
  return std::bit_cast<T>(static_cast<uint32_t>(out));
}
template <int width, class T>
T shuffle_of(T value, int lane, Where where = Where::current()) {
  return shuffle(value, lane_idx() / width * width + lane, where);
}
template <class T>
T shuffle_xor(T value, int mask, Where where = Where::current()) {
  return detail::shuffle_from(
      "shuffle_xor", value, [mask](int lane) { return lane ^ mask; }, where);
}
template <class T>
T shuffle_up(T value, int delta, Where where = Where::current()) {
  return detail::shuffle_from(
      "shuffle_up", value, [delta](int lane) { return lane - delta; }, where);
}
namespace detail {

// One value for all lanes, folded over them.
template <class Fold>
uint64_t reduce(const char* primitive, const Where& where, uint32_t value, uint64_t start,
                Fold fold) {
  return exchange(primitive, where, {.in = value}, [&](Lanes lanes) {
    uint64_t result = start;
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (lanes[i] != nullptr) result = fold(result, lanes[i]->in, static_cast<int>(i));
    }
    for (LaneValue* lane : lanes) {
      if (lane != nullptr) lane->out = result;
    }
  });
}

}  // namespace detail

inline uint64_t ballot(bool predicate, Where where = Where::current()) {
  return detail::reduce("ballot", where, predicate ? 1 : 0, 0,
                        [](uint64_t bits, uint64_t vote, int lane) { return bits | vote << lane; });
}
inline bool any(bool predicate, Where where = Where::current()) {
  return detail::reduce("any", where, predicate ? 1 : 0, 0,
                        [](uint64_t a, uint32_t b, int) { return a | b; }) != 0;
}
inline bool all(bool predicate, Where where = Where::current()) {
  return detail::reduce("all", where, predicate ? 1 : 0, 1,
                        [](uint64_t a, uint32_t b, int) { return a & b; }) != 0;
}
inline uint32_t reduce_add(uint32_t value, Where where = Where::current()) {
  return static_cast<uint32_t>(detail::reduce("reduce_add", where, value, 0,
                                              [](uint64_t a, uint32_t b, int) { return a + b; }));
}
inline uint32_t reduce_max(uint32_t value, Where where = Where::current()) {
  return static_cast<uint32_t>(
      detail::reduce("reduce_max", where, value, 0,
                     [](uint64_t a, uint32_t b, int) { return a > b ? a : uint64_t{b}; }));
}
}  // namespace emu
}  // namespace pagoda::arch
