// The sweep of paged_row_indices_sweep.hpp for BN = 64.
#include "operand/paged_row_indices_sweep.hpp"

namespace pagoda::sweep {
namespace {

TEST(PagedRowIndices, copies_of_tiles_of_64_keys_equal_a_plain_gather) {
  const int cases = check_page_size<64, 0>() + check_page_size<64, 8>() +
                    check_page_size<64, 16>() + check_page_size<64, 32>() +
                    check_page_size<64, 64>() + check_page_size<64, 128>() +
                    check_page_size<64, 256>() + check_page_size<64, 512>();
  std::cout << "PagedRowIndices, BN 64: " << cases << " cases\n";
  EXPECT_GT(cases, 1000);
}

}  // namespace
}  // namespace pagoda::sweep
