// TMAProducerPipeline on the emulator: K and V in two parts each, over rings of two stages. The
// last tile has half of its rows only: no copy fills its last part of V. Kernels that leave out a
// wait, or expect other bytes than the copies bring, must be reported.
#include "pipeline/tma_producer_pipeline.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <type_traits>
#include <vector>

#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda::pipeline {
namespace {

using emulator::ReportKind;
using T = arch::BFloat16;

constexpr int kBN = 32, kDepth = 128, kGran = 64, kTiles = 7;
constexpr int kBoxRows = 16;  // of one copy: a page
constexpr int kParts = 4;     // of K and V together

struct Config {
  static constexpr KVTiling kv{.BN = kBN,
                               .BK0 = kDepth / 2,
                               .BK1 = kBN / 2,
                               .padded_depth = kDepth,
                               .num_kv_stages = 2,
                               .num_qk_stages = 2,
                               .num_pv_stages = 2};
};
// One ring for both.
template <int parts>
struct SharedConfig {
  static constexpr KVTiling kv{.BN = kBN,
                               .BK0 = kDepth / parts,
                               .BK1 = kBN / parts,
                               .padded_depth = kDepth,
                               .num_kv_stages = 3,
                               .num_qk_stages = parts,
                               .num_pv_stages = parts};
};

enum class Bug : uint8_t {
  kNone,
  kNoAcquireK,     // a part is refilled while it is in use
  kNoAcquireV,     // the same for V
  kWholeBytes,     // the half tile expects the bytes of a whole one
  kOtherPart,      // part 1 is copied to the memory of part 0
  kPartsShareOne,  // part 1 expects its bytes on the barrier of part 0
  kOtherPartOfV,   // part 1 of V is copied to the memory of part 0
  kNoEmptyPart,    // no arrival for the part of V without rows
};

// K and V: [kTiles * kBN rows, kDepth]; of the last tile 16 rows exist. Warp 0 loads, warp 1 adds
// up the elements of each part: out[tile][part] (parts 0 and 1 of K, 2 and 3 of V).
template <Bug bug>
struct Sums {
  using KProducer = TMAProducerPipeline<T, Config>;
  using VProducer = TMAProducerPipeline<T, Config, false>;
  struct Params {
    arch::TensorMap k, v;
    arch::GlobalPtr<uint32_t> out;  // [kTiles][4][32]
  };
  struct Storage {
    arch::SharedArray<T, Config::kv.num_kv_stages * KProducer::elements_full, 1024> k;
    arch::SharedArray<T, Config::kv.num_kv_stages * VProducer::elements_full, 1024> v;
    arch::MBarrier k_mbar[KProducer::Pipeline::num_mbars];
    arch::MBarrier v_mbar[VProducer::Pipeline::num_mbars];
  };
  static constexpr int kThreads = 64;
  static_assert(KProducer::bytes == KProducer::tile_bytes && VProducer::tile_bytes == 4096);
  static_assert(KProducer::elements_full == 2 * KProducer::elements);
  static_assert(std::is_same_v<KProducer::KPairType, KProducer::PairType>);

  static int copies(int tile) { return tile + 1 < kTiles ? kBN / kBoxRows : 1; }
  static void copy(const arch::TensorMap& map, arch::SharedPtr<T> to, arch::MBarrier& mbar,
                   int32_t elect, int tile, int first_column, int columns) {
    for (int column = 0; column < columns; column += kGran) {
      for (int i = 0; i < copies(tile); ++i) {
        arch::tma_load<2>(elect, to + (column / kGran * kBN + i * kBoxRows) * kGran, map,
                          {{first_column + column, tile * kBN + i * kBoxRows}}, mbar);
      }
    }
  }
  static uint32_t expected(int tile, uint32_t bytes) {
    return bug == Bug::kWholeBytes ? bytes : bytes / 2 * static_cast<uint32_t>(copies(tile));
  }

  static constexpr int part_unless(Bug wrong, int part) { return bug == wrong ? 0 : part; }

