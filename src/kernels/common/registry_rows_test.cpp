// Rows carry their own shape: whatever the order of families, a row launches instances of its own types.
#include "kernels/common/registry_rows.hpp"

#include <algorithm>
#include <gtest/gtest.h>

#include "kernels/mha_sm100/registry_rows.hpp"
#include "kernels/mha_sm100_d512/registry_rows.hpp"
#include "kernels/mha_sm90/registry_rows.hpp"

namespace pagoda::kernels {
namespace {

using arch::BFloat16, arch::Float8E4M3, arch::Half;

// What an instance is compiled for, from its own template arguments.
struct Compiled {
  DType dtype = DType::kF32;
  int depth_qk = 0, depth_vo = 0, ctas = 0;
  ScoreClass scores = ScoreClass::kPlain;

  bool operator==(const Compiled&) const = default;
};

// The padded depth of an fp8 cache's tiles is another one: that of the template arguments is meant.
template <class T, int qk, int vo, mha_sm90::RowKind rows, ScoreClass scores, LoadKind load>
Compiled compiled(
    std::type_identity<mha_sm90::Kernel<mha_sm90::Instance<T, qk, vo, rows, scores, load>>>) {
  return {kDType<T>, qk, vo, 1, scores};
}
template <class T, class Out, int depth, ScoreClass scores, int ctas>
Compiled compiled(
    std::type_identity<mha_sm100::SM100MHA2Q<mha_sm100::Instance<T, Out, depth, scores, ctas>>>) {
  return {kDType<T>, depth, depth, ctas, scores};
}
template <class T, class Out, int depth, ScoreClass scores>
Compiled compiled(std::type_identity<
                  mha_sm100_d512::SM100MHADeep<mha_sm100_d512::Instance<T, Out, depth, scores>>>) {
  return {kDType<T>, depth, depth, 1, scores};
}

// Launches nothing and notes what would have been.
struct Recorder {
  using Context = Compiled;
  template <class K, class Arguments>
  static void launch(int32_t /*ctas*/, const Arguments& /*arguments*/, Compiled& noted) {
    noted = compiled(std::type_identity<K>());
  }
};

struct RecordingMachine {
  using Launcher = Recorder;
  static constexpr const char* kBackend = "test:recorder";
  static std::string unsupported_reason(std::span<const int32_t> /*archs*/,
                                        const core::Problem& /*problem*/) {
    return {};
  }
  static int32_t num_sms(const core::Problem& /*problem*/, int32_t fewest) { return fewest; }
  static Compiled make_context(const core::Kernel& /*row*/, const core::KernelPlan& /*plan*/,
                               const core::Problem& /*problem*/, std::span<std::byte> /*workspace*/,
                               const core::RunContext& /*context*/) {
    return {};
  }
  static void finish(const Compiled& /*noted*/) {}
};

std::vector<mha_sm90::Family<Recorder>> sm90_families() {
  using mha_sm90::make_family;
  return {make_family<Recorder, BFloat16, 64, 64>(),   make_family<Recorder, BFloat16, 96, 96>(),
          make_family<Recorder, BFloat16, 128, 128>(), make_family<Recorder, BFloat16, 192, 128>(),
          make_family<Recorder, BFloat16, 256, 256>(), make_family<Recorder, Half, 64, 64>(),
          make_family<Recorder, Half, 96, 96>(),       make_family<Recorder, Half, 128, 128>(),
          make_family<Recorder, Half, 192, 128>(),     make_family<Recorder, Half, 256, 256>()};
}
std::vector<mha_sm100::Family<Recorder>> sm100_families() {
  using mha_sm100::make_family;
  return {make_family<Recorder, BFloat16, BFloat16, 64>(),
          make_family<Recorder, BFloat16, BFloat16, 128>(),
          make_family<Recorder, Half, Half, 64>(),
          make_family<Recorder, Half, Half, 128>(),
          make_family<Recorder, Float8E4M3, BFloat16, 64>(),
          make_family<Recorder, Float8E4M3, BFloat16, 128>(),
          make_family<Recorder, BFloat16, BFloat16, 128, 2>(),
          make_family<Recorder, Half, Half, 128, 2>(),
          make_family<Recorder, Float8E4M3, BFloat16, 128, 2>()};
}
std::vector<mha_sm100_d512::Family<Recorder>> sm100_deep_families() {
  using mha_sm100_d512::make_family;
  return {make_family<Recorder, BFloat16, BFloat16, 256>(),
          make_family<Recorder, BFloat16, BFloat16, 512>(),
          make_family<Recorder, Half, Half, 256>(),
          make_family<Recorder, Half, Half, 512>(),
          make_family<Recorder, Float8E4M3, BFloat16, 256>(),
          make_family<Recorder, Float8E4M3, BFloat16, 512>()};
}

// "sm100.pair.d128.bf16", from the fields alone.
std::string name_of(const char* folder, bool is_pair, int qk, int vo, DType dtype) {
  const std::string dims =
      qk == vo ? std::to_string(qk) : std::to_string(qk) + "x" + std::to_string(vo);
  const char* type = dtype == DType::kBF16 ? "bf16" : dtype == DType::kF16 ? "f16" : "f8e4m3";
  return std::string(folder) + (is_pair ? ".pair.d" : ".d") + dims + "." + type;
}

template <class Function>
void expect_launches(Function function, const Compiled& wanted) {
  Compiled noted;
  function(1, {}, noted);
  EXPECT_EQ(noted, wanted);
}

TEST(RegistryRows, of_sm90_launch_instances_of_their_own_shape_in_any_order_of_families) {
  std::vector<mha_sm90::Family<Recorder>> families = sm90_families();
  std::reverse(families.begin(), families.end());
  const RegistryRows<mha_sm90::RowFunctions, RecordingMachine> rows(families);
  ASSERT_EQ(rows.kernels().size(), std::size(mha_sm90::kShapes));
  for (size_t i = 0; i < rows.kernels().size(); ++i) {
    const mha_sm90::Family<Recorder>& family = rows.families()[i];
    const mha_sm90::Shape& shape = family.shape;
    SCOPED_TRACE(shape.name);
    EXPECT_STREQ(rows.kernels()[i].name, mha_sm90::kShapes[i].name);
    EXPECT_EQ(shape.name, name_of("sm90", false, shape.depth_qk, shape.depth_vo, shape.dtype));
    for (const ScoreClass scores : {ScoreClass::kPlain, ScoreClass::kGeneral}) {
      const Compiled wanted{shape.dtype, shape.depth_qk, shape.depth_vo, 1, scores};
      const auto s = static_cast<size_t>(scores);
      for (const auto function :
           {family.tokens[s], family.packed[s], family.gathered[s], family.fp8[s]}) {
        expect_launches(function, wanted);
      }
    }
    EXPECT_EQ(rows.kernels()[i].data, &family);
  }
}

TEST(RegistryRows, of_sm100_launch_instances_of_their_own_shape_in_any_order_of_families) {
  std::vector<mha_sm100::Family<Recorder>> families = sm100_families();
  std::reverse(families.begin(), families.end());
  const RegistryRows<mha_sm100::RowFunctions, RecordingMachine> rows(families);
  ASSERT_EQ(rows.kernels().size(), std::size(mha_sm100::kShapes));
  for (size_t i = 0; i < rows.kernels().size(); ++i) {
    const mha_sm100::Family<Recorder>& family = rows.families()[i];
    const mha_sm100::Shape& shape = family.shape;
    SCOPED_TRACE(shape.name);
    EXPECT_STREQ(rows.kernels()[i].name, mha_sm100::kShapes[i].name);
    EXPECT_EQ(shape.name, name_of("sm100", shape.ctas == 2, shape.depth, shape.depth, shape.dtype));
    for (const ScoreClass scores : {ScoreClass::kPlain, ScoreClass::kGeneral}) {
      expect_launches(family.functions[static_cast<size_t>(scores)],
                      {shape.dtype, shape.depth, shape.depth, shape.ctas, scores});
    }
  }
}

TEST(RegistryRows, of_sm100_deep_launch_instances_of_their_own_shape_in_any_order_of_families) {
  std::vector<mha_sm100_d512::Family<Recorder>> families = sm100_deep_families();
  std::reverse(families.begin(), families.end());
  const RegistryRows<mha_sm100_d512::RowFunctions, RecordingMachine> rows(families);
  ASSERT_EQ(rows.kernels().size(), std::size(mha_sm100_d512::kShapes));
  for (size_t i = 0; i < rows.kernels().size(); ++i) {
    const mha_sm100_d512::Family<Recorder>& family = rows.families()[i];
    const mha_sm100_d512::Shape& shape = family.shape;
    SCOPED_TRACE(shape.name);
    EXPECT_STREQ(rows.kernels()[i].name, mha_sm100_d512::kShapes[i].name);
    EXPECT_EQ(shape.name, name_of("sm100", false, shape.depth, shape.depth, shape.dtype));
    for (const ScoreClass scores : {ScoreClass::kPlain, ScoreClass::kGeneral}) {
      expect_launches(family.functions[static_cast<size_t>(scores)],
                      {shape.dtype, shape.depth, shape.depth, 1, scores});
    }
  }
}

TEST(RegistryRows, a_family_that_is_missing_or_there_twice_is_an_error) {
  using Rows = RegistryRows<mha_sm90::RowFunctions, RecordingMachine>;
  std::vector<mha_sm90::Family<Recorder>> families = sm90_families();
  families[0] = families[1];
  EXPECT_THROW(Rows{families}, std::logic_error);
  families.pop_back();
  EXPECT_THROW(Rows{families}, std::logic_error);
  EXPECT_EQ(Rows({}).kernels().size(), std::size(mha_sm90::kShapes));  // a build without code
}

}  // namespace
}  // namespace pagoda::kernels
