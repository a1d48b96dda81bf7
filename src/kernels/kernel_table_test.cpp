// Every row of the table launches the kernel of its own shape and of the requested variant. A
// launcher that only records the kernel type shows it.
#include "kernels/common/kernel_table.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/common/make_instance.hpp"
#include "kernels/families.hpp"
#include "kernels/mha_gfx942/kernel_of.hpp"
#include "kernels/mha_simt/kernel_of.hpp"
#include "kernels/mha_sm100/kernel_of.hpp"
#include "kernels/mha_sm100_d512/kernel_of.hpp"
#include "kernels/mha_sm80/kernel_of.hpp"
#include "kernels/mha_sm90/kernel_of.hpp"
#include "kernels/mha_sm90_decode/kernel_of.hpp"

namespace pagoda::kernels {
namespace {

template <class T>
inline constexpr const char* kTypeName = "f16";
template <>
inline constexpr const char* kTypeName<arch::BFloat16> = "bf16";
template <>
inline constexpr const char* kTypeName<arch::Float8E4M3> = "f8e4m3";

std::string dims_name(int qk, int vo) {
  return qk == vo ? std::to_string(qk) : std::to_string(qk) + "x" + std::to_string(vo);
}
const char* scores_name(ScoreClass scores) {
  switch (scores) {
    case ScoreClass::kPlain: return " plain";
    case ScoreClass::kGeneral: return " general";
    case ScoreClass::kCapped: return " capped";
  }
  return "?";
}

// A kernel by its own template arguments: the name that its row must have, and the variant.
template <class T, int qk, int vo, mha_sm90::RowKind rows, ScoreClass scores, LoadKind load>
std::string describe(
    std::type_identity<mha_sm90::Kernel<mha_sm90::Instance<T, qk, vo, rows, scores, load>>>) {
  const char* kind = load == LoadKind::kTmaWiden                 ? " widened"
                     : rows == mha_sm90::RowKind::kTokens        ? " tokens"
                     : rows == mha_sm90::RowKind::kTallTokens    ? " tall tokens"
                     : rows == mha_sm90::RowKind::kShortTokens   ? " short tokens"
                     : rows == mha_sm90::RowKind::kSingleTokens  ? " single tokens"
                     : rows == mha_sm90::RowKind::kGroupTokens   ? " group tokens"
                     : rows == mha_sm90::RowKind::kStreamKTokens ? " stream-K tokens"
                     : rows == mha_sm90::RowKind::kMixedTokens   ? " mixed tokens"
                     : load == LoadKind::kTma                    ? " packed"
                     : load == LoadKind::kGather                 ? " gathered"
                                                                 : " fp8";
  return "sm90.d" + dims_name(qk, vo) + "." + kTypeName<T> + kind + scores_name(scores);
}
template <class T, class Out, int depth, ScoreClass scores, int ctas>
std::string describe(
    std::type_identity<mha_sm100::SM100MHA2Q<mha_sm100::Instance<T, Out, depth, scores, ctas>>>) {
  return std::string("sm100.") + (ctas == 2 ? "pair.d" : "d") + dims_name(depth, depth) + "." +
         kTypeName<T> + scores_name(scores);
}
template <class T, class Out, int depth, ScoreClass scores>
std::string describe(
    std::type_identity<
        mha_sm100_d512::SM100MHAD512<mha_sm100_d512::Instance<T, Out, depth, scores>>>) {
  return "sm100.d" + dims_name(depth, depth) + "." + kTypeName<T> + scores_name(scores);
}

// Those on KVBuffer, by the tile that they are compiled for.
template <class Config, int least_arch>
std::string describe(std::type_identity<kv_buffer::Kernel<Config, least_arch>>) {
  constexpr kv_buffer::TileConfig tile = Config::tile;
  const char* staging = tile.staging == kv_buffer::Staging::kAsync         ? " async"
                        : tile.staging == kv_buffer::Staging::kAsyncNarrow ? " narrow"
                        : tile.staging == kv_buffer::Staging::kAsyncFp8    ? " fp8"
                        : tile.staging == kv_buffer::Staging::kAsyncLatent ? " latent"
                        : tile.staging == kv_buffer::Staging::kVectors     ? " vectors"
                                                                           : " registers";
  const char* rows = tile.decodes_general         ? " decode general"
                     : tile.has_tokens            ? " decode tokens"
                     : tile.is_decode             ? " decode"
                     : tile.is_token_generation() ? " token"
                                                  : " prefill";
  const std::string chip = least_arch == 80 ? "sm80" : least_arch == 90 ? "sm90_decode" : "gfx942";
  const std::string cluster = tile.cluster > 1 ? " by " + std::to_string(tile.cluster) : "";
  return chip + ".d" + dims_name(tile.depth_qk, tile.depth_vo) + "." +
         (tile.q_bytes == 1 ? "f8e4m3" : kTypeName<typename Config::T>)+rows + staging +
         scores_name(tile.scores) + cluster;
}

template <class Config, int least_arch>
std::string describe(std::type_identity<mha_simt::Kernel<Config, least_arch>>) {
  constexpr mha_simt::TileConfig tile = Config::tile;
  return "simt.d" + dims_name(tile.depth_qk, tile.depth_vo) +
         (tile.warp_size == 64 && least_arch == 942  ? " amd"
          : tile.warp_size == 32 && least_arch == 80 ? " nvidia"
                                                     : " wrong");
}

// Launches nothing and notes which kernel would have been.
struct Recorder {
  using Context = std::string;
  template <class Family, size_t shape, size_t variant>
  static void launch(int32_t /*ctas*/, const LaunchArguments& /*arguments*/, std::string& noted) {
    noted = describe(std::type_identity<typename KernelOf<Family, shape, variant>::type>());
  }
};

template <class Family, size_t... shape>
std::vector<LaunchFunctions<Recorder, Family>> all_instances(std::index_sequence<shape...>) {
  return {instance<Recorder, Family, shape>()...};
}

// Hopper loads K and V of e4m3 queries by TMA as they are, or not at all, and has no registers to
// widen them under general scores at d256. Its tall row tiles are of d96 and d128, of e4m3 queries
// d64, its short ones of d64 and d128, those of one consumer and of equal shares of these and d256,
// those of one consumer of e4m3 queries, too.
// Latent attention has packed rows alone, and decoding. Other decoding on KVBuffer is of head dims
// up to 256, the same of K and V, of e4m3 queries over fp8 caches alone.
bool is_left_out(std::string_view shape, std::string_view variant) {
  if (variant.starts_with(" decode") && shape.starts_with("sm80.")) {
    return shape.starts_with("sm80.d192x128.") || shape.starts_with("sm80.d576x512.");
  }
  if (shape.starts_with("sm90_decode.")) {
    const bool is_fp8 = variant.find(" fp8 ") != variant.npos;
    const bool is_latent = variant.find(" latent ") != variant.npos;
    if (is_latent || shape.starts_with("sm90_decode.d576x512.")) {
      return !is_latent || !shape.starts_with("sm90_decode.d576x512.");
    }
    return !is_fp8 && shape.ends_with(".f8e4m3");
  }
  if (!shape.starts_with("sm90.")) return false;
  if (shape.starts_with("sm90.d576x512.")) return variant != " packed plain";
  if (variant.starts_with(" tall")) {
    constexpr std::string_view kTall[] = {"sm90.d96.bf16", "sm90.d128.bf16", "sm90.d96.f16",
                                          "sm90.d128.f16", "sm90.d64.f8e4m3"};
    return std::ranges::find(kTall, shape) == std::end(kTall);
  }
  if (variant.starts_with(" group")) return !shape.ends_with(".f8e4m3");
  const bool has_wide = variant.starts_with(" single") || variant.starts_with(" stream-K");
  if (has_wide || variant.starts_with(" short")) {
    if (shape.ends_with(".f8e4m3")) return true;
    return !(shape.starts_with("sm90.d64.") || shape.starts_with("sm90.d128.") ||
             (has_wide && shape.starts_with("sm90.d256.")));
  }
  if (shape.ends_with(".f8e4m3")) {
    return variant == " tokens capped" ||
           (!variant.starts_with(" tokens") && !variant.starts_with(" packed"));
  }
  return shape.starts_with("sm90.d256.") && variant == " widened general";
}

// What the variants of each shape launch.
template <class Family>
void expect_launches(const std::vector<std::string>& variants) {
  constexpr size_t kCount = std::size(Family::kShapes);
  const auto instances = all_instances<Family>(std::make_index_sequence<kCount>());
  ASSERT_EQ(variants.size(), Family::kNumVariants);
  for (size_t i = 0; i < kCount; ++i) {
    for (size_t variant = 0; variant < variants.size(); ++variant) {
      const bool has_kernel = instances[i][variant] != nullptr;
      EXPECT_EQ(has_kernel, !is_left_out(Family::kShapes[i].name, variants[variant]))
          << Family::kShapes[i].name << variants[variant];
      if (!has_kernel) continue;
      std::string noted;
      instances[i][variant](1, {}, noted);
      std::string wanted = variants[variant];
      // No prefill tile on KVBuffer: token generation in its place.
      const std::string_view shape = Family::kShapes[i].name;
      const bool is_prefill = wanted.starts_with(" prefill");
      if (shape.find("d576x512") != std::string_view::npos && is_prefill) {
        wanted.replace(0, wanted.find(' ', 1), " token");
      }
      EXPECT_EQ(noted, Family::kShapes[i].name + wanted);
    }
  }
}

TEST(KernelTable, instances_of_mha_sm90_are_what_their_names_say) {
  expect_launches<mha_sm90::Family>(
      {" tokens plain", " tokens general", " packed plain", " packed general", " gathered plain",
       " gathered general", " fp8 plain", " fp8 general", " widened plain", " widened general",
       " tall tokens plain", " short tokens plain", " single tokens plain", " group tokens plain",
       " stream-K tokens plain", " mixed tokens plain", " tokens capped"});
  using enum ScoreClass;
  using enum LoadKind;
  EXPECT_EQ(mha_sm90::variant_index({mha_sm90::RowKind::kPacked, kGather, kGeneral}), 5U);
  EXPECT_ANY_THROW((void)mha_sm90::variant_index({mha_sm90::RowKind::kTokens, kGather, kPlain}));
}
TEST(KernelTable, instances_of_mha_sm100_are_what_their_names_say) {
  expect_launches<mha_sm100::Family>({" plain", " general"});
}
TEST(KernelTable, instances_of_mha_sm100_d512_are_what_their_names_say) {
  expect_launches<mha_sm100_d512::Family>({" plain", " general"});
}

TEST(KernelTable, instances_of_mha_sm80_are_what_their_names_say) {
  expect_launches<mha_sm80::Family>({" prefill async plain", " prefill async general",
                                     " prefill registers general", " token async plain",
                                     " token async general", " token registers general",
                                     " decode async plain", " decode narrow plain"});
}

TEST(KernelTable, instances_of_mha_sm90_decode_are_what_their_names_say) {
  expect_launches<mha_sm90_decode::Family>({" decode async plain",
                                            " decode async plain by 2",
                                            " decode async plain by 8",
                                            " decode tokens async plain",
                                            " decode tokens async plain by 2",
                                            " decode tokens async plain by 8",
                                            " decode narrow plain",
                                            " decode narrow plain by 2",
                                            " decode narrow plain by 8",
                                            " decode tokens narrow plain",
                                            " decode tokens narrow plain by 2",
                                            " decode tokens narrow plain by 8",
                                            " decode general async plain",
                                            " decode general async plain by 2",
                                            " decode general async plain by 8",
                                            " decode general narrow plain",
                                            " decode general narrow plain by 2",
                                            " decode general narrow plain by 8",
                                            " decode fp8 plain",
                                            " decode fp8 plain by 2",
                                            " decode fp8 plain by 8",
                                            " decode tokens fp8 plain",
                                            " decode tokens fp8 plain by 2",
                                            " decode tokens fp8 plain by 8",
                                            " decode latent plain",
                                            " decode latent plain by 2",
                                            " decode latent plain by 4",
                                            " decode latent plain by 8",
                                            " decode tokens latent plain",
                                            " decode tokens latent plain by 2",
                                            " decode tokens latent plain by 4",
                                            " decode tokens latent plain by 8"});
}

TEST(KernelTable, instances_of_mha_gfx942_are_what_their_names_say) {
  expect_launches<mha_gfx942::Family>({" prefill vectors plain", " prefill vectors general",
                                       " prefill registers general", " token vectors plain",
                                       " token vectors general", " token registers general"});
}

TEST(KernelTable, instances_of_mha_simt_are_what_their_names_say) {
  expect_launches<mha_simt::Nvidia>({" nvidia"});
  expect_launches<mha_simt::Amd>({" amd"});
}

TEST(KernelTable, an_instance_is_found_by_its_name) {
  for (size_t i = 0; i < std::size(mha_sm90::kShapes); ++i) {
    EXPECT_EQ(shape_index(mha_sm90::kShapes, mha_sm90::kShapes[i].name), i);
  }
  EXPECT_ANY_THROW((void)shape_index(mha_sm90::kShapes, "sm90.d80.bf16"));
}

// A machine of which a family has rows, one without, and one that holds no code.
template <int32_t arch, bool holds_code>
struct TestMachine {
  using Launcher = Recorder;
  static constexpr const char* kBackend = "test:recorder";
  static constexpr bool serves(const Archs& archs) { return archs.run_on(arch); }
  static constexpr bool has_code(const Archs& /*archs*/) { return holds_code; }
  static bool can_run(const Archs& /*archs*/, const core::Problem& /*problem*/) {
    return holds_code;
  }
  static std::string unsupported_reason(const Archs& /*archs*/, const core::Problem& /*problem*/) {
    return "no code";
  }
  static int32_t num_sms(const core::Problem& /*problem*/, int32_t fewest) { return fewest; }
  static std::string make_context(const core::Kernel& /*row*/, const core::KernelPlan& /*plan*/,
                                  const core::Problem& /*problem*/,
                                  std::span<std::byte> /*workspace*/,
                                  const core::RunContext& /*context*/) {
    return {};
  }
  static void finish(const std::string& /*noted*/) {}
};

std::vector<std::string> names(std::span<const core::Kernel> rows) {
  std::vector<std::string> all;
  for (const core::Kernel& row : rows) all.emplace_back(row.name);
  return all;
}

TEST(KernelTable, has_the_rows_of_the_families_for_its_machine_in_their_order) {
  std::vector<std::string> hopper, blackwell, every;
  for (const auto& shape : mha_sm90::kShapes) hopper.emplace_back(shape.name);
  for (const auto& shape : mha_sm90_decode::kShapes) hopper.emplace_back(shape.name);
  for (const auto& shape : mha_sm100::kShapes) blackwell.emplace_back(shape.name);
  for (const auto& shape : mha_sm100_d512::kShapes) blackwell.emplace_back(shape.name);
  for (const auto& shape : mha_sm80::kShapes) every.emplace_back(shape.name);
  for (const auto& shape : mha_simt::kShapes) every.emplace_back(shape.name);
  hopper.insert(hopper.end(), every.begin(), every.end());
  blackwell.insert(blackwell.end(), every.begin(), every.end());
  const KernelTable<TestMachine<90, true>> sm90{Families()};
  EXPECT_EQ(names(sm90.kernels()), hopper);
  const KernelTable<TestMachine<100, true>> sm100{Families()};
  EXPECT_EQ(names(sm100.kernels()), blackwell);
  const KernelTable<TestMachine<103, false>> sm103{Families()};
  EXPECT_EQ(names(sm103.kernels()), blackwell);
  const KernelTable<TestMachine<86, true>> sm86{Families()};
  EXPECT_EQ(names(sm86.kernels()), every);
  const KernelTable<TestMachine<75, true>> sm75{Families()};
  EXPECT_EQ(sm75.kernels().size(), 0U);
}

TEST(KernelTable, a_machine_without_code_says_so) {
  const KernelTable<TestMachine<90, false>> table{Families()};
  for (const core::Kernel& row : table.kernels()) {
    EXPECT_EQ(core::unsupported_reason(row, {}, {}), "no code");
  }
}

}  // namespace
}  // namespace pagoda::kernels
