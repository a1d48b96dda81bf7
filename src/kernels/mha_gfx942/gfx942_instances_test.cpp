// Every instance fits on a compute unit: shared memory, the banks of its fragments, its stages.
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/kv_buffer/family.hpp"
#include "kernels/common/kv_buffer/storage.hpp"
#include "kernels/mha_gfx942/instances.hpp"
#include "kernels/mha_gfx942/kernel_of.hpp"
#include "testing/material/lds_banks.hpp"

namespace pagoda::mha_gfx942 {
namespace {

constexpr size_t kLdsBytes = 64 << 10;

// What the tests ask of an instance. A table, because assertions of every instance's own type take
// three times as long to compile.
struct Instance {
  std::string name;
  TileConfig tile;
  size_t shared_bytes = 0;
  bool token_gen = false;
  size_t load_tile_bytes = 0, stage_vectors = 0;
  int k_buffers = 0, v_buffers = 0;  // tiles in shared memory
  int worst_k_read = 0, worst_q_read = 0, worst_p_read = 0;
};

template <size_t shape, size_t variant>
Instance describe() {
  using Config = kernels::kv_buffer::InstanceOf<Chip, shape, variant>;
  using Ops = kernels::kv_buffer::Operands<Config>;
  using material::worst_fragment_read;
  constexpr TileConfig tile = Config::tile;
  Instance instance{
      .name = kShapes[shape].name + std::string(" variant ") + std::to_string(variant),
      .tile = tile,
      .shared_bytes = sizeof(kernels::kv_buffer::Storage<Config>),
      .token_gen = Ops::token_gen,
      .load_tile_bytes = sizeof(typename Ops::K::LoadTile),
      .stage_vectors = static_cast<size_t>(Ops::K::stage_vectors),
      .k_buffers = Ops::K::SharedIterator::count,
      .v_buffers = Ops::V::SharedIterator::count,
      .worst_k_read = worst_fragment_read(Ops::K::smem_layout, tile.mma.N)};
  if constexpr (Ops::token_gen) {
    instance.worst_q_read = worst_fragment_read(Ops::q_layout, tile.mma.M);
    instance.worst_p_read = worst_fragment_read(Ops::p_layout, tile.mma.M);
  }
  return instance;
}

// Every variant of every shape.
const std::vector<Instance>& all_instances() {
  static const std::vector<Instance> instances =
      []<size_t... index>(std::index_sequence<index...>) {
    return std::vector<Instance>{describe<index / kVariants.size(), index % kVariants.size()>()...};
  }
  (std::make_index_sequence<std::size(kShapes) * kVariants.size()>());
  return instances;
}

TEST(Instances, fit_64_kb_of_shared_memory) {
  for (const Instance& instance : all_instances()) {
    EXPECT_LE(instance.shared_bytes, kLdsBytes) << instance.name;
    EXPECT_LE(instance.shared_bytes * static_cast<size_t>(instance.tile.ctas_per_sm), kLdsBytes)
        << instance.name;
  }
}

TEST(Instances, of_depths_up_to_128_fit_twice) {
  for (const Instance& instance : all_instances()) {
    const TileConfig& tile = instance.tile;
    if (tile.depth_qk > 128) continue;
    EXPECT_LE(2 * instance.shared_bytes, kLdsBytes) << instance.name;
    // Score mods of prefill need the registers of a CTA alone.
    const bool is_alone = !tile.is_token_generation() && tile.scores == ScoreClass::kGeneral;
    EXPECT_EQ(tile.ctas_per_sm, is_alone ? 1 : 2) << instance.name;
  }
}

TEST(Instances, are_four_waves_of_64_lanes) {
  for (const Instance& instance : all_instances()) {
    EXPECT_EQ(instance.tile.warp_size, 64) << instance.name;
    EXPECT_EQ(instance.tile.threads(), 256) << instance.name;
  }
}

// A step's tile is stored while slower waves still multiply the step before; a register stage is a
// constant of its step.
TEST(Instances, have_two_tiles_and_whole_cycles_of_stages) {
  for (const Instance& instance : all_instances()) {
    const TileConfig& tile = instance.tile;
    EXPECT_EQ(tile.k_tiles, 2) << instance.name;
    EXPECT_EQ(tile.v_tiles, 2) << instance.name;
    EXPECT_GE(tile.num_stages, 1) << instance.name;
    EXPECT_EQ(tile.k_steps() * tile.k_BK, tile.depth_qk) << instance.name;
    EXPECT_EQ(tile.v_steps() * tile.v_BK, tile.BN) << instance.name;
    EXPECT_EQ(tile.k_steps() % tile.num_stages, 0) << instance.name;
    EXPECT_EQ(tile.v_steps() % tile.num_stages, 0) << instance.name;
    EXPECT_EQ(instance.load_tile_bytes,
              static_cast<size_t>(tile.num_stages) * instance.stage_vectors * 16)
        << instance.name;
    EXPECT_EQ(instance.k_buffers, tile.k_tiles) << instance.name;
    EXPECT_EQ(instance.v_buffers, tile.v_tiles) << instance.name;
  }
}

TEST(Instances, read_k_q_and_p_without_bank_conflicts) {
  for (const Instance& instance : all_instances()) {
    EXPECT_EQ(instance.worst_k_read, 1) << instance.name;
    if (!instance.token_gen) continue;
    EXPECT_EQ(instance.worst_q_read, 1) << instance.name;
    EXPECT_EQ(instance.worst_p_read, 1) << instance.name;
  }
}

}  // namespace
}  // namespace pagoda::mha_gfx942
