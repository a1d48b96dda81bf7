// The model table and its tensor-parallel shares.
#include "cli/replay/model_shape.hpp"

#include <gtest/gtest.h>

namespace pagoda::replay {
namespace {

TEST(ModelShape, every_known_model_is_valid_and_found_by_its_name) {
  EXPECT_GE(known_models().size(), 5U);
  for (const ModelShape& model : known_models()) {
    EXPECT_TRUE(validate(model).ok()) << model.name;
    const auto found = find_model(model.name);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->num_q_heads, model.num_q_heads);
  }
}

TEST(ModelShape, an_unknown_name_lists_the_known_ones) {
  const Status status = find_model("gpt-2").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("llama-3.2-1b"), std::string::npos);
}

TEST(ModelShape, tensor_parallelism_divides_heads_and_replicates_few_key_heads) {
  const ModelShape qwen = *find_model("qwen3-32b");
  for (const int32_t ranks : {1, 2, 4, 8}) {
    const auto share = tensor_parallel_share(qwen, ranks);
    ASSERT_TRUE(share.ok()) << ranks;
    EXPECT_EQ(share->num_q_heads, 64 / ranks);
    EXPECT_EQ(share->num_kv_heads, 8 / ranks);
  }
  EXPECT_EQ(tensor_parallel_share(qwen, 16)->num_kv_heads, 1);
  EXPECT_EQ(tensor_parallel_share(qwen, 3).status().field(), "tp");
  EXPECT_EQ(tensor_parallel_share(qwen, 0).status().field(), "tp");
}

TEST(ModelShape, windows_alternate_and_hold_as_many_keys_as_they_say) {
  const ModelShape gpt = *find_model("gpt-oss-20b");
  EXPECT_EQ(gpt.layer_kind(0), 1);
  EXPECT_EQ(gpt.layer_kind(1), 0);
  EXPECT_EQ(gpt.mask(1).nodes()[0].left, 127);
  EXPECT_EQ(gpt.mask(1).nodes()[0].right, 0);
  EXPECT_EQ(gpt.mask(0).nodes()[0].kind, MaskKind::kCausal);
  EXPECT_EQ(find_model("llama-3.1-8b")->layer_kind(0), 0);
}

TEST(ModelShape, scales_are_those_of_the_models) {
  EXPECT_FLOAT_EQ(find_model("llama-3.2-1b")->scale(), 0.125F);
  EXPECT_FLOAT_EQ(find_model("gemma-2-9b")->scale(), 0.0625F);
}

TEST(ModelShape, bad_flags_name_their_field) {
  ModelShape model{
      .name = "custom", .num_q_heads = 6, .num_kv_heads = 4, .head_dim = 64, .num_layers = 1};
  EXPECT_EQ(validate(model).field(), "q-heads");
  model.num_kv_heads = 3;
  EXPECT_TRUE(validate(model).ok());
  model.head_dim = 60;
  EXPECT_EQ(validate(model).field(), "head-dim");
  model.head_dim = 64;
  model.softcap = -1;
  EXPECT_EQ(validate(model).field(), "softcap");
}

}  // namespace
}  // namespace pagoda::replay
