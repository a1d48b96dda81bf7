// The sweep of paged_row_indices_sweep.hpp for BN = 128.
#include "operand/paged_row_indices_sweep.hpp"

namespace pagoda::sweep {
namespace {

TEST(PagedRowIndices, copies_of_tiles_of_128_keys_equal_a_plain_gather) {
  const int cases = check_page_size<128, 0>() + check_page_size<128, 8>() +
                    check_page_size<128, 16>() + check_page_size<128, 32>() +
                    check_page_size<128, 64>() + check_page_size<128, 128>() +
                    check_page_size<128, 256>() + check_page_size<128, 512>();
  std::cout << "PagedRowIndices, BN 128: " << cases << " cases\n";
  EXPECT_GT(cases, 1000);
}

}  // namespace
}  // namespace pagoda::sweep
