// One test a finding: the smallest kernel with the bug is reported with its kind and the line of
// the bug, the corrected kernel is silent in every mode over 100 seeds.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "arch/bulk_copy.hpp"
#include "arch/cluster.hpp"
#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "emulator/machine/launch.hpp"

namespace pagoda {
namespace {

using namespace arch;
using emulator::Mode;
using emulator::Options;
using emulator::ReportKind;
using emulator::Result;

struct Storage {
  MBarrier barrier[2];
  SharedArray<uint32_t, 64, 128> words;  // last: what follows is outside
};

// Buffers of the launch, as host and kernel see them.
struct Data {
  alignas(16) uint32_t in_words[64] = {};
  alignas(16) uint32_t out_words[64] = {};
  uint32_t gap[4] = {};  // no buffer of the launch
  alignas(16) uint32_t flag_words[4] = {};
  GlobalPtr<uint32_t> in{in_words}, out{out_words}, flag{flag_words};
};

using Body = std::function<void(Storage&, Data&)>;

struct BodyKernel {
  struct Params {
    const Body* body;
    Data* data;
  };
  using Storage = pagoda::Storage;
  static constexpr int kThreads = 64;
  static PAGODA_DEVICE void run(const Params& params) {
    (*params.body)(shared_storage<Storage>(), *params.data);
  }
};

struct Shape {
  int threads = 64;
  int cluster_size = 1;
  int clusters = 1;
};

Result run(const Shape& shape, const Body& body, const Options& options) {
  Data data;
  emulator::LaunchShape launch_shape =
      emulator::shape_of<BodyKernel>("body", {shape.clusters * shape.cluster_size});
  launch_shape.threads = shape.threads;
  launch_shape.cluster_size = shape.cluster_size;
  return emulator::launch<BodyKernel>(
      launch_shape, {&body, &data},
      {emulator::input("in", data.in_words, 64), emulator::output("out", data.out_words, 64),
       emulator::inout("flag", data.flag_words, 4)},
      options);
}

// The body with the bug sets this just before the line of the bug.
uint32_t bug_line = 0;

// Whether a run reports the kind, with the text, at the line of the bug (0: at any).
bool is_found(const Result& result, ReportKind kind, std::string_view text) {
  const auto is_wanted = [&](const emulator::Report& report) {
    return report.kind == kind && to_string(report).find(text) != std::string::npos &&
           (bug_line == 0 || (report.line == bug_line && report.file == "findings_test.cpp"));
  };
  return std::any_of(result.reports.begin(), result.reports.end(), is_wanted);
}

std::string all_reports(const Result& result) {
  std::string text;
  for (const emulator::Report& report : result.reports) text += to_string(report) + "\n";
  return text;
}

void expect_silent(const Shape& shape, const Body& body) {
  for (const Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const Result result = run(shape, body, {.mode = mode, .seed = seed});
      ASSERT_TRUE(result.is_clean()) << all_reports(result);
    }
  }
}

// The bug shows in every schedule.
void expect_always(ReportKind kind, std::string_view text, const Shape& shape, const Body& body) {
  for (const Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      bug_line = 0;
      const Result result = run(shape, body, {.mode = mode, .seed = seed});
      ASSERT_TRUE(is_found(result, kind, text))
          << name(mode) << ' ' << seed << ": no " << name(kind) << " '" << text << "' at line "
          << bug_line << "; reports:\n"
          << all_reports(result);
    }
  }
}

// The bug needs a certain schedule: 20 seeds show it.
void expect_sometimes(ReportKind kind, std::string_view text, const Shape& shape,
                      const Body& body) {
  std::string reports;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    bug_line = 0;
    const Result result = run(shape, body, {.mode = emulator::kModes[seed % 4], .seed = seed});
    if (is_found(result, kind, text)) return;
    reports += all_reports(result);
  }
  FAIL() << "no " << name(kind) << " '" << text << "'; reports:\n" << reports;
}

// --- bounds and alignment ----------------------------------------------------------------------

TEST(Bounds, shared_access_past_the_end) {
  const auto body = [](int index) {
    return [index](Storage& storage, Data&) {
      if (thread_idx() != 0) return;
      bug_line = __LINE__ + 1;
      store(storage.words.at(index), 1U);
    };
  };
  expect_always(ReportKind::kBounds, "4-byte write outside of the CTA's", {}, body(64));
  expect_silent({}, body(63));
}

