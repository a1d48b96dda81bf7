// The documented sequences of waits and releases, observed on the barriers. A scripted peer fills a
// stage only when a thread waits for it.
#include "pipeline/kv_consumer_pipeline.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"

namespace pagoda::pipeline {
namespace {

using emulator::Machine;
using emulator::MBarrierState;

std::string* sequence = nullptr;  // of waits and releases in this run

template <int stages, int parts>
struct Config {
  static constexpr KVTiling kv{.BN = 32,
                               .BK0 = 128 / parts,
                               .BK1 = 32 / parts,
                               .padded_depth = 128,
                               .num_kv_stages = stages,
                               .num_qk_stages = parts,
                               .num_pv_stages = parts};
};

// Thread 0: the consumer. Thread 32: the peer, which fills the ring.
template <int stages, int parts>
struct Script {
  using Consumer = KVConsumerPipeline<arch::BFloat16, Config<stages, parts>>;
  using Pipeline = typename Consumer::Pipeline;
  struct Params {
    int num_tiles;
  };
  struct Storage {
    arch::SharedArray<arch::BFloat16, stages* static_cast<int>(Consumer::full_kv_bytes) / 2, 1024>
        kv;
    arch::MBarrier mbar[Pipeline::num_mbars];
  };
  static constexpr int kThreads = 64;

  static MBarrierState& state(arch::MBarrier& barrier) {
    return Machine::current().mbarriers().find(barrier.data().host(), "test",
                                               emulator::Where::current());
  }

  // Records "rV0(1)": the stage, counted without wrapping, whose release `release` completes.
  template <class Release>
  static void record_release(const char* what, int tile, int part, Consumer& kv, Release release) {
    uint32_t before[stages];
    for (uint32_t i = 0; i < stages; ++i) before[i] = state(kv.kv_pipeline.empty(i, part)).phase;
    release();
    for (uint32_t i = 0; i < stages; ++i) {
      // The pass over the ring is the number of releases of this stage so far.
      if (state(kv.kv_pipeline.empty(i, part)).phase != before[i])
        record(what, tile, part, before[i] * stages + i);
    }
  }
  static void record(const char* what, int tile, int part, uint32_t index) {
    if (!sequence->empty()) *sequence += ' ';
    *sequence += what + std::to_string(tile);
    if (parts > 1) *sequence += "." + std::to_string(part);
    *sequence += "(" + std::to_string(index) + ")";
  }

  static void consume(int num_tiles, Consumer kv) {
    kv.template wait_k<0, false>();
    if constexpr (parts > 1) kv.template wait_k<1, false>();
    release_k(0, kv);
    wait_v(kv);
    for (int n = 1; n < num_tiles; ++n) {
      kv.template wait_k<0>();
      if constexpr (parts > 1) kv.template wait_k<1, false>();
      release_v(n - 1, kv, false);
      release_k(n, kv);
      wait_v(kv);
    }
    release_v(num_tiles - 1, kv, true);
  }
  static void wait_v(Consumer& kv) {
    kv.template wait_v<0>();
    if constexpr (parts > 1) kv.template wait_v<1>();
  }
  static void release_k(int tile, Consumer& kv) {
    record_release("rK", tile, 0, kv, [&] { kv.template release_k<0>(1); });
    if constexpr (parts > 1)
      record_release("rK", tile, 1, kv, [&] { kv.template release_k<1>(1); });
  }
  static void release_v(int tile, Consumer& kv, bool is_last) {
    record_release("rV", tile, 0, kv, [&] {
      is_last ? kv.template release_last_v<0>(1) : kv.template release_v<0>(1);
    });
    if constexpr (parts > 1) {
      record_release("rV", tile, 1, kv, [&] {
        is_last ? kv.template release_last_v<1>(1) : kv.template release_v<1>(1);
      });
    }
  }

  static void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) Pipeline::init(storage.mbar, 1);
    arch::syncthreads();
    const Consumer kv = Consumer::create(storage.mbar, storage.kv.data());
    if (arch::thread_idx() == 0) consume(params.num_tiles, kv);
    if (arch::thread_idx() != 32) return;
    // The peer fills only stages that a thread waits for.
    for (int filled = 0; filled < 2 * params.num_tiles * parts;) {
      bool found = false;
      for (uint32_t i = 0; i < stages && !found; ++i) {
        for (int part = 0; part < parts && !found; ++part) {
          MBarrierState& full = state(kv.kv_pipeline.full(i, part));
          if (full.waiters.empty()) continue;
          found = true;
          const uint32_t index = full.phase * stages + i;
          record(index % 2 == 0 ? "wK" : "wV", static_cast<int>(index / 2), part, index);
          kv.kv_pipeline.full(i, part).arrive();
          ++filled;
        }
      }
      if (!found) {
        Machine::current().scheduler().poll(
            {.what = "a wait", .primitive = "peer", .where = emulator::Where::current()});
      }
    }
  }
};

