// Asynchronous copies: one kernel that moves tiles in and out by every engine, and the same kernel
// without each of its synchronisations, which must be reported.
#include "emulator/async/copies.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "arch/bulk_copy.hpp"
#include "arch/cp_async.hpp"
#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/machine/mutation.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

constexpr int kRows = 16;
constexpr int kColumns = 64;  // 128 bytes of 16-bit elements

// Tile after tile: TMA in, every element plus one, TMA out. Two threads' roles share the buffer.
struct AddOne {
  struct Params {
    TensorMap in, out;
    int tiles;
  };
  struct Storage {
    SharedArray<uint16_t, kRows * kColumns, 1024> tile;
    MBarrier full;
  };
  static constexpr int kThreads = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (thread_idx() == 0) {
      name_barrier(storage.full, "full");
      storage.full.init(1);
      fence_mbarrier_init();
    }
    syncthreads();
    for (int tile = 0; tile < params.tiles; ++tile) {
      const int32_t first = thread_idx() == 0 ? 1 : 0;
      storage.full.arrive_expect_tx_if(first, storage.tile.bytes());
      tma_load<2>(first, storage.tile.data(), params.in, {0, tile * kRows}, storage.full);
      storage.full.wait(static_cast<uint32_t>(tile) & 1U);
      for (int i = thread_idx(); i < kRows * kColumns; i += kThreads) {
        const SharedPtr<uint16_t> element = storage.tile.at(i);
        store(element, static_cast<uint16_t>(load(element) + 1));
      }
      fence_proxy_async_shared();
      syncthreads();
      if (first != 0) {
        tma_store<2>(first, params.out, {0, tile * kRows}, storage.tile.data());
        bulk_commit_group();
        bulk_wait_group_read<0>();
      }
    }
  }
};

TensorMap map_of(uint16_t* data, int rows, Swizzle swizzle) {
  return {.type = TensorMapType::kU16,
          .rank = 2,
          .address = reinterpret_cast<uint64_t>(data),
          .dims = {kColumns, static_cast<uint64_t>(rows)},
          .strides_bytes = {kColumns * 2},
          .box = {kColumns, kRows},
          .swizzle = swizzle};
}

struct AddOneRun {
  Result result;
  bool is_right = true;
};

AddOneRun run_add_one(Options options) {
  constexpr int kTiles = 3, kValidRows = kTiles * kRows - 5;  // the last tile hangs over
  std::vector<uint16_t> in(kValidRows * kColumns), out(in.size(), 0xdead);
  std::iota(in.begin(), in.end(), uint16_t{1});
  AddOneRun run;
  run.result = launch<AddOne>(
      shape_of<AddOne>("add_one", {1}),
      {map_of(in.data(), kValidRows, Swizzle::k128B),
       map_of(out.data(), kValidRows, Swizzle::k128B), kTiles},
      {input("in", in.data(), in.size()), output("out", out.data(), out.size())}, options);
  for (size_t i = 0; i < in.size(); ++i)
    run.is_right = run.is_right && out[i] == static_cast<uint16_t>(in[i] + 1);
  return run;
}

TEST(Copies, tiles_go_in_and_out_in_every_mode_over_100_seeds) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const AddOneRun run = run_add_one({.mode = mode, .seed = seed});
      ASSERT_TRUE(run.result.is_clean()) << name(mode) << '\n' << to_string(run.result.reports[0]);
      ASSERT_TRUE(run.is_right) << name(mode) << " seed " << seed;
    }
  }
}

TEST(Copies, every_synchronisation_left_out_is_noticed) {
  MutationSites sites;
  run_add_one({.mutation = &sites});
  ASSERT_GE(sites.sites().size(), 9U);
  for (size_t site = 0; site < sites.sites().size(); ++site) {
    bool is_noticed = false;
    for (uint64_t seed = 1; seed <= 20 && !is_noticed; ++seed) {
      sites.drop(static_cast<int>(site));
      const AddOneRun run =
          run_add_one({.mode = emulator::mutation_mode(seed), .seed = seed, .mutation = &sites});
      is_noticed = !run.result.is_clean() || !run.is_right;
    }
    EXPECT_TRUE(is_noticed) << sites.sites()[site].primitive << " line "
                            << sites.sites()[site].line;
  }
}