  template <int part>
  static void load_k(const Params& params, const KProducer& k, int32_t elect, int tile) {
    if constexpr (bug != Bug::kNoAcquireK) k.template acquire_k<part>();
    arch::syncwarp();
    constexpr int barrier = part_unless(Bug::kPartsShareOne, part);
    const auto to = k.template get_k<barrier>(elect, expected(tile, KProducer::tile_bytes));
    constexpr int memory = part_unless(Bug::kOtherPart, part);
    copy(params.k, k.template get_k_smem<memory>(), to.mbar, elect, tile, part * kGran, kGran);
  }
  // A part of V has the rows of one copy.
  template <int part>
  static void load_v(const Params& params, const VProducer& v, int32_t elect, int tile) {
    if constexpr (bug != Bug::kNoAcquireV) v.template acquire_v<part>();
    arch::syncwarp();
    const bool is_empty = part >= copies(tile);
    if (bug == Bug::kNoEmptyPart && is_empty) return;
    const auto to = v.template get_v<part>(elect, is_empty ? 0 : VProducer::tile_bytes);
    constexpr int memory = part_unless(Bug::kOtherPartOfV, part);
    if (is_empty) return;
    for (int column = 0; column < kDepth; column += kGran) {
      arch::tma_load<2>(elect, v.template get_v_smem<memory>() + column * kBoxRows, params.v,
                        {{column, tile * kBN + part * kBoxRows}}, to.mbar);
    }
  }
  static void load(const Params& params, Storage& storage) {
    const int32_t elect = arch::elect_one();
    auto k = KProducer::create(storage.k_mbar, storage.k.data());
    // From the position of a pipeline object.
    auto v = VProducer::create(VProducer::Pipeline::producer(storage.v_mbar), storage.v.data());
    for (int tile = 0; tile < kTiles; ++tile) {
      load_k<0>(params, k, elect, tile);
      load_k<1>(params, k, elect, tile);
      k.commit_step();
      load_v<0>(params, v, elect, tile);
      load_v<1>(params, v, elect, tile);
      v.commit_step();
    }
    v.drain();
  }

  // This lane's share of the sum of `rows` rows of kGran columns; the swizzle only permutes them in
  // a row.
  static uint32_t sum(arch::SharedPtr<T> from, int rows) {
    uint32_t total = 0;
    for (int i = arch::lane_idx(); i < rows * kGran / 8; i += 32) {
      const auto words = arch::load((from + i * 8).template as<arch::Words<4>>());
      for (const uint32_t word : words.word) total += (word & 0xffffU) + (word >> 16);
    }
    return total;
  }
  template <int part>
  static uint32_t sum_k(typename KProducer::Pipeline& k, Storage& storage, int tile) {
    k.template consumer_wait<part>();
    const uint32_t total =
        sum(storage.k.at(static_cast<int32_t>(k.state.index) * KProducer::elements_full +
                         part * KProducer::elements),
            copies(tile) * kBoxRows);
    arch::syncwarp();
    k.template consumer_release<part>(arch::elect_one());
    return total;
  }
  template <int part>
  static uint32_t sum_v(typename VProducer::Pipeline& v, Storage& storage, int tile) {
    v.template consumer_wait<part>();
    const auto from = storage.v.at(static_cast<int32_t>(v.state.index) * VProducer::elements_full +
                                   part * VProducer::elements);
    const int rows = part < copies(tile) ? kBoxRows : 0;
    const uint32_t total = sum(from, rows) + sum(from + kBoxRows * kGran, rows);  // two panels
    arch::syncwarp();
    v.template consumer_release<part>(arch::elect_one());
    return total;
  }
  static void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      KProducer::Pipeline::init(storage.k_mbar, 1, "k");
      VProducer::Pipeline::init(storage.v_mbar, 1, "v");
      arch::fence_mbarrier_init();
    }
    arch::syncthreads();
    if (arch::warp_idx() == 0) return load(params, storage);
    auto k = KProducer::Pipeline::consumer(storage.k_mbar);
    auto v = VProducer::Pipeline::consumer(storage.v_mbar);
    for (int tile = 0; tile < kTiles; ++tile) {
      uint32_t totals[kParts];
      totals[0] = sum_k<0>(k, storage, tile);
      totals[1] = sum_k<1>(k, storage, tile);
      totals[2] = sum_v<0>(v, storage, tile);
      totals[3] = sum_v<1>(v, storage, tile);
      for (int i = 0; i < kParts; ++i) {
        arch::store(params.out + (tile * kParts + i) * 32 + arch::lane_idx(), totals[i]);
      }
    }
  }
};

