// Tensor copies: the box of a tensor map, row by row, 16 bytes at a time as the swizzle moves them.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "arch/layout/tensor_map.hpp"
#include "core/element.hpp"
#include "emulator/async/copies.hpp"
#include "emulator/sync/barriers.hpp"

namespace pagoda::emulator {
namespace {

using arch::TensorMapSpec;
using arch::TensorMapType;
using Index = std::array<int64_t, arch::kMaxTensorRank>;

// The first 1 KiB of the window belongs to the system: address() of memory.hpp.
constexpr uint32_t kSharedBase = 1024;

std::string text_of(const arch::TensorMapFault& fault) {
  std::string field = fault.field;
  if (fault.dimension >= 0) field += "[" + std::to_string(fault.dimension) + "]";
  return field + " = " + std::to_string(fault.value) + ", " + fault.rule + " " +
         std::to_string(fault.limit);
}

void check_map(const TensorMapSpec& map, const int32_t* coordinates, int rank, const void* shared,
               bool is_store, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  if (rank != map.rank) {
    machine.reporter().fail(
        ReportKind::kProtocol, primitive, where,
        std::to_string(rank) + " coordinates for a tensor map of rank " + std::to_string(map.rank));
  }
  if (const arch::TensorMapFault fault = validate(map); fault.exists()) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "tensor map: " + text_of(fault));
  }
  int32_t all[arch::kMaxTensorRank] = {};
  std::copy(coordinates, coordinates + rank, all);
  const auto address = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(shared));
  const arch::TensorMapFault fault =
      is_store ? validate_store(map, all, address) : validate_load(map, all, address);
  if (fault.exists()) {
    machine.reporter().fail(ReportKind::kBounds, primitive, where, text_of(fault));
  }
}

// One line of the box: dimension 0, the others fixed.
struct Line {
  const std::byte* global = nullptr;  // of the first element inside; nullptr: none is inside
  size_t skipped = 0;                 // bytes of the line before it
  size_t inside = 0;                  // bytes of the line in the tensor
  uint32_t dense = 0;                 // offset of the line in the box before the swizzle
};

// Calls on_line for the lines of the box, in the order of their addresses in shared memory.
template <class OnLine>
void for_each_line(const TensorMapSpec& map, const Index& at, OnLine on_line) {
  const auto element = static_cast<int64_t>(element_bytes(map.type));
  const int64_t width = map.box[0];
  const int64_t first = std::clamp<int64_t>(-at[0], 0, width);
  const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(map.dims[0]) - at[0], first, width);
  std::array<uint32_t, arch::kMaxTensorRank> extent{1, 1, 1, 1, 1};
  uint32_t lines = 1;
  for (int d = 1; d < map.rank; ++d) lines *= extent[static_cast<size_t>(d)] = box_extent(map, d);
  for (uint32_t line = 0; line < lines; ++line) {
    bool is_inside = first < last;
    int64_t offset = (at[0] + first) * element;
    uint32_t rest = line;
    for (int d = 1; d < map.rank; ++d) {
      const auto dim = static_cast<size_t>(d);
      const int64_t position = at[dim] + static_cast<int64_t>(rest % extent[dim]) *
                                             static_cast<int64_t>(map.element_strides[d]);
      rest /= extent[dim];
      is_inside = is_inside && position >= 0 && position < static_cast<int64_t>(map.dims[d]);
      offset += position * static_cast<int64_t>(map.strides_bytes[d - 1]);
    }
    on_line(Line{
        .global = is_inside ? reinterpret_cast<const std::byte*>(map.address) + offset : nullptr,
        .skipped = static_cast<size_t>(first * element),
        .inside = is_inside ? static_cast<size_t>((last - first) * element) : 0,
        .dense = line * box_line_bytes(map)});
  }
}

uint32_t swizzled(const TensorMapSpec& map, uint32_t base, uint32_t dense) {
  return swizzle_address(base + dense, map.swizzle) - base;
}

void fill(std::byte* bytes, size_t count, const TensorMapSpec& map) {
  if (map.oob_fill == arch::OobFill::kZero) {
    std::memset(bytes, 0, count);
  } else {
    std::memset(bytes, 0xff, count);  // a NaN of every floating type
  }
}

// Adds element by element, in the element's type (PTX ISA, cp.reduce.async.bulk.tensor).
void add_elements(std::byte* to, const std::byte* from, size_t bytes, TensorMapType type) {
  const auto add = [&]<class T>(T, auto sum) {
    for (size_t i = 0; i < bytes; i += sizeof(T)) {
      T a, b;
      std::memcpy(&a, to + i, sizeof(T));
      std::memcpy(&b, from + i, sizeof(T));
      a = sum(a, b);
      std::memcpy(to + i, &a, sizeof(T));
    }
  };
  const auto plain = [](auto a, auto b) { return a + b; };
  switch (type) {
    case TensorMapType::kBF16:
      return add(uint16_t{}, [](uint16_t a, uint16_t b) {
        return core::float_to_bf16(core::bf16_to_float(a) + core::bf16_to_float(b));
      });
    case TensorMapType::kF16:
      return add(uint16_t{}, [](uint16_t a, uint16_t b) {
        return core::float_to_f16(core::f16_to_float(a) + core::f16_to_float(b));
      });
    case TensorMapType::kF32:
    case TensorMapType::kF32Ftz:
    case TensorMapType::kTF32:
    case TensorMapType::kTF32Ftz: return add(float{}, plain);
    case TensorMapType::kF64: return add(double{}, plain);
    case TensorMapType::kU64:
    case TensorMapType::kS64: return add(uint64_t{}, plain);
    default: return add(uint32_t{}, plain);
  }
}