TEST(Copies, a_missing_proxy_fence_is_named) {
  MutationSites sites;
  run_add_one({.mutation = &sites});
  for (size_t site = 0; site < sites.sites().size(); ++site) {
    if (sites.sites()[site].primitive != "fence_proxy_async_shared") continue;
    sites.drop(static_cast<int>(site));
    const AddOneRun run = run_add_one({.mutation = &sites});
    ASSERT_FALSE(run.result.is_clean());
    const std::string text = to_string(run.result.reports[0]);
    EXPECT_NE(text.find("fence_proxy_async is missing"), std::string::npos) << text;
    EXPECT_NE(text.find("tma_store"), std::string::npos) << text;
    return;
  }
  FAIL() << "the kernel has no proxy fence";
}

// One box stored at given coordinates.
struct StoreBox {
  struct Params {
    TensorMap out;
    TmaCoordinates<2> at;
  };
  struct Storage {
    SharedArray<uint16_t, kRows * kColumns, 1024> tile;
  };
  static constexpr int kThreads = 32;
  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    for (int i = thread_idx(); i < kRows * kColumns; i += kThreads) store(storage.tile.at(i), 7);
    fence_proxy_async_shared();
    syncwarp();
    if (thread_idx() != 0) return;
    tma_store<2>(1, params.out, params.at, storage.tile.data());
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(Copies, a_store_at_a_negative_coordinate_is_an_error_as_on_the_chip) {
  std::vector<uint16_t> out(kRows * kColumns, 0);
  for (const TmaCoordinates<2> at : {TmaCoordinates<2>{-8, 0}, TmaCoordinates<2>{0, -1}}) {
    const Result result = launch<StoreBox>(shape_of<StoreBox>("store_box", {1}),
                                           {map_of(out.data(), kRows, Swizzle::k128B), at},
                                           {output("out", out.data(), out.size())});
    ASSERT_EQ(result.reports.size(), 1U);
    EXPECT_EQ(result.reports[0].kind, ReportKind::kBounds);
    EXPECT_NE(result.reports[0].message.find("must be at least 0"), std::string::npos)
        << result.reports[0].message;
  }
}

TEST(Copies, a_store_over_the_end_of_a_line_writes_whole_pieces_of_16_bytes) {
  constexpr int kPitch = 2 * kColumns, kDim = 69;  // elements; 5 behind the first box
  std::vector<uint16_t> out(kRows * kPitch, 0);
  TensorMap map = map_of(out.data(), kRows, Swizzle::k128B);
  map.dims[0] = kDim;
  map.strides_bytes[0] = kPitch * 2;
  const Result result = launch<StoreBox>(shape_of<StoreBox>("store_box", {1}), {map, {{64, 0}}},
                                         {output("out", out.data(), out.size())});
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
  for (int column = 0; column < kPitch; ++column) {
    EXPECT_EQ(out[static_cast<size_t>(column)], column >= 64 && column < 72 ? 7 : 0) << column;
  }
}

// cp.async by all threads, with a group in flight while the other is read.
struct Gather {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
    int tiles;
  };
  struct Storage {
    SharedArray<uint32_t, 2 * 256> tile;  // [2 stages, 64 threads, 4 words]
  };
  static constexpr int kThreads = 64;

  static PAGODA_DEVICE void fetch(const Params& params, Storage& storage, int tile) {
    // The last tile has half of its bytes; the rest is zero.
    const int32_t valid = tile == params.tiles - 1 ? 8 : 16;
    cp_async<16>(storage.tile.at(tile % 2 * 256 + thread_idx() * 4),
                 params.in + tile * 256 + thread_idx() * 4, valid);
    cp_async_commit();
  }
  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    fetch(params, storage, 0);
    for (int tile = 0; tile < params.tiles; ++tile) {
      if (tile + 1 < params.tiles) {
        fetch(params, storage, tile + 1);
        cp_async_wait<1>();
      } else {
        cp_async_wait<0>();
      }
      syncthreads();
      for (int i = thread_idx(); i < 256; i += kThreads) {
        store(params.out + tile * 256 + i, load(storage.tile.at(tile % 2 * 256 + 255 - i)));
      }
      syncthreads();
    }
  }
};

