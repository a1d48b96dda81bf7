// Tensor copies: loads and stores of every rank, swizzle and edge, and groups of stores.
#pragma once

#include <algorithm>

#include "arch/fence.hpp"
#include "arch/layout/tensor_map.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "swizzled.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

inline constexpr int kMaxBox = 16384;  // bytes

PAGODA_DEVICE void init_barrier(MBarrier& barrier, uint32_t arrivals) {
  if (thread_idx() == 0) {
    barrier.init(arrivals);
    fence_mbarrier_init();
  }
  syncthreads();
}

// One box to shared memory, and its shared-memory image to global memory.
template <int kRank>
struct TmaLoad {
  struct Params {
    TensorMap map;
    TmaCoordinates<kRank> at;
    Eviction eviction;
    uint32_t box_bytes;
    arch::GlobalPtr<uint32_t> out;
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 90;
  struct Storage {
    SharedArray<uint32_t, kMaxBox / 4, 1024> box;
    MBarrier full;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    init_barrier(s.full, 1);
    if (warp_idx() == 0) {
      const int32_t elected = elect_one();
      if (elected != 0) tma_prefetch_descriptor(p.map);
      s.full.arrive_expect_tx_if(elected, p.box_bytes);
      tma_load<kRank>(elected, s.box.data(), p.map, p.at, s.full, p.eviction);
    }
    s.full.wait(0);
    for (int i = thread_idx(); i < static_cast<int>(p.box_bytes / 4); i += kThreads) {
      store(p.out + i, load(s.box.at(i)));
    }
  }
};

// A box from shared memory to the tensor.
template <int kRank>
struct TmaStore {
  struct Params {
    TensorMap map;
    TmaCoordinates<kRank> at;
    uint32_t box_bytes;
    arch::GlobalPtr<const uint32_t> in;  // the shared-memory image of the box
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 90;
  struct Storage {
    SharedArray<uint32_t, kMaxBox / 4, 1024> box;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    for (int i = thread_idx(); i < static_cast<int>(p.box_bytes / 4); i += kThreads) {
      store(s.box.at(i), load(p.in + i));
    }
    fence_proxy_async_shared();  // the stores above come before the copy engine reads them
    syncthreads();
    if (warp_idx() == 0) {
      const int32_t elected = elect_one();
      tma_store<kRank>(elected, p.map, p.at, s.box.data());
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

// One thread stores many tiles through a ring of two buffers.
struct TmaStoreRing {
  static constexpr int kTiles = 7, kTile = 1024;  // bytes: 8 rows of 64 bf16
  struct Params {
    TensorMap map;
    arch::GlobalPtr<const uint32_t> in;  // [kTiles, kTile / 4]
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = 90;
  struct Storage {
    SharedArray<uint32_t, 2 * kTile / 4, 1024> ring;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int lane = thread_idx();
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % 2 * kTile / 4;
      // Lane 0 issued every store and waits for its group to have read the stage; the other lanes
      // have no groups and wait at syncwarp.
      if (tile >= 2) bulk_wait_group_read<1>();
      syncwarp();
      for (int i = lane; i < kTile / 4; i += 32) {
        store(s.ring.at(stage + i), load(p.in + tile * kTile / 4 + i));
      }
      fence_proxy_async_shared();
      syncwarp();
      tma_store<2>(lane == 0 ? 1 : 0, p.map, {{0, tile * 8}}, s.ring.at(stage));
      bulk_commit_group();
    }
    bulk_wait_group<0>();
  }
};

// --- expected bytes ---------------------------------------------------------------------------

// Calls visit(byte in the tensor or -1, byte in shared memory) for every element of the box. A
// store writes multiples of 16 bytes, also past the end of a line of the tensor (measured on an
// H200).
template <class Visit>
void visit_box(const TensorMapSpec& spec, const int32_t* at, bool is_store, Visit visit) {
  size_t count = 1;
  for (int d = 0; d < spec.rank; ++d) count *= spec.box[d];
  const size_t size = element_bytes(spec.type);
  const size_t unit = is_store ? 16 / size : 1;  // elements
  for (size_t linear = 0; linear < count; ++linear) {
    int64_t source = 0;
    size_t rest = linear;
    for (int d = 0; d < spec.rank; ++d) {
      const int64_t coordinate = at[d] + static_cast<int64_t>(rest % spec.box[d]);
      rest /= spec.box[d];
      const size_t dim = d == 0 ? (spec.dims[0] + unit - 1) / unit * unit : spec.dims[d];
      if (coordinate < 0 || coordinate >= static_cast<int64_t>(dim)) source = -1;
      if (source < 0) continue;
      source += coordinate * static_cast<int64_t>(d == 0 ? size : spec.strides_bytes[d - 1]);
    }
    visit(source, swizzled(linear * size, spec.swizzle));
  }
}

inline size_t dense_bytes(const TensorMapSpec& spec) {
  size_t bytes = element_bytes(spec.type);
  for (int d = 0; d < spec.rank; ++d) bytes *= spec.box[d];
  return bytes;
}

// A tensor with gaps between its rows: dims and box per rank, inner box as wide as the swizzle.
inline TensorMapSpec test_tensor(int rank, TensorMapType type, Swizzle swizzle) {
  TensorMapSpec spec{.type = type, .rank = rank, .swizzle = swizzle};
  const uint32_t size = element_bytes(type);
  const uint32_t width = swizzle == Swizzle::kNone ? 64 : swizzle_width_bytes(swizzle);
  const uint32_t box[] = {width / size, 8, 3, 2, 2};
  const uint64_t dims[] = {2 * width / size + 5, 13, 5, 3, 4};
  uint64_t stride = (dims[0] * size + 15) / 16 * 16 + 32;
  for (int d = 0; d < rank; ++d) {
    spec.box[d] = box[d];
    spec.dims[d] = dims[d];
    if (d > 0) {
      spec.strides_bytes[d - 1] = stride;
      stride *= dims[d];
    }
  }
  return spec;
}

inline size_t tensor_bytes(const TensorMapSpec& spec) {
  uint64_t bytes = spec.dims[0] * element_bytes(spec.type);
  if (spec.rank > 1) bytes = spec.strides_bytes[spec.rank - 2] * spec.dims[spec.rank - 1];
  return (bytes + 15) / 16 * 16;
}

// The position of a box along one dimension: inside the tensor, half past its far edge, half before
// its near edge, or beyond it.
enum class Edge : uint8_t { kInside, kFar, kNear, kBeyond };

struct BoxPosition {
  const char* name;
  Edge edges[5];
};
inline constexpr BoxPosition kPositions[] = {
    {"inside", {Edge::kInside, Edge::kInside, Edge::kInside, Edge::kInside, Edge::kInside}},
    {"far edge", {Edge::kFar, Edge::kFar, Edge::kFar, Edge::kFar, Edge::kFar}},
    {"near edge", {Edge::kNear, Edge::kNear, Edge::kNear, Edge::kNear, Edge::kNear}},
    {"mixed edges", {Edge::kNear, Edge::kFar, Edge::kNear, Edge::kFar, Edge::kInside}},
    {"one dimension beyond", {Edge::kInside, Edge::kBeyond, Edge::kInside, Edge::kNear}},
    {"beyond", {Edge::kBeyond, Edge::kBeyond, Edge::kBeyond, Edge::kBeyond, Edge::kBeyond}}};

template <int kRank>
TmaCoordinates<kRank> coordinates(const TensorMapSpec& spec, const BoxPosition& position) {
  TmaCoordinates<kRank> at{};
  for (int d = 0; d < kRank; ++d) {
    const auto dim = static_cast<int32_t>(spec.dims[d]), box = static_cast<int32_t>(spec.box[d]);
    switch (position.edges[d]) {
      case Edge::kInside: at.value[d] = (dim - box) / 2; break;
      case Edge::kFar: at.value[d] = dim - (box + 1) / 2; break;
      case Edge::kNear: at.value[d] = -(box / 2); break;
      case Edge::kBeyond: at.value[d] = dim + 16; break;
    }
    // A line must start at a multiple of 16 bytes: else an H200 raises "illegal instruction".
    if (d == 0) at.value[0] &= ~static_cast<int32_t>(15 / element_bytes(spec.type));
  }
  return at;
}

// --- cases ------------------------------------------------------------------------------------

template <int kRank>
void add_tma_load_case(Cases& cases, TensorMapSpec spec, const BoxPosition& position,
                       Eviction eviction, const std::string& suffix) {
  const Bytes input = random_bytes(tensor_bytes(spec), 81);
  Bytes expected(dense_bytes(spec), std::byte{0});
  const size_t size = element_bytes(spec.type);
  const TmaCoordinates<kRank> at = coordinates<kRank>(spec, position);
  visit_box(spec, at.value, false, [&](int64_t source, size_t destination) {
    if (source >= 0) std::memcpy(&expected[destination], &input[static_cast<size_t>(source)], size);
  });
  using Kernel = TmaLoad<kRank>;
  const auto make_params = [spec, at, eviction, bytes = expected.size()](const Buffers& b) {
    TensorMapSpec placed = spec;
    placed.address = reinterpret_cast<uint64_t>(b.in);
    return typename Kernel::Params{.map = tensor_map(placed),
                                   .at = at,
                                   .eviction = eviction,
                                   .box_bytes = static_cast<uint32_t>(bytes),
                                   .out = reinterpret_cast<uint32_t*>(b.out)};
  };
  cases.push_back(make_case<Kernel>("tma_load/rank " + std::to_string(kRank) + "/" +
                                        swizzle_name(spec.swizzle) + "/" + position.name + suffix,
                                    {}, input, poison(expected.size()), expected, make_params));
}

template <int kRank>
void add_tma_load_cases(Cases& cases) {
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    for (const BoxPosition& position : kPositions) {
      add_tma_load_case<kRank>(cases, test_tensor(kRank, TensorMapType::kBF16, swizzle), position,
                               Eviction::kNormal, "");
    }
  }
  const auto with = [&](TensorMapType type, Eviction eviction, const std::string& suffix) {
    add_tma_load_case<kRank>(cases, test_tensor(kRank, type, Swizzle::k128B), kPositions[1],
                             eviction, suffix);
  };
  with(TensorMapType::kU8, Eviction::kFirst, "/uint8, evict first");
  with(TensorMapType::kF32, Eviction::kLast, "/float, evict last");
}

template <int kRank>
void add_tma_store_case(Cases& cases, Swizzle swizzle, const BoxPosition& position) {
  const TensorMapSpec spec = test_tensor(kRank, TensorMapType::kBF16, swizzle);
  Random random(82);
  const auto fill = [&](size_t bytes) {
    std::vector<uint32_t> words(bytes / 4);
    for (uint32_t& word : words) word = static_cast<uint32_t>(random.integer(0, 1 << 20));
    return to_bytes(words);
  };
  const Bytes input = fill(dense_bytes(spec)), output = fill(tensor_bytes(spec));
  Bytes expected = output;
  TmaCoordinates<kRank> at = coordinates<kRank>(spec, position);
  // An H200 raises "illegal instruction" for a store at a negative coordinate.
  for (int32_t& coordinate : at.value) coordinate = std::max(coordinate, 0);
  visit_box(spec, at.value, true, [&](int64_t target, size_t source) {
    if (target >= 0) std::memcpy(&expected[static_cast<size_t>(target)], &input[source], 2);
  });
  using Kernel = TmaStore<kRank>;
  const auto make_params = [spec, at, bytes = input.size()](const Buffers& b) {
    TensorMapSpec placed = spec;
    placed.address = reinterpret_cast<uint64_t>(b.out);
    return typename Kernel::Params{.map = tensor_map(placed),
                                   .at = at,
                                   .box_bytes = static_cast<uint32_t>(bytes),
                                   .in = reinterpret_cast<const uint32_t*>(b.in)};
  };
  cases.push_back(make_case<Kernel>("tma_store/rank " + std::to_string(kRank) + "/" +
                                        swizzle_name(swizzle) + "/" + position.name + "/bf16",
                                    {}, input, output, expected, make_params));
}

template <int kRank>
void add_tma_store_cases(Cases& cases) {
  for (const BoxPosition& position : kPositions) {
    add_tma_store_case<kRank>(cases, Swizzle::kNone, position);
    add_tma_store_case<kRank>(cases, Swizzle::k128B, position);
  }
  add_tma_store_case<kRank>(cases, Swizzle::k64B, kPositions[1]);
  add_tma_store_case<kRank>(cases, Swizzle::k32B, kPositions[2]);
}

inline void add_tma_store_ring_case(Cases& cases) {
  TensorMapSpec spec{.rank = 2};
  spec.dims[0] = spec.box[0] = 64;
  spec.dims[1] = TmaStoreRing::kTiles * 8;
  spec.box[1] = 8;
  spec.strides_bytes[0] = 128;
  const Bytes input = random_bytes(TmaStoreRing::kTiles * TmaStoreRing::kTile, 84);
  cases.push_back(make_case<TmaStoreRing>(
      "tma_store/groups", {}, input, poison(input.size()), input, [spec](const Buffers& b) {
        TensorMapSpec placed = spec;
        placed.address = reinterpret_cast<uint64_t>(b.out);
        return TmaStoreRing::Params{tensor_map(placed), reinterpret_cast<const uint32_t*>(b.in)};
      }));
}

inline void add_tma_cases(Cases& cases) {
  add_tma_load_cases<1>(cases);
  add_tma_load_cases<2>(cases);
  add_tma_load_cases<3>(cases);
  add_tma_load_cases<4>(cases);
  add_tma_load_cases<5>(cases);
  add_tma_store_cases<1>(cases);
  add_tma_store_cases<2>(cases);
  add_tma_store_cases<3>(cases);
  add_tma_store_cases<4>(cases);
  add_tma_store_cases<5>(cases);
  add_tma_store_ring_case(cases);
}

}  // namespace pagoda::primitives
