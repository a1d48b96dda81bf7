// Tensor memory: what a warp stores comes back, the shapes see the same memory, and each rule has a
// kernel that breaks it beside one that does not. The maps are those of the ISA's tables, written
// again here; no Blackwell chip has run these kernels.
#include "emulator/memory/tensor_memory.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "arch/cluster.hpp"
#include "arch/debug.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/machine/mutation.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

testing::AssertionResult reports(const Result& result, ReportKind kind, const uint32_t& line,
                                 std::string_view text) {
  std::string all;
  for (const Report& report : result.reports) {
    if (report.kind == kind && report.line == line && report.file == "tensor_memory_test.cpp" &&
        to_string(report).find(text) != std::string::npos) {
      return testing::AssertionSuccess();
    }
    all += to_string(report) + "\n";
  }
  return testing::AssertionFailure()
         << "no " << name(kind) << " at line " << line << " with '" << text << "' in:\n"
         << all;
}

// --- shapes ------------------------------------------------------------------------------------

// Four warps store registers of one shape and load them again.
template <TmemShape kShape, int kRepeat>
struct RoundTrip {
  static constexpr int kRegisterCount = tmem_registers(kShape, kRepeat);
  static constexpr int kSplit = kShape == TmemShape::k16x32bx2 ? kRepeat : 0;
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [128 threads, registers]
  };
  struct Storage {
    SharedArray<uint32_t, 1> address;
  };
  static constexpr int kThreads = 128;
  static constexpr bool kHasTensorMemory = true;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (warp_idx() == 0) tmem_allocate<1>(storage.address.data(), 512);
    syncthreads();
    const int first_lane =
        tmem_first_lane_of_warp(warp_idx()) + (kShape == TmemShape::k32x32b ? 0 : 16);
    const TmemPtr at = TmemPtr{load(storage.address.data())}.lanes(first_lane).columns(8);
    uint32_t in[kRegisterCount];
    for (int r = 0; r < kRegisterCount; ++r) in[r] = static_cast<uint32_t>(thread_idx() * 256 + r);
    tmem_store<kShape, kRepeat, kSplit>(at, in);
    tmem_wait_store();
    uint32_t out[kRegisterCount];
    tmem_load<kShape, kRepeat, kSplit>(out, at);
    tmem_wait_load();
    for (int r = 0; r < kRegisterCount; ++r) {
      store(params.out + thread_idx() * kRegisterCount + r, out[r]);
    }
    syncthreads();
    if (warp_idx() == 0) tmem_free<1>(TmemPtr{load(storage.address.data())}, 512);
  }
};

template <TmemShape kShape, int kRepeat>
void check_round_trip() {
  using Kernel = RoundTrip<kShape, kRepeat>;
  std::vector<uint32_t> out(128 * Kernel::kRegisterCount);
  const Result result = launch<Kernel>(shape_of<Kernel>("round_trip", {1}), {out.data()},
                                       {output("out", out.data(), out.size())});
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], i / Kernel::kRegisterCount * 256 + i % Kernel::kRegisterCount)
        << "shape " << static_cast<int>(kShape) << " repeat " << kRepeat;
  }
}

template <TmemShape kShape, int kRepeat = 1>
void check_round_trips() {
  check_round_trip<kShape, kRepeat>();
  if constexpr (is_tmem_repeat(kShape, 2 * kRepeat)) check_round_trips<kShape, 2 * kRepeat>();
}

TEST(TensorMemory, what_a_warp_stores_comes_back_in_every_shape_and_count) {
  check_round_trips<TmemShape::k32x32b>();
  check_round_trips<TmemShape::k16x64b>();
  check_round_trips<TmemShape::k16x128b>();
  check_round_trips<TmemShape::k16x256b>();
  check_round_trips<TmemShape::k16x32bx2>();
}