TEST(Bounds, misaligned_shared_access) {
  const auto body = [](int index) {
    return [index](Storage& storage, Data&) {
      if (thread_idx() != 0) return;
      const SharedPtr<Words<4>> vector = storage.words.at(index).as<Words<4>>();
      bug_line = __LINE__ + 1;
      store(vector, Words<4>{});
    };
  };
  expect_always(ReportKind::kBounds, "not aligned to 16 bytes", {}, body(2));
  expect_silent({}, body(4));
}

TEST(Bounds, global_access_past_the_end_names_the_buffer) {
  const auto body = [](int index) {
    return [index](Storage&, Data& data) {
      if (thread_idx() != 0) return;
      bug_line = __LINE__ + 1;
      store(data.out.as<Words<2>>() + index, Words<2>{});
    };
  };
  expect_always(ReportKind::kBounds, "8 bytes after the end of buffer out", {}, body(33));
  expect_silent({}, body(31));
}

TEST(Bounds, misaligned_global_access) {
  const auto body = [](int index) {
    return [index](Storage&, Data& data) {
      if (thread_idx() != 0) return;
      bug_line = __LINE__ + 1;
      load((data.in + index).as<Words<2>>());
    };
  };
  expect_always(ReportKind::kBounds, "not aligned to 8 bytes", {}, body(1));
  expect_silent({}, body(2));
}

TEST(Bounds, write_to_an_input) {
  expect_always(ReportKind::kBounds, "write to the input buffer in", {}, [](Storage&, Data& data) {
    bug_line = __LINE__ + 1;
    store(data.in, 1U);
  });
}

TEST(Uninitialised, read_of_an_output_that_nothing_wrote) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage&, Data& data) {
      if (thread_idx() != 0) return;
      if (is_correct) store(data.out + 3, 1U);
      bug_line = __LINE__ + 1;
      load(data.out + 3);
    };
  };
  expect_always(ReportKind::kUninitialised, "global buffer out +12", {}, body(false));
  expect_silent({}, body(true));
}

// --- barriers ----------------------------------------------------------------------------------

TEST(NamedBarrier, thread_counts_that_differ) {
  const auto body = [](int count_of_second) {
    return [count_of_second](Storage&, Data&) {
      if (warp_idx() < 2) {
        named_barrier_sync(1, warp_idx() == 0 ? 64 : count_of_second);
      }
    };
  };
  expect_always(ReportKind::kProtocol, "in the same phase as with", {96}, body(96));
  expect_silent({96}, body(64));
}

TEST(NamedBarrier, id_and_count_out_of_range) {
  expect_always(ReportKind::kProtocol, "barrier id 16 is not in 0..15", {}, [](Storage&, Data&) {
    bug_line = __LINE__ + 1;
    named_barrier_sync(16, 64);
  });
  expect_always(ReportKind::kProtocol, "thread count 40 is not", {}, [](Storage&, Data&) {
    bug_line = __LINE__ + 1;
    named_barrier_sync(1, 40);
  });
}

TEST(Mbarrier, use_before_initialisation_and_bad_counts) {
  expect_always(ReportKind::kProtocol, "was not initialised", {}, [](Storage& storage, Data&) {
    bug_line = __LINE__ + 1;
    storage.barrier[0].arrive();
  });
  expect_always(ReportKind::kProtocol, "arrival count 0", {}, [](Storage& storage, Data&) {
    bug_line = __LINE__ + 1;
    storage.barrier[0].init(0);
  });
}

void init_barriers(Storage& storage, uint32_t arrivals) {
  if (thread_idx() == 0) {
    for (int i = 0; i < 2; ++i) {
      storage.barrier[i].init(arrivals);
      name_barrier(storage.barrier[i], "barrier", i);
    }
    fence_mbarrier_init();
  }
  syncthreads();
}

TEST(Mbarrier, a_phase_that_goes_on_before_a_waiter_saw_its_end) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage& storage, Data&) {
      init_barriers(storage, 1);
      if (thread_idx() == 0) {
        bug_line = __LINE__ + 1;
        storage.barrier[0].wait(0);
        storage.barrier[1].arrive();
      } else if (thread_idx() == 32) {
        storage.barrier[0].arrive();
        if (is_correct) storage.barrier[1].wait(0);
        storage.barrier[0].arrive();
      }
    };
  };
  expect_sometimes(ReportKind::kProtocol, "went on to phase 2 before this thread", {}, body(false));
  expect_silent({}, body(true));
}

