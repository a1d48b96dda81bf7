// Prints the bytes of the kernels' parameters as the host passes them: "append_kv 232". Their code
// objects must expect as many (gfx942_instructions_test.py).
#include <cstdio>

#include "kernels/append_kv/append_kv_params.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/merge_states/merge_states_params.hpp"
#include "kernels/padding_rows/padding_rows_params.hpp"

int main() {
  std::printf("append_kv %zu\n", sizeof(pagoda::kernels::AppendKVParams));
  std::printf("merge_states %zu\n", sizeof(pagoda::kernels::MergeStatesParams));
  std::printf("padding_rows %zu\n", sizeof(pagoda::kernels::PaddingRowsParams));
  std::printf("attention %zu\n", sizeof(pagoda::kernels::AttentionArguments));
}