// Stored as 32 lanes x 32 columns, each word with its position, and loaded in the other shapes.
struct Views {
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [4 warps, 4 shapes, 2 halves, 32 lanes, 8 registers]
  };
  struct Storage {
    SharedArray<uint32_t, 1> address;
  };
  static constexpr int kThreads = 128;
  static constexpr bool kHasTensorMemory = true;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (warp_idx() == 0) tmem_allocate<1>(storage.address.data(), 32);
    syncthreads();
    const int first_lane = 32 * warp_idx();
    const TmemPtr at = TmemPtr{load(storage.address.data())}.lanes(first_lane);
    uint32_t words[32];
    for (int column = 0; column < 32; ++column) {
      words[column] = static_cast<uint32_t>((first_lane + lane_idx()) * 1000 + column);
    }
    tmem_store<TmemShape::k32x32b, 32>(at, words);
    tmem_wait_store();
    for (int half = 0; half < 2; ++half) {
      const TmemPtr from = at.lanes(16 * half);
      uint32_t out[4][8];
      tmem_load<TmemShape::k16x64b, 8>(out[0], from);
      tmem_load<TmemShape::k16x128b, 4>(out[1], from);
      tmem_load<TmemShape::k16x256b, 2>(out[2], from);
      tmem_load<TmemShape::k16x32bx2, 8, 20>(out[3], from);
      tmem_wait_load();
      for (int shape = 0; shape < 4; ++shape) {
        for (int r = 0; r < 8; ++r) {
          const int index = (((warp_idx() * 4 + shape) * 2 + half) * 32 + lane_idx()) * 8 + r;
          store(params.out + index, out[shape][r]);
        }
      }
    }
    syncthreads();
    if (warp_idx() == 0) tmem_free<1>(TmemPtr{load(storage.address.data())}, 32);
  }
};

TEST(TensorMemory, every_shape_sees_the_same_memory) {
  std::vector<uint32_t> out(4 * 4 * 2 * 32 * 8);
  const Result result = launch<Views>(shape_of<Views>("views", {1}), {out.data()},
                                      {output("out", out.data(), out.size())});
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
  for (int i = 0; i < static_cast<int>(out.size()); ++i) {
    const int r = i % 8, t = i / 8 % 32, half = i / 256 % 2, shape = i / 512 % 4, warp = i / 2048;
    int lane = 0, column = 0;
    switch (shape) {
      case 0: lane = t / 4 + 8 * (t % 2), column = t / 2 % 2 + 2 * r; break;
      case 1: lane = t / 4 + 8 * (r % 2), column = t % 4 + 4 * (r / 2); break;
      case 2: lane = t / 4 + 8 * (r / 2 % 2), column = 2 * (t % 4) + r % 2 + 8 * (r / 4); break;
      default: lane = t % 16, column = r + 20 * (t / 16); break;
    }
    ASSERT_EQ(out[static_cast<size_t>(i)],
              static_cast<uint32_t>((32 * warp + 16 * half + lane) * 1000 + column))
        << "shape " << shape << " thread " << t << " register " << r;
  }
}

// --- rules -------------------------------------------------------------------------------------

uint32_t line_of_allocate, line_of_store, line_of_last_store, line_of_load, line_of_free,
    line_of_note;
Where mark(uint32_t& line, Where where = Where::current()) {
  line = where.line();
  return where;
}

