// The sweep of paged_row_indices_sweep.hpp for BN = 192.
// Three pages of 64 have no halves.
#include "operand/paged_row_indices_sweep.hpp"

namespace pagoda::sweep {
namespace {

TEST(PagedRowIndices, copies_of_tiles_of_192_keys_equal_a_plain_gather) {
  const int cases = check_page_size<192, 0>() + check_page_size<192, 8>() +
                    check_page_size<192, 16>() + check_page_size<192, 32>() +
                    check_page_size<192, 128>() + check_page_size<192, 256>() +
                    check_page_size<192, 512>();
  std::cout << "PagedRowIndices, BN 192: " << cases << " cases\n";
  EXPECT_GT(cases, 1000);
}

}  // namespace
}  // namespace pagoda::sweep
