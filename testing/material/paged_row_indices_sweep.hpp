// The brute-force sweep of PagedRowIndices for one BN on the emulator, against a plain gather. It
// lists the failures; the tests expect none.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine/launch.hpp"
#include "testing/material/copy_tile_case.hpp"

namespace pagoda::material {

struct Findings {
  int cases = 0;
  std::vector<std::string> wrong;
};

template <class Indices, arch::Swizzle swizzle>
void check_instance(int page_size, Findings& findings) {
  using Kernel = CopyTile<Indices, swizzle>;
  constexpr int BN = Indices::BN, BK = Kernel::BK;
  constexpr bool is_peer = Indices::pair_cta && !Indices::is_leader;
  constexpr uint16_t kUntouched = 0xabcd;
  CopyTileCase<Kernel> test(page_size);
  // Every number of valid pages: complete ones, and a last one that lacks three keys.
  constexpr int kStep = operand::kv_sub_tile_rows(BN / 2, Indices::page_size);
  for (int valid_rows = 0; valid_rows <= BN; valid_rows += kStep) {
    for (const int missing : {0, 3}) {
      if (valid_rows < missing) continue;
      test.set_num_keys(BN + valid_rows - missing);
      const std::vector<uint16_t> expected = test.expected(kUntouched);
      std::vector<uint16_t> out(expected.size(), kUntouched);
      const std::string name = "BN " + std::to_string(BN) + ", page " + std::to_string(page_size) +
                               (Indices::pair_cta ? is_peer ? ", peer" : ", leader" : "") +
                               (Indices::is_leader || Indices::pair_cta ? "" : ", not leader") +
                               ", swizzle " + std::to_string(static_cast<int>(swizzle)) +
                               ", keys " + std::to_string(test.num_keys());
      const emulator::Result result = emulator::launch<Kernel>(
          emulator::shape_of<Kernel>(name, {1}),
          test.params(test.cache().data(), test.table().data(), test.lengths().data(), out.data(),
                      [](const arch::TensorMapSpec& spec) { return spec; }),
          {emulator::input("cache", test.cache().data(), test.cache().size()),
           emulator::input("table", test.table().data(), test.table().size()),
           emulator::input("lengths", test.lengths().data(), test.lengths().size()),
           emulator::output("out", out.data(), out.size())},
          {.mode = emulator::Mode::kRandom, .seed = static_cast<uint64_t>(++findings.cases)});
      if (!result.is_clean()) findings.wrong.push_back(to_string(result.reports[0]));
      for (int section = 0; section < copy_tile::kSections; ++section) {
        ++findings.cases;
        const auto begin = out.begin() + section * BN * BK;
        if (!std::equal(begin, begin + BN * BK, expected.begin() + section * BN * BK)) {
          findings.wrong.push_back(name + ", section " + std::to_string(section) + " differs");
        }
      }
    }
  }
}

// The instances take a minute to compile, so that an ordinary build has every other one, as on a
// chessboard: each role with every page size and every swizzle. -DPAGODA_FULL_SWEEP=ON, as the
// nightly workflow has it, compiles all.
#if !defined(PAGODA_FULL_SWEEP)
#define PAGODA_FULL_SWEEP 0
#endif
constexpr bool is_swept(int page_size, arch::Swizzle swizzle, int role) {
  return PAGODA_FULL_SWEEP != 0 ||
         (std::bit_width(static_cast<unsigned>(page_size)) + static_cast<int>(swizzle) + role) %
                 2 ==
             0;
}

template <int BN, int page_size>
void check_page_size(Findings& findings) {
  if constexpr (operand::divide_one_another(page_size, BN)) {
    const auto check = [&]<arch::Swizzle swizzle, bool pair_cta, bool is_leader>() {
      if constexpr (is_swept(page_size, swizzle, pair_cta == is_leader ? 0 : 1)) {
        check_instance<operand::PagedRowIndices<BN, page_size, pair_cta, is_leader>, swizzle>(
            page_size, findings);
      }
    };
    const auto check_roles = [&]<arch::Swizzle swizzle>() {
      check.template operator()<swizzle, false, true>();
      check.template operator()<swizzle, false, false>();
      check.template operator()<swizzle, true, true>();
      check.template operator()<swizzle, true, false>();
    };
    check_roles.template operator()<arch::Swizzle::kNone>();
    check_roles.template operator()<arch::Swizzle::k32B>();
    check_roles.template operator()<arch::Swizzle::k64B>();
    check_roles.template operator()<arch::Swizzle::k128B>();
  }
}

template <int BN, int... page_sizes>
Findings check_page_sizes() {
  Findings findings;
  (check_page_size<BN, page_sizes>(findings), ...);
  return findings;
}

}  // namespace pagoda::material