// Warp 0 sends tiles through tensor memory to warp 4, which has the same lanes; by arrivals that
// order all memory, or relaxed ones.
struct TensorRelay {
  enum class Bug {
    kNone,
    kNoWaitStore,
    kNoFenceBefore,
    kNoWait,
    kNoFenceAfter,
    kNoWaitLoad,
    kTouchedBeforeWait,
    kNoFenceBeforeRelease,
    kNoRelease,
    kUnwritten,
    kUnallocated,
    kOutside,
    kForeignLanes,
    kFreedEarly,
    kDoubleFree,
    kFreeOfAnotherSize,
    kFreeWithoutOrder,
    kNoFree,
    kOddColumns,
    kAllocateAfterRelinquish,
    kTooMuch,
    kStoreInFlightAtEnd,
    kNoteInSharedMemory,  // of relaxed arrivals
  };
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [items, 32 lanes, 4 columns]
    Bug bug = Bug::kNone;
    bool is_relaxed = false;
  };
  struct Storage {
    SharedArray<uint32_t, 2> address;
    SharedArray<uint32_t, 32> notes;
    MBarrier full, empty;
  };
  static constexpr int kThreads = 160;
  static constexpr bool kHasTensorMemory = true;
  static constexpr int kItems = 3;

  static PAGODA_DEVICE void produce(const Params& params, Storage& storage, TmemPtr at) {
    const Role role("producer");
    for (int item = 0; item < kItems; ++item) {
      const uint32_t parity = static_cast<uint32_t>(item) & 1U;
      wait(params, storage.empty, parity ^ 1U);
      tcgen05_fence_after_thread_sync();
      uint32_t in[4];
      for (int r = 0; r < 4; ++r) in[r] = static_cast<uint32_t>(item * 1000 + lane_idx() * 4 + r);
      TmemPtr to = at;
      if (params.bug == Bug::kUnallocated) to = at.columns(32);
      if (params.bug == Bug::kOutside) to = at.columns(510);
      if (params.bug == Bug::kForeignLanes) to = at.lanes(32);
      if (params.bug == Bug::kUnwritten) to = at.columns(1);
      tmem_store<TmemShape::k32x32b, 4>(to, in, mark(line_of_store));
      if (params.bug != Bug::kNoWaitStore) tmem_wait_store();
      if (params.bug != Bug::kNoFenceBefore) tcgen05_fence_before_thread_sync();
      if (params.bug == Bug::kNoteInSharedMemory && item == 0)
        store(storage.notes.at(lane_idx()), 1);
      arrive(params, storage.full);
    }
  }

  static PAGODA_DEVICE void arrive(const Params& params, MBarrier& barrier) {
    if (params.is_relaxed) {
      barrier.arrive_remote_relaxed_if(1, cluster_rank());
    } else {
      barrier.arrive();
    }
  }
  static PAGODA_DEVICE void wait(const Params& params, MBarrier& barrier, uint32_t parity) {
    if (params.is_relaxed) {
      barrier.wait_relaxed(parity);
    } else {
      barrier.wait(parity);
    }
  }

  static PAGODA_DEVICE void consume(const Params& params, Storage& storage, TmemPtr at) {
    const Role role("consumer");
    for (int item = 0; item < kItems; ++item) {
      const uint32_t parity = static_cast<uint32_t>(item) & 1U;
      if (params.bug != Bug::kNoWait) wait(params, storage.full, parity);
      if (params.bug == Bug::kNoteInSharedMemory && item == 0) {
        load(storage.notes.at(lane_idx()), mark(line_of_note));
      }
      if (params.bug != Bug::kNoFenceAfter) tcgen05_fence_after_thread_sync();
      uint32_t out[4];
      tmem_load<TmemShape::k32x32b, 4>(out, at, mark(line_of_load));
      if (params.bug == Bug::kTouchedBeforeWait) out[1] = 0;
      if (params.bug != Bug::kNoWaitLoad) tmem_wait_load();
      if (params.bug != Bug::kNoFenceBeforeRelease) tcgen05_fence_before_thread_sync();
      if (params.bug != Bug::kNoRelease) arrive(params, storage.empty);
      for (int r = 0; r < 4; ++r) {
        store(params.out + (item * 32 + lane_idx()) * 4 + r, out[r]);
      }
    }
  }

  static PAGODA_DEVICE void run(const Params& params) {
    const Bug bug = params.bug;
    auto& storage = shared_storage<Storage>();
    if (thread_idx() == 0) {
      name_barrier(storage.full, "full");
      name_barrier(storage.empty, "empty");
      storage.full.init(32);
      storage.empty.init(32);
    }
    if (warp_idx() == 0) {
      const int columns = bug == Bug::kOddColumns ? 48 : 32;
      tmem_allocate<1>(storage.address.data(), columns, mark(line_of_allocate));
      if (bug == Bug::kAllocateAfterRelinquish) {
        tmem_relinquish<1>();
        tmem_allocate<1>(storage.address.at(1), 32, mark(line_of_allocate));
      }
      if (bug == Bug::kTooMuch) {
        tmem_allocate<1>(storage.address.at(1), 512, mark(line_of_allocate));
      }
    }
    syncthreads();
    const TmemPtr at{load(storage.address.data())};
    if (bug == Bug::kFreedEarly && warp_idx() == 4) tmem_free<1>(at, 32);
    if (bug == Bug::kFreedEarly) syncthreads();
    if (warp_idx() == 0) produce(params, storage, at);
    if (warp_idx() == 4) consume(params, storage, at);
    if (bug == Bug::kStoreInFlightAtEnd && warp_idx() == 1) {
      const uint32_t in[1] = {7};
      tmem_store<TmemShape::k32x32b, 1>(at.lanes(32), in, mark(line_of_last_store));
    }
    if (bug != Bug::kFreeWithoutOrder) syncthreads();
    if (warp_idx() != 0 || bug == Bug::kNoFree || bug == Bug::kFreedEarly) return;
    tmem_relinquish<1>();
    const int columns = bug == Bug::kFreeOfAnotherSize ? 64 : 32;
    tmem_free<1>(at, columns, mark(line_of_free));
    if (bug == Bug::kDoubleFree) tmem_free<1>(at, columns, mark(line_of_free));
  }
};

