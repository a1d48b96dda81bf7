// The sweep of paged_row_indices_sweep.hpp for BN = 64.
#include <gtest/gtest.h>
#include <iostream>

#include "testing/material/paged_row_indices_sweep.hpp"

namespace pagoda::material {
namespace {

TEST(PagedRowIndices, copies_of_tiles_of_64_keys_equal_a_plain_gather) {
  const Findings findings = check_page_sizes<64, 0, 8, 16, 32, 64, 128, 256, 512>();
  std::cout << "PagedRowIndices, BN 64: " << findings.cases << " cases\n";
  EXPECT_GT(findings.cases, 1000);
  EXPECT_TRUE(findings.wrong.empty()) << findings.wrong.size() << " wrong, first:\n"
                                      << findings.wrong[0];
}

}  // namespace
}  // namespace pagoda::material
