// The emulator checks what the schedule and the masks read from global memory: it reports reads
// before grid_dependency_wait and reads past the end of an array.
#include <array>
#include <cstdint>
#include <gtest/gtest.h>

#include "arch/grid_dependency.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "mask/interval_mask.hpp"
#include "schedule/tile_grid.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda {
namespace {

enum class Reader : uint8_t { kGrid, kMask };

struct ReadsLengths {
  struct Params {
    schedule::TileDecoder grid;
    mask::IntervalMask mask;
    Reader reader = Reader::kGrid;
    bool is_early = false;
    int32_t sequence = 0;
  };
  struct Storage {};
  static constexpr int kThreads = 32;
  static constexpr bool kIsDependent = true;

  static PAGODA_DEVICE void read(const Params& params) {
    if (params.reader == Reader::kGrid) {
      static_cast<void>(params.grid.at(params.sequence));
    } else {
      static_cast<void>(params.mask.visible({.sequence = params.sequence, .seqlen_kv = 8}, 0));
    }
  }
  static PAGODA_DEVICE void run(const Params& params) {
    if (params.is_early) read(params);
    arch::grid_dependency_wait();
    if (!params.is_early) read(params);
  }
};

emulator::Result read_lengths(Reader reader, bool is_early, int32_t sequence = 0) {
  static constexpr std::array<int32_t, 3> kCuRows{0, 16, 32};
  static constexpr std::array<int32_t, 2> kValid{4, 8};
  ReadsLengths::Params params;
  params.reader = reader;
  params.is_early = is_early;
  params.sequence = sequence;
  params.grid = schedule::TileGrid{
      .batch = 2, .num_heads = 1, .tile_rows = 16, .rows = 32, .cu_rows = kCuRows.data()};
  params.mask.valid_lengths = kValid.data();
  return emulator::launch<ReadsLengths>(
      emulator::shape_of<ReadsLengths>("reads_lengths", {1}), params,
      {emulator::input("cu_rows", kCuRows.data(), kCuRows.size()),
       emulator::input("valid_lengths", kValid.data(), kValid.size())});
}

TEST(GlobalReads, of_schedule_and_mask_before_the_wait_are_reported) {
  const auto reports_of = [](Reader reader) { return all_reports(read_lengths(reader, true)); };
  EXPECT_NE(reports_of(Reader::kGrid).find("read of buffer cu_rows before grid_dependency_wait"),
            std::string::npos);
  EXPECT_NE(
      reports_of(Reader::kMask).find("read of buffer valid_lengths before grid_dependency_wait"),
      std::string::npos);
}

TEST(GlobalReads, past_the_end_are_reported) {
  EXPECT_FALSE(read_lengths(Reader::kMask, false, 1000).is_clean());
}

TEST(GlobalReads, after_the_wait_are_silent) {
  EXPECT_EQ(all_reports(read_lengths(Reader::kGrid, false)), "");
  EXPECT_EQ(all_reports(read_lengths(Reader::kMask, false)), "");
}

}  // namespace
}  // namespace pagoda