Result run_relay(TensorRelay::Bug bug, Mode mode, uint64_t seed, bool* is_right = nullptr,
                 MutationSites* mutation = nullptr, bool is_relaxed = false) {
  std::vector<uint32_t> out(TensorRelay::kItems * 32 * 4, 0xdead);
  Result result = launch<TensorRelay>(
      shape_of<TensorRelay>("tensor_relay", {1}), {out.data(), bug, is_relaxed},
      {output("out", out.data(), out.size())}, {.mode = mode, .seed = seed, .mutation = mutation});
  if (is_right != nullptr) {
    *is_right = true;
    for (size_t i = 0; i < out.size(); ++i) {
      *is_right = *is_right && out[i] == i / 128 * 1000 + i % 128;
    }
  }
  return result;
}

TEST(TensorMemory, correct_relay_is_silent_and_right_in_every_mode_over_100_seeds) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      bool is_right = false;
      const Result result = run_relay(TensorRelay::Bug::kNone, mode, seed, &is_right);
      ASSERT_TRUE(result.is_clean()) << name(mode) << ' ' << seed << '\n'
                                     << to_string(result.reports[0]);
      ASSERT_TRUE(is_right) << name(mode) << ' ' << seed;
    }
  }
}

TEST(TensorMemory, each_broken_rule_is_reported_with_its_line_in_every_mode) {
  using Bug = TensorRelay::Bug;
  constexpr auto kRace = ReportKind::kRace;
  constexpr auto kProtocol = ReportKind::kProtocol;
  struct Case {
    Bug bug;
    ReportKind kind;
    const uint32_t& line;
    const char* text;
  };
  const Case cases[] = {
      {Bug::kNoWaitStore, kRace, line_of_load, "no wait for the completion"},
      {Bug::kNoFenceBefore, kRace, line_of_load, "tcgen05_fence_before_thread_sync is missing"},
      {Bug::kNoFenceAfter, kRace, line_of_load, "tcgen05_fence_after_thread_sync is missing"},
      {Bug::kNoWaitLoad, kProtocol, line_of_load, "tmem_wait_load is missing"},
      {Bug::kTouchedBeforeWait, kProtocol, line_of_load, "changed before tmem_wait_load"},
      {Bug::kNoFenceBeforeRelease, kRace, line_of_store, "fence_before_thread_sync is missing"},
      {Bug::kUnwritten, ReportKind::kUninitialised, line_of_load, "column 0 of CTA 0"},
      {Bug::kUnallocated, kProtocol, line_of_store, "column 32 is not allocated"},
      {Bug::kOutside, ReportKind::kBounds, line_of_store, "columns 510..513 lie outside"},
      {Bug::kForeignLanes, kProtocol, line_of_store, "its own are 0..31"},
      {Bug::kFreedEarly, kProtocol, line_of_store, "column 0 was freed at tensor_memory_test.cpp"},
      {Bug::kDoubleFree, kProtocol, line_of_free, "column 0 was freed at"},
      {Bug::kFreeOfAnotherSize, kProtocol, line_of_free, "not what was allocated: 32 columns"},
      {Bug::kNoFree, kProtocol, line_of_allocate, "without freeing"},
      {Bug::kOddColumns, kProtocol, line_of_allocate, "48 columns"},
      {Bug::kAllocateAfterRelinquish, kProtocol, line_of_allocate, "gave up its right"},
      {Bug::kTooMuch, ReportKind::kDeadlock, line_of_allocate, "512 free columns"},
      {Bug::kStoreInFlightAtEnd, kProtocol, line_of_last_store, "tmem_wait_store"},
  };
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      for (const Case& c : cases) {
        const Result result = run_relay(c.bug, mode, seed);
        EXPECT_TRUE(reports(result, c.kind, c.line, c.text))
            << name(mode) << ' ' << seed << " bug " << static_cast<int>(c.bug);
      }
      EXPECT_TRUE(reports(run_relay(Bug::kNoRelease, mode, seed), ReportKind::kDeadlock,
                          run_relay(Bug::kNoRelease, mode, seed).reports.front().line,
                          "mbarrier empty"));
      // Which of the two comes first is up to the schedule.
      EXPECT_FALSE(run_relay(Bug::kNoWait, mode, seed).is_clean());
      EXPECT_FALSE(run_relay(Bug::kFreeWithoutOrder, mode, seed).is_clean());
    }
  }
}