AddOneRun run_gather(Options options) {
  constexpr int kTiles = 4;
  std::vector<uint32_t> in(kTiles * 256), out(in.size(), 0xdead);
  std::iota(in.begin(), in.end(), 1U);
  AddOneRun run;
  run.result = launch<Gather>(
      shape_of<Gather>("gather", {1}), {in.data(), out.data(), kTiles},
      {input("in", in.data(), in.size()), output("out", out.data(), out.size())}, options);
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t source = i / 256 * 256 + 255 - i % 256;
    const bool is_filled = i / 256 == kTiles - 1 && source % 4 >= 2;
    run.is_right = run.is_right && out[i] == (is_filled ? 0 : in[source]);
  }
  return run;
}

// Groups without copies keep the count even at the end of a loop; no thread needs to wait for them.
struct EmptyGroups {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
  };
  struct Storage {
    SharedArray<uint32_t, 4> words;
  };
  static constexpr int kThreads = 32;
  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (thread_idx() != 0) return;
    cp_async<16>(storage.words.data(), params.in);
    cp_async_commit();
    cp_async_commit();
    cp_async_commit();
    cp_async_wait<2>();
    store(params.out, load(storage.words.at(3)));
  }
};

TEST(Copies, a_thread_may_end_with_empty_groups) {
  const std::vector<uint32_t> in{1, 2, 3, 4};
  std::vector<uint32_t> out(1, 0);
  for (const Mode mode : kModes) {
    const Result result = launch<EmptyGroups>(
        shape_of<EmptyGroups>("empty_groups", {1}), {in.data(), out.data()},
        {input("in", in.data(), 4), output("out", out.data(), 1)}, {.mode = mode});
    ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
    EXPECT_EQ(out[0], 4U);
  }
}

TEST(Copies, thread_copies_arrive_in_every_mode_over_100_seeds) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const AddOneRun run = run_gather({.mode = mode, .seed = seed});
      ASSERT_TRUE(run.result.is_clean()) << name(mode) << '\n' << to_string(run.result.reports[0]);
      ASSERT_TRUE(run.is_right) << name(mode) << " seed " << seed;
    }
  }
}

TEST(Copies, every_synchronisation_of_thread_copies_left_out_is_noticed) {
  MutationSites sites;
  run_gather({.mutation = &sites});
  ASSERT_GE(sites.sites().size(), 5U);
  for (size_t site = 0; site < sites.sites().size(); ++site) {
    bool is_noticed = false;
    for (uint64_t seed = 1; seed <= 20 && !is_noticed; ++seed) {
      sites.drop(static_cast<int>(site));
      const AddOneRun run =
          run_gather({.mode = emulator::mutation_mode(seed), .seed = seed, .mutation = &sites});
      is_noticed = !run.result.is_clean() || !run.is_right;
    }
    EXPECT_TRUE(is_noticed) << sites.sites()[site].primitive << " line "
                            << sites.sites()[site].line;
  }
}

// One lane loads 16 bytes by cp.async or by a bulk load and stores them by a bulk store.
struct InAndOut {
  enum class Bug {
    kNone,
    kNoProxyFence,     // between cp.async and the copy engine's read
    kFenceByOther,     // not the thread that initialised the barrier
    kExcessBytes,      // more bytes land than were expected
    kCopyOverBarrier,  // the destination overlaps it
    kInitTwice,
    kInvalidateInFlight
  };
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
    Bug bug = Bug::kNone;
  };
  struct Storage {
    SharedArray<uint32_t, 16> words;
    MBarrier full;
    uint64_t padding;
  };
  static constexpr int kThreads = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    const bool is_first = thread_idx() == 0;
    if (is_first) {
      storage.full.init(1);
      if (params.bug == Bug::kInitTwice) storage.full.init(1);
      if (params.bug != Bug::kFenceByOther) fence_mbarrier_init();
    }
    syncthreads();
    if (params.bug == Bug::kFenceByOther && thread_idx() == 32) fence_mbarrier_init();
    syncthreads();
    if (!is_first) return;
    cp_async<16>(storage.words.data(), params.in);
    cp_async_commit();
    cp_async_wait<0>();
    storage.full.arrive_expect_tx(16);
    const bool is_long = params.bug == Bug::kExcessBytes || params.bug == Bug::kCopyOverBarrier;
    bulk_load(1, storage.words.at(params.bug == Bug::kCopyOverBarrier ? 16 : 4), params.in + 4,
              params.bug == Bug::kExcessBytes ? 32 : 16, storage.full);
    if (params.bug == Bug::kInvalidateInFlight) return storage.full.invalidate();
    storage.full.wait(0);
    if (params.bug != Bug::kNoProxyFence) fence_proxy_async_shared();
    bulk_store(1, params.out, storage.words.data(), is_long ? 16 : 32);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

