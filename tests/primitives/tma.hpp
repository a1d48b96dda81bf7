// Tensor copies: loads of every rank, swizzle and edge, multicast, stores, reductions, groups.
#pragma once

#include <algorithm>

#include "arch/cluster.hpp"
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

// One box to shared memory, and from there unchanged to global memory.
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

// Each CTA of a pair loads its half of a tile into both.
struct TmaMulticast {
  static constexpr int kHalf = 2048;  // bytes: 32 rows of 32 bf16
  struct Params {
    TensorMap map;
    arch::GlobalPtr<uint32_t> out;  // [2, 2 * kHalf / 4]
  };
  static constexpr int kThreads = 64, kClusterSize = 2, kMinArch = 90;
  struct Storage {
    SharedArray<uint32_t, 2 * kHalf / 4, 1024> tile;
    MBarrier full;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    if (thread_idx() == 0) {
      s.full.init(1);
      fence_mbarrier_init();
    }
    cluster_sync();  // the barriers are initialised before a copy signals them
    const int rank = cluster_rank();
    if (warp_idx() == 0) {
      const int32_t elected = elect_one();
      s.full.arrive_expect_tx_if(elected, 2 * kHalf);
      tma_load_multicast<2>(elected, s.tile.at(rank * kHalf / 4), p.map, {{0, 32 * rank}}, s.full,
                            0b11, Eviction::kLast);
    }
    s.full.wait(0);
    for (int i = thread_idx(); i < 2 * kHalf / 4; i += kThreads) {
      store(p.out + rank * 2 * kHalf / 4 + i, load(s.tile.at(i)));
    }
    cluster_sync();  // a CTA does not end while the other may still write to it
  }
};

enum class TmaWrite : uint8_t { kStore, kReduceAdd };

