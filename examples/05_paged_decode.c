// One token of decode over a paged cache through the C ABI: two sequences of 5 and 3 keys in pages
// of 4. All keys score alike, so the result is the mean of a sequence's values: key + 1.
#include <stdio.h>

#include "pagoda/pagoda.h"

enum { kBatch = 2, kPages = 3, kPageSize = 4, kHeads = 2, kDim = 8 };
static float q[kBatch][1][kHeads][kDim], out[kBatch][1][kHeads][kDim];
static float k[kPages][kPageSize][kHeads][kDim], v[kPages][kPageSize][kHeads][kDim];

int main(void) {
  const int32_t seqlens[kBatch] = {5, 3}, block_table[kBatch][2] = {{2, 0}, {1, 0}};
  for (int b = 0; b < kBatch; ++b) {
    for (int key = 0; key < seqlens[b]; ++key) {
      float* row = v[block_table[b][key / kPageSize]][key % kPageSize][0];
      for (int i = 0; i < kHeads * kDim; ++i) row[i] = (float)(key + 1);
    }
  }
  const pagoda_kv_cache kv = {
      .struct_size = sizeof kv,
      .k = PAGODA_TENSOR(k, PAGODA_FLOAT32, kPages, kPageSize, kHeads, kDim),
      .v = PAGODA_TENSOR(v, PAGODA_FLOAT32, kPages, kPageSize, kHeads, kDim),
      .seqlens_kv = PAGODA_TENSOR(seqlens, PAGODA_INT32, kBatch),
      .block_table = PAGODA_TENSOR(block_table, PAGODA_INT32, kBatch, 2)};
  const pagoda_attention a = {.struct_size = sizeof a,
                              .q = PAGODA_TENSOR(q, PAGODA_FLOAT32, kBatch, 1, kHeads, kDim),
                              .kv = &kv,
                              .out = PAGODA_TENSOR(out, PAGODA_FLOAT32, kBatch, 1, kHeads, kDim)};
  pagoda_status status = {.struct_size = sizeof status};
  if (pagoda_run(&a, NULL, &status) != PAGODA_OK) return puts(status.message), 1;
  printf("%g %g\n", out[0][0][0][0], out[1][0][1][7]);
  return out[0][0][0][0] == 3.0F && out[1][0][1][7] == 2.0F ? 0 : 1;
}