TEST(Mbarrier, bytes_left_pending_at_the_end) {
  const auto body = [](uint32_t expected) {
    return [expected](Storage& storage, Data& data) {
      init_barriers(storage, 1);
      if (thread_idx() != 0) return;
      storage.barrier[0].arrive_expect_tx(expected);
      bulk_load(1, storage.words.data(), data.in, 64, storage.barrier[0]);
      if (expected == 64) storage.barrier[0].wait(0);
    };
  };
  expect_always(ReportKind::kProtocol, " pending bytes", {}, body(96));
  expect_silent({}, body(64));
}

TEST(Mbarrier, bytes_that_never_come_are_in_the_table_of_the_deadlock) {
  expect_always(ReportKind::kDeadlock, "still wants 0 of 1 arrivals and 32 bytes", {},
                [](Storage& storage, Data& data) {
                  init_barriers(storage, 1);
                  if (thread_idx() != 0) return;
                  storage.barrier[0].arrive_expect_tx(96);
                  bulk_load(1, storage.words.data(), data.in, 64, storage.barrier[0]);
                  bug_line = __LINE__ + 1;
                  storage.barrier[0].wait(0);
                });
}

// --- the copy engine ---------------------------------------------------------------------------

TEST(CopyEngine, initialisation_of_its_barrier_without_fence) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage& storage, Data& data) {
      if (thread_idx() != 0) return;
      storage.barrier[0].init(1);
      if (is_correct) fence_mbarrier_init();
      storage.barrier[0].arrive_expect_tx(64);
      bug_line = __LINE__ + 1;
      bulk_load(1, storage.words.data(), data.in, 64, storage.barrier[0]);
      storage.barrier[0].wait(0);
    };
  };
  expect_always(ReportKind::kProtocol, "fence_mbarrier_init is missing", {}, body(false));
  expect_silent({}, body(true));
}

TEST(CopyEngine, words_of_threads_without_proxy_fence) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage& storage, Data& data) {
      store(storage.words.at(thread_idx()), 5U);
      if (is_correct) fence_proxy_async_shared();
      syncthreads();
      if (thread_idx() != 0) return;
      bug_line = __LINE__ + 1;
      bulk_store(1, data.out, storage.words.data(), 256);
      bulk_commit_group();
      bulk_wait_group<0>();
    };
  };
  expect_always(ReportKind::kRace, "fence_proxy_async is missing", {}, body(false));
  expect_silent({}, body(true));
}

// --- clusters ----------------------------------------------------------------------------------

const Shape kPair{.threads = 32, .cluster_size = 2};

// fence_mbarrier_init releases its thread's inits to the cluster barrier, even to a relaxed arrival
// there (PTX ISA, fence.mbarrier_init); a fence of another kind does not.
TEST(Cluster, initialisation_behind_a_relaxed_arrival) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage& storage, Data&) {
      if (thread_idx() == 0) {
        storage.barrier[0].init(1);
        if (is_correct) fence_mbarrier_init();
        if (!is_correct) fence_proxy_async();
      }
      cluster_arrive_relaxed();
      cluster_wait();
      if (thread_idx() != 0) return;
      bug_line = __LINE__ + 1;
      storage.barrier[0].arrive_remote(1 - cluster_rank());
      storage.barrier[0].wait_cluster(0);
    };
  };
  expect_always(ReportKind::kRace, "not ordered after its initialisation", kPair, body(false));
  expect_silent(kPair, body(true));
}

TEST(Cluster, arrive_twice_and_wait_without_arrival) {
  expect_always(ReportKind::kProtocol, "twice without a wait", kPair, [](Storage&, Data&) {
    cluster_arrive();
    bug_line = __LINE__ + 1;
    cluster_arrive();
  });
  expect_always(ReportKind::kProtocol, "at which it did not arrive", kPair, [](Storage&, Data&) {
    bug_line = __LINE__ + 1;
    cluster_wait();
  });
}