class SumsCase {
 public:
  SumsCase() : kv_(2 * kRows * kDepth), out_(kTiles * kParts * 32) {
    uint32_t state = 1;
    for (uint16_t& element : kv_) element = static_cast<uint16_t>((state = state * 69069 + 1) >> 8);
  }

  template <Bug bug>
  emulator::Result launch(emulator::Mode mode, uint64_t seed) {
    using Kernel = Sums<bug>;
    const auto map = [this](size_t first) {
      return arch::TensorMapSpec{.type = arch::TensorMapType::kBF16,
                                 .rank = 2,
                                 .address = reinterpret_cast<uint64_t>(kv_.data() + first),
                                 .dims = {kDepth, kRows},
                                 .strides_bytes = {kDepth * 2},
                                 .box = {kGran, kBoxRows},
                                 .swizzle = arch::Swizzle::k128B};
    };
    return emulator::launch<Kernel>(emulator::shape_of<Kernel>("sums", {1}),
                                    {map(0), map(kRows * kDepth), out_.data()},
                                    {emulator::input("kv", kv_.data(), kv_.size()),
                                     emulator::output("out", out_.data(), out_.size())},
                                    {.mode = mode, .seed = seed});
  }

  // The sum over the lanes, and what a plain loop gives.
  [[nodiscard]] uint32_t got(int tile, int part) const {
    uint32_t total = 0;
    for (int lane = 0; lane < 32; ++lane) {
      total += out_[static_cast<size_t>((tile * kParts + part) * 32 + lane)];
    }
    return total;
  }
  [[nodiscard]] uint32_t expected(int tile, int part) const {
    const bool is_v = part >= 2;
    const int first = part == 1 ? kGran : 0, last = part == 0 ? kGran : kDepth;
    const int begin = tile * kBN + (part == 3 ? kBoxRows : 0);
    const int end = tile * kBN + (part == 2 ? kBoxRows : kBN);
    uint32_t total = 0;
    for (int row = begin; row < std::min(end, kRows); ++row) {
      for (int column = first; column < last; ++column) {
        total += kv_[static_cast<size_t>(((is_v ? kRows : 0) + row) * kDepth + column)];
      }
    }
    return total;
  }

 private:
  static constexpr int kRows = (kTiles - 1) * kBN + kBoxRows;
  std::vector<uint16_t> kv_;
  std::vector<uint32_t> out_;
};

TEST(TMAProducerPipeline, parts_of_k_and_v_arrive_over_several_phases) {
  for (const emulator::Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 25; ++seed) {
      SumsCase run;
      const emulator::Result result = run.launch<Bug::kNone>(mode, seed);
      ASSERT_TRUE(result.is_clean()) << emulator::all_reports(result);
      for (int tile = 0; tile < kTiles; ++tile) {
        for (int part = 0; part < kParts; ++part) {
          ASSERT_EQ(run.got(tile, part), run.expected(tile, part)) << tile << ", " << part;
        }
      }
    }
  }
}

template <Bug bug>
emulator::Result launch(emulator::Mode mode, uint64_t seed) {
  return SumsCase().launch<bug>(mode, seed);
}

