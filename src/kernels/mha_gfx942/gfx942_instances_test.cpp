// Every instance fits on a compute unit: shared memory, the banks of its fragments, its stages.
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "kernels/common/kv_buffer/family.hpp"
#include "kernels/common/kv_buffer/storage.hpp"
#include "kernels/mha_gfx942/instances.hpp"
#include "kernels/mha_gfx942/kernel_of.hpp"
#include "testing/material/lds_banks.hpp"

namespace pagoda::mha_gfx942 {
namespace {

constexpr size_t kLdsBytes = 64 << 10;

// check<Config>(name) for every variant of every shape.
template <size_t shape, size_t variant, class Check>
void check_variant(const Check& check) {
  check.template operator()<kernels::kv_buffer::InstanceOf<Chip, shape, variant>>(
      kShapes[shape].name + std::string(" variant ") + std::to_string(variant));
}
template <class Check>
void for_each_instance(const Check& check) {
  [&]<size_t... index>(std::index_sequence<index...>) {
    (check_variant<index / kVariants.size(), index % kVariants.size()>(check), ...);
  }
  (std::make_index_sequence<std::size(kShapes) * kVariants.size()>());
}

template <class Config>
inline constexpr size_t kBytes = sizeof(kernels::kv_buffer::Storage<Config>);

TEST(Instances, fit_64_kb_of_shared_memory) {
  for_each_instance([]<class Config>(const std::string& name) {
    EXPECT_LE(kBytes<Config>, kLdsBytes) << name;
    EXPECT_LE(kBytes<Config> * static_cast<size_t>(Config::tile.ctas_per_sm), kLdsBytes) << name;
  });
}

TEST(Instances, of_depths_up_to_128_fit_twice) {
  for_each_instance([]<class Config>(const std::string& name) {
    if (Config::tile.depth_qk > 128) return;
    EXPECT_LE(2 * kBytes<Config>, kLdsBytes) << name;
    // Score mods of prefill need the registers of a CTA alone.
    constexpr bool is_alone =
        !Config::tile.is_token_generation() && Config::tile.scores == ScoreClass::kGeneral;
    EXPECT_EQ(Config::tile.ctas_per_sm, is_alone ? 1 : 2) << name;
  });
}

TEST(Instances, are_four_waves_of_64_lanes) {
  for_each_instance([]<class Config>(const std::string& name) {
    EXPECT_EQ(Config::tile.warp_size, 64) << name;
    EXPECT_EQ(Config::tile.threads(), 256) << name;
  });
}

// A step's tile is stored while slower waves still multiply the step before; a register stage is a
// constant of its step.
TEST(Instances, have_two_tiles_and_whole_cycles_of_stages) {
  for_each_instance([]<class Config>(const std::string& name) {
    constexpr TileConfig tile = Config::tile;
    EXPECT_EQ(tile.k_tiles, 2) << name;
    EXPECT_EQ(tile.v_tiles, 2) << name;
    EXPECT_GE(tile.num_stages, 1) << name;
    EXPECT_EQ(tile.k_steps() * tile.k_BK, tile.depth_qk) << name;
    EXPECT_EQ(tile.v_steps() * tile.v_BK, tile.BN) << name;
    EXPECT_EQ(tile.k_steps() % tile.num_stages, 0) << name;
    EXPECT_EQ(tile.v_steps() % tile.num_stages, 0) << name;
    using Ops = kernels::kv_buffer::Operands<Config>;
    EXPECT_EQ(sizeof(typename Ops::K::LoadTile),
              static_cast<size_t>(tile.num_stages * Ops::K::stage_vectors) * 16)
        << name;
    EXPECT_EQ(Ops::K::SharedIterator::count, tile.k_tiles) << name;
    EXPECT_EQ(Ops::V::SharedIterator::count, tile.v_tiles) << name;
  });
}

TEST(Instances, read_k_q_and_p_without_bank_conflicts) {
  using material::worst_fragment_read;
  for_each_instance([]<class Config>(const std::string& name) {
    using Ops = kernels::kv_buffer::Operands<Config>;
    constexpr TileConfig tile = Config::tile;
    EXPECT_EQ(worst_fragment_read(Ops::K::smem_layout, tile.mma.N), 1) << name;
    if (!Ops::token_gen) return;
    EXPECT_EQ(worst_fragment_read(Ops::q_layout, tile.mma.M), 1) << name;
    EXPECT_EQ(worst_fragment_read(Ops::p_layout, tile.mma.M), 1) << name;
  });
}

}  // namespace
}  // namespace pagoda::mha_gfx942