Index index_of(const int32_t* coordinates, int rank) {
  Index at{};
  std::copy(coordinates, coordinates + rank, at.begin());
  return at;
}

}  // namespace

void tma_load(void* to, const TensorMapSpec& map, const int32_t* coordinates, int rank,
              void* barrier_address, TensorLoadTarget target, const char* primitive,
              const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  machine.scheduler().progress();
  check_map(map, coordinates, rank, to, false, primitive, where);
  Cta& home = *thread.cta;
  struct Destination {
    std::byte* to;
    MBarrierState* barrier;
  };
  std::vector<Destination> destinations;
  if (target.cta_mask == 0) {
    void* const signalled =
        target.is_pair ? map_shared(barrier_address, home.rank & ~1, where) : barrier_address;
    destinations.push_back({static_cast<std::byte*>(to),
                            &machine.mbarriers().find_for_copy(signalled, primitive, where)});
  }
  for (int cta = 0; cta < 16; ++cta) {
    if ((target.cta_mask >> cta & 1) == 0) continue;
    destinations.push_back({static_cast<std::byte*>(map_shared(to, cta, where)),
                            &machine.mbarriers().find_for_copy(
                                map_shared(barrier_address, cta, where), primitive, where)});
  }
  const uint32_t base = home.offset_of(to) + kSharedBase;
  auto operation = machine.engines().make_operation(
      primitive, where, thread,
      [=, &machine, destinations = std::move(destinations),
       at = index_of(coordinates, rank)](AsyncOperation& self) {
        const size_t line_bytes = map.box[0] * element_bytes(map.type);
        std::vector<std::byte> staged(line_bytes);
        for_each_line(map, at, [&](const Line& line) {
          fill(staged.data(), line_bytes, map);
          if (line.global != nullptr) {
            machine.memory().access_global(line.global, line.inside, false, self.access());
            std::memcpy(staged.data() + line.skipped, line.global, line.inside);
          }
          for (const Destination& destination : destinations) {
            for (uint32_t i = 0; i < line_bytes; i += 16) {
              std::byte* const chunk = destination.to + swizzled(map, base, line.dense + i);
              machine.memory().access_shared(chunk, 16, true, self.access());
              std::memcpy(chunk, staged.data() + i, 16);
            }
          }
        });
        for (const Destination& destination : destinations) {
          machine.mbarriers().complete_bytes(*destination.barrier, box_bytes(map), self);
        }
      });
  if (machine.trace().is_tracing()) operation->details = arch::name(target.eviction);
  machine.engines().submit(std::move(operation));
}

void tma_store(const TensorMapSpec& map, const int32_t* coordinates, int rank, const void* from,
               bool adds, const Where& where) {
  Machine& machine = Machine::current();
  const char* const primitive = adds ? "tma_reduce_add" : "tma_store";
  machine.scheduler().progress();
  check_map(map, coordinates, rank, from, true, primitive, where);
  const auto* const begin = static_cast<const std::byte*>(from);
  const uint32_t base = Machine::current_thread().cta->offset_of(from) + kSharedBase;
  const Index at = index_of(coordinates, rank);
  submit_bulk_store(
      primitive, where,
      [=, &machine](AsyncOperation& self) {
        std::vector<std::byte> staged(box_footprint_bytes(map));
        const uint32_t pitch = box_line_bytes(map), used = map.box[0] * element_bytes(map.type);
        for (uint32_t i = 0; i < staged.size(); i += 16) {
          if (i % pitch >= used) continue;  // between the lines of a narrow box
          const std::byte* const chunk = begin + swizzled(map, base, i);
          // Bytes outside of the tensor are not stored and may be unwritten.
          machine.memory().access_shared(chunk, 16, false, self.access(), true);
          std::memcpy(staged.data() + i, chunk, 16);
        }
        return staged;
      },
      [=, &machine](AsyncOperation& self, const std::vector<std::byte>& staged) {
        const size_t count = stored_line_bytes(map, static_cast<int32_t>(at[0]));
        for_each_line(map, at, [&](const Line& line) {
          if (line.global == nullptr) return;
          auto* const to = const_cast<std::byte*>(line.global);
          Access access = self.access();
          access.stamp.is_atomic = adds;
          machine.memory().access_global(to, count, true, access);
          const std::byte* const bytes = staged.data() + line.dense + line.skipped;
          if (adds) {
            add_elements(to, bytes, count, map.type);
          } else {
            std::memcpy(to, bytes, count);
          }
        });
      });
}

}  // namespace pagoda::emulator
