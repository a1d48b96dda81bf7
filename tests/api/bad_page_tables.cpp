// Bad lengths, offsets and page tables of caches.
#include "bad_call.hpp"

namespace pagoda::test {

std::span<const BadCall> bad_page_tables() {
  static constexpr BadCall kRows[] = {
      {"dense_lengths_too_many", Base::kDense,
       [](ValidCall& c) {
         c.ints = {10, 7, 1};
         c.dense().seqlens_kv = c.ints;
       },
       "kv.seqlens_kv.size()", "must equal batch = 2"},
      {"dense_length_above_capacity", Base::kDense, [](ValidCall& c) { c.seqlens_kv[0] = 11; },
       "kv.seqlens_kv[0]", "must be in [0, max_seqlen_kv = 10]"},
      {"dense_length_negative", Base::kDense, [](ValidCall& c) { c.seqlens_kv[1] = -7; },
       "kv.seqlens_kv[1]", "is -7"},
      {"ragged_kv_offsets_absent", Base::kRagged,
       [](ValidCall& c) { c.ragged().cu_seqlens_kv = {}; }, "kv.cu_seqlens_kv.size()",
       "must be batch + 1 = 3"},
      {"ragged_kv_offsets_start_at_2", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_kv[0] = 2; },
       "kv.cu_seqlens_kv[0]", "must start at 0"},
      {"ragged_kv_offsets_decrease", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_kv[2] = 9; },
       "kv.cu_seqlens_kv[2]", "must not be below the entry before it, 10"},
      {"ragged_kv_offsets_past_the_end", Base::kRagged,
       [](ValidCall& c) { c.cu_seqlens_kv[2] = 18; }, "kv.cu_seqlens_kv[2]", "must be at most 17"},

      {"ragged_kv_used_keys_past_the_offsets", Base::kRagged,
       [](ValidCall& c) {
         c.ints = {10, 8};
         c.ragged().seqlens_kv = c.ints;
       },
       "kv.seqlens_kv[1]", "must be at most the rows of the sequence, 7"},
      {"table_null", Base::kBlockTable, [](ValidCall& c) { c.block_table().pages.data = nullptr; },
       "kv.table.pages.data", "must not be null"},
      {"table_misaligned", Base::kBlockTable,
       [](ValidCall& c) {
         c.block_table().pages.data = reinterpret_cast<const int32_t*>(
             reinterpret_cast<const char*>(c.block_table().pages.data) + 1);
       },
       "kv.table.pages.data", "multiple of 4"},
      {"table_width_negative", Base::kBlockTable,
       [](ValidCall& c) { c.block_table().pages.columns = -1; }, "kv.table.pages.columns",
       "must be in [0, 2147483647]"},
      {"table_of_too_few_rows", Base::kBlockTable,
       [](ValidCall& c) { c.block_table().pages.rows = 1; }, "kv.table.pages.rows",
       "must equal batch = 2"},
      {"table_rows_overlap", Base::kBlockTable,
       [](ValidCall& c) { c.block_table().pages.row_stride = 2; }, "kv.table.pages.row_stride",
       "must be at least columns = 3"},
      {"table_row_stride_forgotten", Base::kBlockTable,
       [](ValidCall& c) { c.block_table().pages.row_stride = 0; }, "kv.table.pages.row_stride",
       "must be at least columns = 3"},
      {"table_row_stride_overflows", Base::kBlockTable,
       [](ValidCall& c) { c.block_table().pages.row_stride = INT64_MAX; },
       "kv.table.pages.row_stride", "address space"},
      {"table_lengths_absent", Base::kBlockTable,
       [](ValidCall& c) { c.block_table().seqlens_kv = {}; }, "kv.table.seqlens_kv.size()",
       "must equal batch = 2"},
      {"table_row_too_short_for_length", Base::kBlockTable,
       [](ValidCall& c) { c.seqlens_kv[0] = 13; }, "kv.table.seqlens_kv[0]",
       "must be in [0, pages.columns * page_size = 12]"},
      {"table_length_negative", Base::kBlockTable, [](ValidCall& c) { c.seqlens_kv[1] = -1; },
       "kv.table.seqlens_kv[1]", "is -1"},
      {"table_length_without_pages", Base::kBlockTable,
       [](ValidCall& c) { c.paged().k.shape[0] = c.paged().v.shape[0] = 0; },
       "kv.table.seqlens_kv[0]", "cache without pages"},
      {"table_page_id_past_the_end", Base::kBlockTable, [](ValidCall& c) { c.pages[2] = 6; },
       "kv.table.pages[2]", "must be in [0, num_pages = 6)"},
      {"table_page_id_negative", Base::kBlockTable, [](ValidCall& c) { c.pages[4] = -1; },
       "kv.table.pages[4]", "is -1"},

      {"csr_indptr_absent", Base::kCsr, [](ValidCall& c) { c.csr().indptr = {}; },
       "kv.table.indptr.size()", "must be batch + 1 = 3"},
      {"csr_indptr_starts_at_1", Base::kCsr, [](ValidCall& c) { c.indptr[0] = 1; },
       "kv.table.indptr[0]", "must start at 0"},
      {"csr_indptr_decreases", Base::kCsr, [](ValidCall& c) { c.indptr[2] = 2; },
       "kv.table.indptr[2]", "must not be below the entry before it, 3"},
      {"csr_indptr_past_the_indices", Base::kCsr, [](ValidCall& c) { c.indptr[2] = 7; },
       "kv.table.indptr[2]", "indices.size() must be at most 6"},
      {"csr_last_page_len_too_few", Base::kCsr,
       [](ValidCall& c) { c.csr().last_page_len = c.csr().last_page_len.first(1); },
       "kv.table.last_page_len.size()", "must equal batch = 2"},
      {"csr_last_page_len_0", Base::kCsr, [](ValidCall& c) { c.last_page_len[1] = 0; },
       "kv.table.last_page_len[1]", "must be in [1, page_size = 4]"},
      {"csr_last_page_len_above_page_size", Base::kCsr,
       [](ValidCall& c) { c.last_page_len[0] = 5; }, "kv.table.last_page_len[0]",
       "must be in [1, page_size = 4]"},
      {"csr_without_pages", Base::kCsr,
       [](ValidCall& c) { c.paged().k.shape[0] = c.paged().v.shape[0] = 0; }, "kv.table.indptr[2]",
       "the cache has no pages"},
      {"csr_more_keys_than_32_bits", Base::kCsr,
       [](ValidCall& c) {
         // Strides of 0: one row of memory that claims to be 2^30 rows of each page.
         for (ConstTensor* t : {&c.paged().k, &c.paged().v}) {
           t->shape[2] = int64_t{1} << 30;
           t->strides[2] = 0;
         }
       },
       "kv.table.indptr[1]", "at most 2147483647 keys"},
      {"csr_page_id_past_the_end", Base::kCsr, [](ValidCall& c) { c.pages[3] = 6; },
       "kv.table.indices[3]", "must be in [0, num_pages = 6)"},
      {"csr_page_id_negative", Base::kCsr, [](ValidCall& c) { c.pages[0] = INT32_MIN; },
       "kv.table.indices[0]", "is -2147483648"},
  };
  return kRows;
}

}  // namespace pagoda::test