TEST(Cluster, read_of_the_other_cta_without_barrier_between) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage& storage, Data&) {
      store(storage.words.at(thread_idx()), 5U);
      // Relaxed arrivals order no memory.
      if (is_correct) {
        cluster_arrive();
      } else {
        cluster_arrive_relaxed();
      }
      cluster_wait();
      bug_line = __LINE__ + 1;
      load(map_shared(storage.words.at(thread_idx()), 1 - cluster_rank()));
      cluster_sync();
    };
  };
  expect_always(ReportKind::kRace, "no chain of barriers", kPair, body(false));
  expect_silent(kPair, body(true));
}

TEST(Cluster, access_to_a_cta_that_has_ended) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage& storage, Data&) {
      cluster_sync();
      if (cluster_rank() == 0) {
        for (int i = 0; i < 4; ++i) syncthreads();  // time enough for the other to end
        bug_line = __LINE__ + 1;
        store(map_shared(storage.words.at(thread_idx()), 1), 1U);
      }
      if (is_correct) cluster_sync();
    };
  };
  expect_sometimes(ReportKind::kProtocol, "of CTA 1, which has ended", kPair, body(false));
  expect_silent(kPair, body(true));
}

TEST(Cluster, arrival_at_a_cta_that_has_ended) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage& storage, Data&) {
      init_barriers(storage, 1);
      cluster_sync();
      if (cluster_rank() == 0 && thread_idx() == 0) {
        bug_line = __LINE__ + 1;
        storage.barrier[0].arrive_remote(1);
      }
      if (is_correct && cluster_rank() == 1) storage.barrier[0].wait_cluster(0);
    };
  };
  expect_sometimes(ReportKind::kProtocol, "of CTA 1, which has ended", kPair, body(false));
  expect_silent(kPair, body(true));
}

TEST(Cluster, rank_outside) {
  expect_always(ReportKind::kBounds, "CTA rank 2 is not in the cluster of 2", kPair,
                [](Storage& storage, Data&) {
                  bug_line = __LINE__ + 1;
                  map_shared(storage.words.at(0), 2);
                });
}

// --- warps -------------------------------------------------------------------------------------

TEST(Warp, lanes_at_different_instructions) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage&, Data&) {
      if (is_correct || lane_idx() < 16) {
        ballot(true);
      } else {
        reduce_add(1);
      }
    };
  };
  expect_always(ReportKind::kProtocol, "not at the same instruction", {}, body(false));
  expect_silent({}, body(true));
}

TEST(Warp, lanes_that_never_come) {
  expect_always(ReportKind::kDeadlock, "wait for the other lanes of its warp", {},
                [](Storage&, Data&) {
                  if (lane_idx() == 7) return;
                  bug_line = __LINE__ + 1;
                  syncwarp();
                });
}

// --- atomics -----------------------------------------------------------------------------------

enum class Passing { kRelease, kFences, kRelaxed, kNoFenceBefore, kNoFenceAfter };

// Thread 0 passes a word to thread 32 through a flag.
Body pass_a_word(Passing how) {
  return [how](Storage&, Data& data) {
    if (thread_idx() == 0) {
      store(data.out, 5U);
      if (how == Passing::kRelease) {
        store_release(data.flag, 1U);
      } else {
        if (how == Passing::kFences || how == Passing::kNoFenceAfter) thread_fence();
        atomic_exchange(data.flag, 1U);
      }
    } else if (thread_idx() == 32) {
      if (how == Passing::kRelease) {
        while (load_acquire(data.flag) == 0) {
        }
      } else {
        while (atomic_add(data.flag, 0U) == 0) {
        }
        if (how == Passing::kFences || how == Passing::kNoFenceBefore) thread_fence();
      }
      bug_line = __LINE__ + 1;
      load(data.out);
    }
  };
}

TEST(Atomics, release_and_acquire_or_two_fences_pass_a_word) {
  expect_silent({}, pass_a_word(Passing::kRelease));
  expect_silent({}, pass_a_word(Passing::kFences));
}

TEST(Atomics, a_relaxed_flag_or_one_fence_alone_is_a_race) {
  for (const Passing how : {Passing::kRelaxed, Passing::kNoFenceBefore, Passing::kNoFenceAfter}) {
    expect_always(ReportKind::kRace, "no chain of barriers", {}, pass_a_word(how));
  }
}

TEST(Atomics, acquiring_add_after_releasing_add_orders_a_chain_of_threads) {
  expect_silent({}, [](Storage&, Data& data) {
    const int warp = warp_idx();  // by all lanes
    if (lane_idx() != 0) return;
    // Whoever draws the second ticket sees the word of the first.
    store(data.out + warp, 5U);
    if (atomic_add<Order::kAcqRel>(data.flag, 1U) == 1) load(data.out + 1 - warp);
  });
}