TEST(TensorMemory, relaxed_arrivals_tell_of_fenced_tensor_memory_and_of_nothing_else) {
  using Bug = TensorRelay::Bug;
  const auto run = [](Bug bug, Mode mode, uint64_t seed, bool* is_right = nullptr) {
    return run_relay(bug, mode, seed, is_right, nullptr, true);
  };
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      bool is_right = false;
      ASSERT_TRUE(run(Bug::kNone, mode, seed, &is_right).is_clean()) << name(mode) << ' ' << seed;
      ASSERT_TRUE(is_right) << name(mode) << ' ' << seed;
    }
    EXPECT_TRUE(run_relay(Bug::kNoteInSharedMemory, mode, 1).is_clean());
    EXPECT_TRUE(reports(run(Bug::kNoteInSharedMemory, mode, 1), ReportKind::kRace, line_of_note,
                        "read of shared memory"));
    EXPECT_TRUE(
        reports(run(Bug::kNoWaitStore, mode, 1), ReportKind::kRace, line_of_load, "tensor memory"));
    EXPECT_TRUE(reports(run(Bug::kNoFenceBefore, mode, 1), ReportKind::kRace, line_of_load,
                        "tensor memory"));
    EXPECT_TRUE(reports(run(Bug::kNoFenceAfter, mode, 1), ReportKind::kRace, line_of_load,
                        "tensor memory"));
    EXPECT_TRUE(reports(run(Bug::kNoFenceBeforeRelease, mode, 1), ReportKind::kRace, line_of_store,
                        "tensor memory"));
  }
}

TEST(TensorMemory, leaving_out_any_synchronisation_of_the_relay_is_noticed) {
  MutationSites sites;
  ASSERT_TRUE(run_relay(TensorRelay::Bug::kNone, Mode::kRandom, 1, nullptr, &sites).is_clean());
  const int count = static_cast<int>(sites.sites().size());
  EXPECT_GT(count, 10);
  for (int site = 0; site < count; ++site) {
    sites.drop(site);
    bool is_noticed = false;
    for (uint64_t seed = 1; seed <= 20 && !is_noticed; ++seed) {
      bool is_right = false;
      const Result result =
          run_relay(TensorRelay::Bug::kNone, Mode::kRandom, seed, &is_right, &sites);
      is_noticed = !result.is_clean() || !is_right;
    }
    const MutationSite& dropped = sites.sites()[static_cast<size_t>(site)];
    EXPECT_TRUE(is_noticed) << dropped.primitive << " at line " << dropped.line << ", role "
                            << dropped.role;
  }
}

// --- pairs -------------------------------------------------------------------------------------

struct PairAllocation {
  enum class Bug { kNone, kOneAsks, kUnequal, kMixed };
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [2 CTAs, 2 allocations]
    Bug bug = Bug::kNone;
  };
  struct Storage {
    SharedArray<uint32_t, 3> address;
  };
  static constexpr int kThreads = 32;
  static constexpr int kClusterSize = 2;
  static constexpr bool kHasTensorMemory = true;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    const int rank = cluster_rank();
    if (params.bug == Bug::kOneAsks && rank == 1) return;
    const int columns = params.bug == Bug::kUnequal && rank == 1 ? 128 : 64;
    tmem_allocate<2>(storage.address.at(0), columns, mark(line_of_allocate));
    tmem_allocate<2>(storage.address.at(1), 256);
    if (params.bug == Bug::kMixed) tmem_allocate<1>(storage.address.at(2), 32, mark(line_of_load));
    syncwarp();
    for (int i = 0; i < 2; ++i) {
      const TmemPtr at{load(storage.address.at(i))};
      if (lane_idx() == 0) store(params.out + rank * 2 + i, at.address);
      tmem_free<2>(at, i == 0 ? columns : 256);
    }
  }
};

Result run_pair(PairAllocation::Bug bug, Mode mode, uint64_t seed, std::vector<uint32_t>& out) {
  out.assign(4, 0xdead);
  return launch<PairAllocation>(shape_of<PairAllocation>("pair", {2}), {out.data(), bug},
                                {output("out", out.data(), out.size())},
                                {.mode = mode, .seed = seed});
}

TEST(TensorMemory, a_pair_allocates_the_same_columns_in_both_ctas) {
  using Bug = PairAllocation::Bug;
  std::vector<uint32_t> out;
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const Result result = run_pair(Bug::kNone, mode, seed, out);
      ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
      EXPECT_EQ(out[0], out[2]);
      EXPECT_EQ(out[1], out[3]);
      EXPECT_NE(out[0], out[1]);
    }
    EXPECT_TRUE(reports(run_pair(Bug::kOneAsks, mode, 1, out), ReportKind::kDeadlock,
                        line_of_allocate, "by the other CTA of the pair"));
    EXPECT_TRUE(reports(run_pair(Bug::kUnequal, mode, 1, out), ReportKind::kProtocol,
                        line_of_allocate, "different numbers of columns"));
    EXPECT_TRUE(reports(run_pair(Bug::kMixed, mode, 1, out), ReportKind::kProtocol, line_of_load,
                        "cta_group 1 after 2"));
  }
}

}  // namespace
}  // namespace pagoda