template <int stages, int parts>
void expect_sequence(int num_tiles, const std::string& expected) {
  for (const emulator::Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 25; ++seed) {
      std::string recorded;
      sequence = &recorded;
      using Kernel = Script<stages, parts>;
      const emulator::Result result = emulator::launch<Kernel>(
          emulator::shape_of<Kernel>("script", {1}), {num_tiles}, {}, {.mode = mode, .seed = seed});
      ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
      ASSERT_EQ(recorded, expected)
          << stages << " stages, " << emulator::name(mode) << ", seed " << seed;
    }
  }
}

// The documented sequence for three tiles; the last V is released from the current stage.
const char* const kThreeTiles =
    "wK0(0) rK0(0) wV0(1) "
    "wK1(2) rV0(1) rK1(2) wV1(3) "
    "wK2(4) rV1(3) rK2(4) wV2(5) "
    "rV2(5)";
const char* const kFourTiles =
    "wK0(0) rK0(0) wV0(1) "
    "wK1(2) rV0(1) rK1(2) wV1(3) "
    "wK2(4) rV1(3) rK2(4) wV2(5) "
    "wK3(6) rV2(5) rK3(6) wV3(7) "
    "rV3(7)";

TEST(KVConsumerPipeline, three_tiles_follow_the_documented_sequence) {
  expect_sequence<2, 1>(3, kThreeTiles);
  expect_sequence<3, 1>(3, kThreeTiles);
  expect_sequence<4, 1>(3, kThreeTiles);
  expect_sequence<5, 1>(3, kThreeTiles);
  expect_sequence<8, 1>(3, kThreeTiles);
}

TEST(KVConsumerPipeline, four_tiles_follow_the_documented_sequence) {
  expect_sequence<2, 1>(4, kFourTiles);
  expect_sequence<3, 1>(4, kFourTiles);
  expect_sequence<4, 1>(4, kFourTiles);
  expect_sequence<5, 1>(4, kFourTiles);
}

TEST(KVConsumerPipeline, one_tile_drains) {
  expect_sequence<2, 1>(1, "wK0(0) rK0(0) wV0(1) rV0(1)");
}

TEST(KVConsumerPipeline, parts_of_a_stage_keep_the_order) {
  const std::string expected =
      "wK0.0(0) wK0.1(0) rK0.0(0) rK0.1(0) wV0.0(1) wV0.1(1) "
      "wK1.0(2) wK1.1(2) rV0.0(1) rV0.1(1) rK1.0(2) rK1.1(2) wV1.0(3) wV1.1(3) "
      "rV1.0(3) rV1.1(3)";
  expect_sequence<2, 2>(2, expected);
  expect_sequence<3, 2>(2, expected);
  expect_sequence<4, 2>(2, expected);
}

// Descriptors step by whole stages, and by parts inside one.
struct Addresses {
  using Consumer = KVConsumerPipeline<arch::BFloat16, Config<3, 2>>;
  struct Params {
    std::vector<uint32_t>* starts;
  };
  struct Storage {
    arch::SharedArray<arch::BFloat16, 3 * static_cast<int>(Consumer::full_kv_bytes) / 2, 1024> kv;
    arch::MBarrier mbar[Consumer::Pipeline::num_mbars];
  };
  static constexpr int kThreads = 32;
  static void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() != 0) return;
    Consumer kv = Consumer::create(storage.mbar, storage.kv.data());
    Consumer::Pipeline::init(storage.mbar, 1);
    for (int i = 0; i < Consumer::Pipeline::num_mbars / 2; ++i) storage.mbar[i].arrive();
    const uint32_t base = storage.kv.data().address();
    const auto start = [&](arch::SmemDescriptor descriptor) {
      params.starts->push_back(decode(descriptor, arch::DescriptorFormat::kSm90).start_bytes -
                               base);
    };
    start(kv.template wait_k<0, false>());
    start(kv.template wait_k<1, false>());
    kv.template release_k<0>(1);
    kv.template release_k<1>(1);
    start(kv.template wait_v<0>());
    start(kv.template wait_v<1>());
    start(kv.template wait_k<0>());
  }
};

TEST(KVConsumerPipeline, descriptors_start_at_their_stage_and_part) {
  std::vector<uint32_t> starts;
  const emulator::Result result =
      emulator::launch<Addresses>(emulator::shape_of<Addresses>("addresses", {1}), {&starts}, {});
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
  constexpr uint32_t kTile = 32 * 128 * 2;
  EXPECT_EQ(starts, (std::vector<uint32_t>{0, kTile / 2, kTile, kTile + kTile / 2, 2 * kTile}));
}

}  // namespace
}  // namespace pagoda::pipeline