Result run_in_and_out(InAndOut::Bug bug, Options options, bool* is_right = nullptr) {
  std::vector<uint32_t> in(16), out(8, 0xdead);
  std::iota(in.begin(), in.end(), 1U);
  Result result = launch<InAndOut>(
      shape_of<InAndOut>("in_and_out", {1}), {in.data(), out.data(), bug},
      {input("in", in.data(), in.size()), output("out", out.data(), out.size())}, options);
  if (is_right != nullptr) *is_right = std::equal(out.begin(), out.end(), in.begin());
  return result;
}

TEST(Copies, each_rule_of_barriers_and_proxies_is_kept) {
  using Bug = InAndOut::Bug;
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      bool is_right = false;
      const Result clean = run_in_and_out(Bug::kNone, {.mode = mode, .seed = seed}, &is_right);
      ASSERT_TRUE(clean.is_clean()) << to_string(clean.reports[0]);
      ASSERT_TRUE(is_right);
    }
    const auto expect = [&](Bug bug, ReportKind kind, const char* text) {
      const Result result = run_in_and_out(bug, {.mode = mode, .seed = 3});
      ASSERT_FALSE(result.is_clean()) << name(mode) << ' ' << text;
      EXPECT_EQ(result.reports[0].kind, kind) << to_string(result.reports[0]);
      EXPECT_NE(to_string(result.reports[0]).find(text), std::string::npos)
          << name(mode) << '\n'
          << to_string(result.reports[0]);
    };
    expect(Bug::kNoProxyFence, ReportKind::kRace, "fence_proxy_async is missing");
    expect(Bug::kFenceByOther, ReportKind::kProtocol, "fence_mbarrier_init is missing");
    expect(Bug::kExcessBytes, ReportKind::kProtocol, "16 bytes more than its phase 0 expects");
    expect(Bug::kCopyOverBarrier, ReportKind::kProtocol, "write over the live mbarrier");
    expect(Bug::kInitTwice, ReportKind::kProtocol, "is initialised already");
    if (mode != Mode::kEager) {
      expect(Bug::kInvalidateInFlight, ReportKind::kProtocol, "still waits for 16 bytes");
    }
  }
}

// Reading many flags that are all set is no endless loop.
struct ManyFlags {
  struct Params {
    arch::GlobalPtr<const uint32_t> flags;
    arch::GlobalPtr<uint32_t> out;
  };
  struct Storage {};
  static constexpr int kThreads = 32, kFlags = 500;
  static PAGODA_DEVICE void run(const Params& params) {
    if (thread_idx() != 0) return;
    uint32_t sum = 0;
    for (int i = 0; i < kFlags; ++i) sum += load_acquire(params.flags + i);
    store(params.out, sum);
  }
};

TEST(Copies, many_acquires_of_set_flags_end) {
  const std::vector<uint32_t> flags(ManyFlags::kFlags, 1);
  std::vector<uint32_t> out(1, 0);
  const Result result =
      launch<ManyFlags>(shape_of<ManyFlags>("many_flags", {1}), {flags.data(), out.data()},
                        {input("flags", flags.data(), flags.size()), output("out", out.data(), 1)});
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
  EXPECT_EQ(out[0], static_cast<uint32_t>(ManyFlags::kFlags));
}

}  // namespace
}  // namespace pagoda