TEST(Atomics, plain_accesses_race_with_atomics) {
  expect_always(ReportKind::kRace, "no chain of barriers", {}, [](Storage&, Data& data) {
    if (thread_idx() == 0) atomic_add(data.flag, 1U);
    if (thread_idx() == 32) load(data.flag);
  });
}

// --- scopes ------------------------------------------------------------------------------------

// Four CTAs in two clusters, a warp each.
const Shape kTwoPairs{.threads = 32, .cluster_size = 2, .clusters = 2};

// CTA 0 passes a word to CTA `to` through a flag: released at one scope, acquired at another.
template <Scope release, Scope acquire>
Body pass_between_ctas(int to) {
  return [to](Storage&, Data& data) {
    if (lane_idx() != 0) return;
    if (block_idx().x == 0) {
      store(data.out, 5U);
      store_release<release>(data.flag, 1U);
    } else if (block_idx().x == to) {
      while (load_acquire<acquire>(data.flag) == 0) {
      }
      bug_line = __LINE__ + 1;
      load(data.out);
    }
  };
}

TEST(Scopes, a_release_that_does_not_reach_the_acquire_orders_nothing) {
  expect_always(ReportKind::kRace, "store_release of scope .cta at findings_test.cpp", kTwoPairs,
                pass_between_ctas<Scope::kCta, Scope::kGpu>(1));
  expect_always(ReportKind::kRace, "by CTA 1: .cluster is needed", kTwoPairs,
                pass_between_ctas<Scope::kCta, Scope::kGpu>(1));
  expect_always(ReportKind::kRace, "by CTA 2: .gpu is needed", kTwoPairs,
                pass_between_ctas<Scope::kCluster, Scope::kGpu>(2));
  expect_silent(kTwoPairs, pass_between_ctas<Scope::kCluster, Scope::kGpu>(1));
  expect_silent(kTwoPairs, pass_between_ctas<Scope::kGpu, Scope::kGpu>(2));
}

TEST(Scopes, an_acquire_that_does_not_reach_the_release_orders_nothing) {
  expect_always(ReportKind::kRace, "load_acquire of scope .cta at findings_test.cpp", kTwoPairs,
                pass_between_ctas<Scope::kGpu, Scope::kCta>(1));
  expect_always(ReportKind::kRace, "by CTA 2: .gpu is needed", kTwoPairs,
                pass_between_ctas<Scope::kGpu, Scope::kCluster>(2));
  expect_silent(kTwoPairs, pass_between_ctas<Scope::kGpu, Scope::kCluster>(1));
  expect_silent(kTwoPairs, pass_between_ctas<Scope::kSystem, Scope::kSystem>(3));
}

TEST(Scopes, threads_of_one_cta_need_no_more_than_its_scope) {
  expect_silent({}, [](Storage&, Data& data) {
    if (thread_idx() == 0) {
      store(data.out, 5U);
      store_release<Scope::kCta>(data.flag, 1U);
    } else if (thread_idx() == 32) {
      while (load_acquire<Scope::kCta>(data.flag) == 0) {
      }
      load(data.out);
    }
  });
}

TEST(Scopes, two_atomics_race_where_one_does_not_include_the_other_thread) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage&, Data& data) {
      if (lane_idx() != 0) return;
      if (is_correct || block_idx().x < 2) {
        atomic_add<Order::kRelaxed, Scope::kGpu>(data.flag, 1U);
      } else {
        atomic_add<Order::kRelaxed, Scope::kCluster>(data.flag, 1U);
      }
    };
  };
  expect_always(ReportKind::kRace, "two atomics race", kTwoPairs, body(false));
  expect_always(ReportKind::kRace, "; .gpu is needed", kTwoPairs, body(false));
  expect_silent(kTwoPairs, body(true));
}

// As pass_between_ctas, by fences around relaxed atomics.
template <Scope before, Scope flag, Scope after>
Body pass_by_fences(int to) {
  return [to](Storage&, Data& data) {
    if (lane_idx() != 0) return;
    if (block_idx().x == 0) {
      store(data.out, 5U);
      thread_fence<before>();
      atomic_exchange<Order::kRelaxed, flag>(data.flag, 1U);
    } else if (block_idx().x == to) {
      while (atomic_add<Order::kRelaxed, flag>(data.flag, 0U) == 0) {
      }
      thread_fence<after>();
      bug_line = __LINE__ + 1;
      load(data.out);
    }
  };
}