// A box from shared memory to the tensor, twice where it adds.
template <int kRank, TmaWrite kWrite>
struct TmaStore {
  struct Params {
    TensorMap map;
    TmaCoordinates<kRank> at;
    uint32_t box_bytes;
    arch::GlobalPtr<const uint32_t> in;  // the box as it lies in shared memory
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
    fence_proxy_async_shared();  // the stores above, before the engine reads them
    syncthreads();
    if (warp_idx() == 0) {
      const int32_t elected = elect_one();
      if constexpr (kWrite == TmaWrite::kStore) {
        tma_store<kRank>(elected, p.map, p.at, s.box.data());
      } else {
        tma_reduce_add<kRank>(elected, p.map, p.at, s.box.data());
        tma_reduce_add<kRank>(elected, p.map, p.at, s.box.data());
      }
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
      // Lane 0 issued every store, so it alone has bulk groups; the other lanes return at once.
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
// store writes whole chunks of 16 bytes, also past the end of a line of the tensor (measured on an
// H200).
template <class Visit>
void visit_box(const TensorMapSpec& spec, const int32_t* at, bool is_store, Visit visit) {
  size_t count = 1;
  for (int d = 0; d < spec.rank; ++d) count *= spec.box[d];
  const size_t size = element_bytes(spec.type);
  const size_t chunk = is_store ? 16 / size : 1;  // elements
  for (size_t linear = 0; linear < count; ++linear) {
    int64_t source = 0;
    size_t rest = linear;
    for (int d = 0; d < spec.rank; ++d) {
      const int64_t position = at[d] + static_cast<int64_t>(rest % spec.box[d]);
      rest /= spec.box[d];
      const size_t dim = d == 0 ? (spec.dims[0] + chunk - 1) / chunk * chunk : spec.dims[d];
      if (position < 0 || position >= static_cast<int64_t>(dim)) source = -1;
      if (source < 0) continue;
      source += position * static_cast<int64_t>(d == 0 ? size : spec.strides_bytes[d - 1]);
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

// Where a box lies along one dimension: inside the tensor, half over its far edge, half before its
// near edge, or beyond it.
enum class Edge : uint8_t { kInside, kFar, kNear, kBeyond };

struct Place {
  const char* name;
  Edge edges[5];
};
inline constexpr Place kPlaces[] = {
    {"inside", {Edge::kInside, Edge::kInside, Edge::kInside, Edge::kInside, Edge::kInside}},
    {"far edge", {Edge::kFar, Edge::kFar, Edge::kFar, Edge::kFar, Edge::kFar}},
    {"near edge", {Edge::kNear, Edge::kNear, Edge::kNear, Edge::kNear, Edge::kNear}},
    {"mixed edges", {Edge::kNear, Edge::kFar, Edge::kNear, Edge::kFar, Edge::kInside}},
    {"one dimension beyond", {Edge::kInside, Edge::kBeyond, Edge::kInside, Edge::kNear}},
    {"beyond", {Edge::kBeyond, Edge::kBeyond, Edge::kBeyond, Edge::kBeyond, Edge::kBeyond}}};

template <int kRank>
TmaCoordinates<kRank> coordinates(const TensorMapSpec& spec, const Place& place) {
  TmaCoordinates<kRank> at{};
  for (int d = 0; d < kRank; ++d) {
    const auto dim = static_cast<int32_t>(spec.dims[d]), box = static_cast<int32_t>(spec.box[d]);
    switch (place.edges[d]) {
      case Edge::kInside: at.value[d] = (dim - box) / 2; break;
      case Edge::kFar: at.value[d] = dim - (box + 1) / 2; break;
      case Edge::kNear: at.value[d] = -(box / 2); break;
      case Edge::kBeyond: at.value[d] = dim + 16; break;
    }
    // A line must start on 16 bytes: otherwise an H200 raises an illegal instruction.
    if (d == 0) at.value[0] &= ~static_cast<int32_t>(15 / element_bytes(spec.type));
  }
  return at;
}

// --- cases ------------------------------------------------------------------------------------

template <int kRank>
void add_tma_load_case(Cases& cases, TensorMapSpec spec, const Place& place, Eviction eviction,
                       const std::string& suffix) {
  const Bytes input = random_bytes(tensor_bytes(spec), 81);
  Bytes expected(dense_bytes(spec), std::byte{0});
  const size_t size = element_bytes(spec.type);
  const TmaCoordinates<kRank> at = coordinates<kRank>(spec, place);
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
                                        swizzle_name(spec.swizzle) + "/" + place.name + suffix,
                                    {}, input, poison(expected.size()), expected, make_params));
}

template <int kRank>
void add_tma_load_cases(Cases& cases) {
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    for (const Place& place : kPlaces) {
      add_tma_load_case<kRank>(cases, test_tensor(kRank, TensorMapType::kBF16, swizzle), place,
                               Eviction::kNormal, "");
    }
  }
  const auto with = [&](TensorMapType type, Eviction eviction, const std::string& suffix) {
    add_tma_load_case<kRank>(cases, test_tensor(kRank, type, Swizzle::k128B), kPlaces[1], eviction,
                             suffix);
  };
  with(TensorMapType::kU8, Eviction::kFirst, "/uint8, evict first");
  with(TensorMapType::kF32, Eviction::kLast, "/float, evict last");
}

template <class T>
T add_bits(T a, T b, TensorMapType type) {
  if (type != TensorMapType::kF32) return a + b;
  float x = 0, y = 0;
  std::memcpy(&x, &a, 4);
  std::memcpy(&y, &b, 4);
  x += y;
  std::memcpy(&a, &x, 4);
  return a;
}

template <int kRank, TmaWrite kWrite>
void add_tma_store_case(Cases& cases, TensorMapType type, Swizzle swizzle, const Place& place) {
  const TensorMapSpec spec = test_tensor(kRank, type, swizzle);
  const size_t size = element_bytes(type);
  const bool is_float = type == TensorMapType::kF32;
  Random random(82);
  const auto fill = [&](size_t bytes) {  // small integers, as float where the tensor is float
    std::vector<uint32_t> words(bytes / 4);
    for (uint32_t& word : words) {
      word = static_cast<uint32_t>(random.integer(0, 1 << 20));
      const auto number = static_cast<float>(word);
      if (is_float) std::memcpy(&word, &number, 4);
    }
    return to_bytes(words);
  };
  const Bytes input = fill(dense_bytes(spec)), output = fill(tensor_bytes(spec));
  Bytes expected = output;
  TmaCoordinates<kRank> at = coordinates<kRank>(spec, place);
  // A store at a negative coordinate raises an illegal instruction on an H200.
  for (int32_t& coordinate : at.value) coordinate = std::max(coordinate, 0);
  visit_box(spec, at.value, true, [&](int64_t target, size_t source) {
    if (target < 0) return;
    std::byte* to = &expected[static_cast<size_t>(target)];
    if (kWrite == TmaWrite::kStore) {
      std::memcpy(to, &input[source], size);
      return;
    }
    uint32_t sum = 0, more = 0;
    std::memcpy(&sum, to, 4);
    std::memcpy(&more, &input[source], 4);
    sum = add_bits(add_bits(sum, more, type), more, type);
    std::memcpy(to, &sum, 4);
  });
  using Kernel = TmaStore<kRank, kWrite>;
  const auto make_params = [spec, at, bytes = input.size()](const Buffers& b) {
    TensorMapSpec placed = spec;
    placed.address = reinterpret_cast<uint64_t>(b.out);
    return typename Kernel::Params{.map = tensor_map(placed),
                                   .at = at,
                                   .box_bytes = static_cast<uint32_t>(bytes),
                                   .in = reinterpret_cast<const uint32_t*>(b.in)};
  };
  const char* primitive = kWrite == TmaWrite::kStore ? "tma_store" : "tma_reduce_add";
  const char* element = is_float ? "/float" : size == 4 ? "/uint32" : "/bf16";
  cases.push_back(make_case<Kernel>(std::string(primitive) + "/rank " + std::to_string(kRank) +
                                        "/" + swizzle_name(swizzle) + "/" + place.name + element,
                                    {}, input, output, expected, make_params));
}

template <int kRank>
void add_tma_store_cases(Cases& cases) {
  for (const Place& place : kPlaces) {
    add_tma_store_case<kRank, TmaWrite::kStore>(cases, TensorMapType::kBF16, Swizzle::kNone, place);
    add_tma_store_case<kRank, TmaWrite::kStore>(cases, TensorMapType::kBF16, Swizzle::k128B, place);
  }
  add_tma_store_case<kRank, TmaWrite::kStore>(cases, TensorMapType::kBF16, Swizzle::k64B,
                                              kPlaces[1]);
  add_tma_store_case<kRank, TmaWrite::kStore>(cases, TensorMapType::kBF16, Swizzle::k32B,
                                              kPlaces[2]);
  add_tma_store_case<kRank, TmaWrite::kReduceAdd>(cases, TensorMapType::kU32, Swizzle::k128B,
                                                  kPlaces[3]);
  add_tma_store_case<kRank, TmaWrite::kReduceAdd>(cases, TensorMapType::kF32, Swizzle::kNone,
                                                  kPlaces[1]);
}

inline void add_tma_multicast_case(Cases& cases) {
  TensorMapSpec spec{.rank = 2, .swizzle = Swizzle::k64B};
  spec.dims[0] = spec.box[0] = spec.box[1] = 32;
  spec.dims[1] = 64;
  spec.strides_bytes[0] = 64;
  const Bytes input = random_bytes(4096, 83);
  Bytes tile(4096);
  for (size_t i = 0; i < 4096; ++i) tile[swizzled(i, spec.swizzle)] = input[i];
  Bytes expected = tile;
  expected.insert(expected.end(), tile.begin(), tile.end());
  cases.push_back(make_case<TmaMulticast>(
      "tma_load_multicast/cluster of 2", {.x = 2}, input, poison(8192), expected,
      [spec](const Buffers& b) {
        TensorMapSpec placed = spec;
        placed.address = reinterpret_cast<uint64_t>(b.in);
        return TmaMulticast::Params{tensor_map(placed), reinterpret_cast<uint32_t*>(b.out)};
      }));
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
  add_tma_multicast_case(cases);
  add_tma_store_cases<1>(cases);
  add_tma_store_cases<2>(cases);
  add_tma_store_cases<3>(cases);
  add_tma_store_cases<4>(cases);
  add_tma_store_cases<5>(cases);
  add_tma_store_ring_case(cases);
}

}  // namespace pagoda::primitives
