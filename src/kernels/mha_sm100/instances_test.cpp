// Every instance fits on a multiprocessor: shared memory, tensor memory, registers.
#include "kernels/mha_sm100/instances.hpp"

#include <gtest/gtest.h>

#include "kernels/mha_sm100/storage.hpp"

namespace pagoda::mha_sm100 {
namespace {

template <class Config>
class Instances : public testing::Test {};

template <class T, class Out, int depth>
using Plain = Instance<T, Out, depth, ScoreClass::kPlain>;
template <class T, class Out, int depth>
using General = Instance<T, Out, depth, ScoreClass::kGeneral>;
using All = testing::Types<
    Plain<arch::BFloat16, arch::BFloat16, 64>, General<arch::BFloat16, arch::BFloat16, 64>,
    Plain<arch::BFloat16, arch::BFloat16, 128>, General<arch::BFloat16, arch::BFloat16, 128>,
    Plain<arch::Half, arch::Half, 64>, General<arch::Half, arch::Half, 64>,
    Plain<arch::Half, arch::Half, 128>, General<arch::Half, arch::Half, 128>,
    Plain<arch::Float8E4M3, arch::BFloat16, 64>, General<arch::Float8E4M3, arch::BFloat16, 64>,
    Plain<arch::Float8E4M3, arch::BFloat16, 128>, General<arch::Float8E4M3, arch::BFloat16, 128>>;
TYPED_TEST_SUITE(Instances, All, );

TYPED_TEST(Instances, fits_a_multiprocessor) {
  constexpr TileConfig tile = TypeParam::tile;
  EXPECT_EQ(tile.fault(), nullptr);
  EXPECT_LE(sizeof(Storage<TypeParam>), size_t{227 * 1024});
  EXPECT_LE(tile.tmem().end, 512);
  // Two softmax warpgroups, one of correction warps, one of single-warp roles.
  EXPECT_EQ(
      kWarpgroup * (2 * tile.softmax_registers + tile.correction_registers + tile.other_registers),
      65536);
}

TYPED_TEST(Instances, register_budgets_are_valid_for_setmaxnreg) {
  constexpr TileConfig tile = TypeParam::tile;
  constexpr int at_launch = 65536 / kThreads;
  for (const int registers :
       {tile.softmax_registers, tile.correction_registers, tile.other_registers}) {
    EXPECT_EQ(registers % 8, 0);
    EXPECT_GE(registers, 24);
    EXPECT_LE(registers, 256);
  }
  // setmaxnreg.inc of the softmax warps waits for the registers that the others release.
  EXPECT_GE(tile.softmax_registers, at_launch);
  EXPECT_LE(tile.correction_registers, at_launch);
  EXPECT_LE(tile.other_registers, at_launch);
}

}  // namespace
}  // namespace pagoda::mha_sm100