TEST(Scopes, a_fence_and_its_relaxed_atomic_reach_as_far_as_the_narrower_of_the_two) {
  constexpr Scope kCta = Scope::kCta, kCluster = Scope::kCluster, kGpu = Scope::kGpu;
  expect_always(ReportKind::kRace,
                "the scopes are too narrow between atomic_exchange of scope .cta", kTwoPairs,
                pass_by_fences<kCta, kGpu, kGpu>(1));
  expect_always(ReportKind::kRace, "and thread_fence of scope .cluster", kTwoPairs,
                pass_by_fences<kGpu, kGpu, kCluster>(2));
  expect_always(ReportKind::kRace, "the scopes are too narrow", kTwoPairs,
                pass_by_fences<kGpu, kCluster, kGpu>(2));
  expect_silent(kTwoPairs, pass_by_fences<kCluster, kCluster, kGpu>(1));
  expect_silent(kTwoPairs, pass_by_fences<kGpu, kGpu, kGpu>(2));
}

TEST(Scopes, a_wide_release_passes_on_what_a_narrow_one_taught) {
  const Shape shape{.threads = 64, .cluster_size = 1, .clusters = 2};
  expect_silent(shape, [](Storage& storage, Data& data) {
    init_barriers(storage, 1);
    if (block_idx().x == 0 && thread_idx() == 0) {
      store(data.out, 5U);
      storage.barrier[0].arrive();  // .cta
    } else if (block_idx().x == 0 && thread_idx() == 32) {
      storage.barrier[0].wait(0);
      store_release(data.flag, 1U);
    } else if (block_idx().x == 1 && thread_idx() == 0) {
      while (load_acquire(data.flag) == 0) {
      }
      load(data.out);
    }
  });
}

TEST(Scopes, a_wait_of_the_ctas_own_scope_learns_nothing_of_a_remote_arrival) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage& storage, Data&) {
      init_barriers(storage, 1);
      cluster_sync();
      if (lane_idx() == 0 && cluster_rank() == 0) {
        store(map_shared(storage.words.at(0), 1), 5U);
        storage.barrier[0].arrive_remote(1);
      } else if (lane_idx() == 0) {
        if (is_correct) {
          storage.barrier[0].wait_cluster(0);
        } else {
          storage.barrier[0].wait(0);
        }
        bug_line = __LINE__ + 1;
        load(storage.words.at(0));
      }
    };
  };
  expect_always(ReportKind::kRace, "between mbarrier_arrive_remote of scope .cluster", kPair,
                body(false));
  expect_always(ReportKind::kRace, "by CTA 1: .cluster is needed", kPair, body(false));
  expect_silent(kPair, body(true));
}

// Into the other CTA, to complete at its barrier: by the engine for bulk copies, or by a store.
template <bool is_bulk>
Body pass_by_copies(bool is_wait_of_cluster) {
  return [is_wait_of_cluster](Storage& storage, Data&) {
    init_barriers(storage, 1);
    store(storage.words.at(thread_idx()), 5U);
    fence_proxy_async_shared();
    cluster_sync();
    if (lane_idx() == 0) {
      const int other = 1 - cluster_rank();
      storage.barrier[0].arrive_expect_tx(is_bulk ? 64 : 4);
      const auto to = map_shared(storage.words.at(32), other);
      if constexpr (is_bulk) {
        bulk_copy_to_cta(1, to, storage.words.at(0), 64, storage.barrier[0], other);
      } else {
        store_async(to, 5U, storage.barrier[0], other);
      }
      if (is_wait_of_cluster) {
        storage.barrier[0].wait_cluster(0);
      } else {
        storage.barrier[0].wait(0);
      }
      bug_line = __LINE__ + 1;
      load(storage.words.at(32));
    }
    cluster_sync();
  };
}

TEST(Scopes, the_end_of_a_copy_is_learnt_where_its_barrier_is) {
  expect_silent(kPair, pass_by_copies<true>(false));
}

