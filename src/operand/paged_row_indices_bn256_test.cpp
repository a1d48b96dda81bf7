// The sweep of paged_row_indices_sweep.hpp for BN = 256.
#include "operand/paged_row_indices_sweep.hpp"

namespace pagoda::sweep {
namespace {

TEST(PagedRowIndices, copies_of_tiles_of_256_keys_equal_a_plain_gather) {
  const int cases = check_page_size<256, 0>() + check_page_size<256, 8>() +
                    check_page_size<256, 16>() + check_page_size<256, 32>() +
                    check_page_size<256, 64>() + check_page_size<256, 128>() +
                    check_page_size<256, 256>() + check_page_size<256, 512>();
  std::cout << "PagedRowIndices, BN 256: " << cases << " cases\n";
  EXPECT_GT(cases, 1000);
}

}  // namespace
}  // namespace pagoda::sweep