// Where copies complete late, the barrier gets too many arrivals first.
template <Bug bug>
void expect_race() {
  std::string races;
  for (const emulator::Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const emulator::Result result = launch<bug>(mode, seed);
      EXPECT_FALSE(result.is_clean()) << emulator::name(mode) << ", seed " << seed;
      for (const emulator::Report& report : result.reports) {
        if (report.kind == ReportKind::kRace) races += to_string(report);
      }
    }
  }
  EXPECT_NE(races.find("shared memory"), std::string::npos);
}
TEST(TMAProducerPipeline, a_missing_acquire_is_a_race) {
  expect_race<Bug::kNoAcquireK>();
  expect_race<Bug::kNoAcquireV>();
}
TEST(TMAProducerPipeline, bytes_that_no_copy_brings_are_a_deadlock) {
  EXPECT_EQ(emulator::missing_report(launch<Bug::kWholeBytes>, ReportKind::kDeadlock, "k full"),
            "");
}
TEST(TMAProducerPipeline, parts_have_memory_and_barriers_of_their_own) {
  for (const emulator::Mode mode : emulator::kModes) {
    EXPECT_FALSE(launch<Bug::kOtherPart>(mode, 1).is_clean()) << emulator::name(mode);
    EXPECT_FALSE(launch<Bug::kPartsShareOne>(mode, 1).is_clean()) << emulator::name(mode);
    EXPECT_FALSE(launch<Bug::kOtherPartOfV>(mode, 1).is_clean()) << emulator::name(mode);
  }
}

// A part without rows has no bytes, but its barrier has a phase.
TEST(TMAProducerPipeline, a_part_without_rows_that_is_left_out_is_a_deadlock) {
  EXPECT_EQ(emulator::missing_report(launch<Bug::kNoEmptyPart>, ReportKind::kDeadlock, "v full[1]"),
            "");
}

// In a ring that K and V share one object serves both, and every call gives the current stage.
template <int parts>
struct SharedCalls {
  using Config = SharedConfig<parts>;
  using Producer = TMAProducerPipeline<T, Config>;
  static_assert(Producer::serves_v && Producer::num_qk_stages_effective == parts);
  struct Params {
    std::vector<int32_t>* offsets;  // elements from the start of the ring
  };
  struct Storage {
    arch::SharedArray<T, Config::kv.num_kv_stages * Producer::elements_full, 1024> kv;
    arch::MBarrier mbar[Producer::Pipeline::num_mbars];
  };
  static constexpr int kThreads = 32;
  static void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() != 0) return;
    Producer::Pipeline::init(storage.mbar, 1);
    auto kv = Producer::create(storage.mbar, storage.kv.data());
    const auto record = [&](arch::SharedPtr<T> at) {
      params.offsets->push_back(static_cast<int32_t>(at.address() - storage.kv.data().address()) /
                                2);
    };
    constexpr int last = parts - 1;
    record(kv.get_k_smem());
    record(kv.template get_k<last>().smem);
    kv.commit_step();
    record(kv.get_v_smem());
    record(kv.template get_v<last>().smem);
    kv.commit_step();
    record(kv.template get_k<last>().smem);
    kv.commit_step();
    record(kv.template get_v_smem<last>());  // around the ring
  }
};

template <int parts>
void expect_turns() {
  std::vector<int32_t> offsets;
  const emulator::Result result = emulator::launch<SharedCalls<parts>>(
      emulator::shape_of<SharedCalls<parts>>("shared_calls", {1}), {&offsets}, {});
  ASSERT_TRUE(result.is_clean()) << emulator::all_reports(result);
  constexpr int kStage = kBN * kDepth, kLast = kStage / parts * (parts - 1);
  EXPECT_EQ(offsets,
            (std::vector<int32_t>{0, kLast, kStage, kStage + kLast, 2 * kStage + kLast, kLast}));
}
TEST(TMAProducerPipeline, k_and_v_of_a_shared_ring_take_turns_in_its_stages) {
  expect_turns<1>();
  expect_turns<2>();
}

}  // namespace
}  // namespace pagoda::pipeline