TEST(Scopes, a_store_of_another_cta_is_acquired_at_cluster_scope) {
  expect_always(ReportKind::kRace, "between store_async of scope .cluster", kPair,
                pass_by_copies<false>(false));
  expect_silent(kPair, pass_by_copies<false>(true));
}

// --- loops that never end ----------------------------------------------------------------------

TEST(Polling, a_flag_that_nobody_sets) {
  expect_always(ReportKind::kDeadlock, "poll a word of global memory", {},
                [](Storage&, Data& data) {
                  if (thread_idx() != 0) return;
                  while (true) {
                    bug_line = __LINE__ + 1;
                    if (load_acquire(data.flag) != 0) return;
                  }
                });
}

TEST(Polling, a_phase_that_nobody_ends) {
  expect_always(ReportKind::kDeadlock, "thread 5 poll mbarrier barrier[1], phase 0", {},
                [](Storage& storage, Data&) {
                  init_barriers(storage, 3);
                  if (thread_idx() != 5) return;
                  storage.barrier[1].arrive();
                  while (true) {
                    bug_line = __LINE__ + 1;
                    if (storage.barrier[1].test_wait(0)) return;
                  }
                });
}

TEST(Polling, a_lock_that_nobody_gives_back) {
  const auto body = [](bool is_correct) {
    return [is_correct](Storage&, Data& data) {
      if (lane_idx() != 0) return;
      while (true) {
        bug_line = __LINE__ + 1;
        if (atomic_cas<Order::kAcqRel>(data.flag, 0U, 1U) == 0) break;
      }
      store(data.out, 1U);
      if (is_correct) atomic_exchange<Order::kRelease>(data.flag, 0U);
    };
  };
  expect_always(ReportKind::kDeadlock, "threads poll", {}, body(false));
  expect_silent({}, body(true));
}

TEST(Polling, plain_loads_give_way_after_a_time_slice) {
  const Body body = [](Storage&, Data& data) {
    if (thread_idx() != 0) return;
    while (true) {
      bug_line = __LINE__ + 1;
      if (load(data.flag) != 0) return;
    }
  };
  const Result result = run({}, body, {.mode = Mode::kEager});
  EXPECT_TRUE(is_found(result, ReportKind::kDeadlock, "without waiting for anybody"))
      << all_reports(result);
}

TEST(Polling, a_run_without_end_stops_at_the_limit) {
  const Result result = run({},
                            [](Storage& storage, Data&) {
                              init_barriers(storage, 1);
                              if (thread_idx() != 0) return;
                              while (true) storage.barrier[0].arrive();
                            },
                            {.max_steps = 10000});
  bug_line = 0;
  EXPECT_TRUE(is_found(result, ReportKind::kDeadlock, "has not ended after 10000"))
      << all_reports(result);
}

// --- replay ------------------------------------------------------------------------------------

TEST(Replay, mode_and_seed_give_the_same_reports_and_the_same_counts) {
  for (const Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const Body body = [](Storage& storage, Data& data) {
        init_barriers(storage, 64);
        store(storage.words.at(thread_idx()), 1U);
        storage.barrier[0].arrive();
        if (thread_idx() != 33) storage.barrier[0].wait(0);
        store(data.out + thread_idx(), load(storage.words.at((thread_idx() + 1) % 64)));
      };
      const Result first = run({}, body, {.mode = mode, .seed = seed});
      const Result again = run({}, body, {.mode = mode, .seed = seed});
      EXPECT_EQ(all_reports(first), all_reports(again));
      EXPECT_FALSE(first.is_clean());
      EXPECT_EQ(first.statistics.steps, again.statistics.steps);
      EXPECT_EQ(first.statistics.switches, again.statistics.switches);
      EXPECT_EQ(first.statistics.accesses, again.statistics.accesses);
      EXPECT_EQ(first.statistics.async_operations, again.statistics.async_operations);
    }
  }
}

TEST(Replay, random_schedules_differ_between_seeds) {
  std::vector<uint64_t> switches;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Body body = [](Storage& storage, Data&) {
      init_barriers(storage, 64);
      storage.barrier[0].arrive();
      storage.barrier[0].wait(0);
    };
    switches.push_back(run({}, body, {.mode = Mode::kRandom, .seed = seed}).statistics.switches);
  }
  EXPECT_FALSE(switches[0] == switches[1] && switches[1] == switches[2] &&
               switches[2] == switches[3]);
}

}  // namespace
}  // namespace pagoda
