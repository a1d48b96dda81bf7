// The sweep of paged_row_indices_sweep.hpp for BN = 192.
// Three pages of 64 have no halves.
#include <gtest/gtest.h>
#include <iostream>

#include "testing/material/paged_row_indices_sweep.hpp"

namespace pagoda::material {
namespace {

TEST(PagedRowIndices, copies_of_tiles_of_192_keys_equal_a_plain_gather) {
  const Findings findings = check_page_sizes<192, 0, 8, 16, 32, 128, 256, 512>();
  std::cout << "PagedRowIndices, BN 192: " << findings.cases << " cases\n";
  EXPECT_GT(findings.cases, 1000);
  EXPECT_TRUE(findings.wrong.empty()) << findings.wrong.size() << " wrong, first:\n"
                                      << findings.wrong[0];
}

}  // namespace
}  // namespace pagoda::material
