// Every described call is one call of run() or merge_states(), on each back end: without a table of
// one-token pages, and without a call per sequence. For a GPU the call is copied to its memory; the
// fake device tests that path where there is none. On a machine with one: `./dev gpu --only peers`.
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

#include "calls.hpp"
#include "core/element.hpp"
#include "pagoda/backend.hpp"
#if defined(PAGODA_TEST_EMULATORS)
#include "pagoda/emulator.hpp"
#endif
#include "testing/mirror/fake_device.hpp"
#include "testing/mirror/host_space.hpp"
#include "testing/mirror/mirror.hpp"

namespace pagoda::test {
namespace {

constexpr DType kOutType = DType::kF16;  // of merged states

std::vector<std::string> backend_names() {
  EXPECT_TRUE(mirror::register_fake_device());
  std::vector<std::string> names{"cpu", mirror::kFakeDevice};
#if defined(PAGODA_TEST_EMULATORS)
  EXPECT_TRUE(register_emulator());
  names.insert(names.end(), {"emu:sm80", "emu:sm90", "emu:sm100", "emu:gfx942"});
#endif
  for (const BackendInfo& backend : backends()) {
    if (backend.name == "cuda" && backend.is_available) names.push_back(backend.name);
  }
  return names;
}

// Relative to the magnitude of the values, which are normal numbers.
double tolerance(const PeerCall& call, DType dtype) {
  if (call.has_fp8_queries) return 0.1;  // P is e4m3, too
  switch (dtype) {
    case DType::kF32:  // P has 16 bits
    case DType::kF16: return 0.01;
    case DType::kBF16: return 0.03;
    case DType::kF8E4M3: return 0.15;
  }
  return 0;
}

std::vector<double> elements_of(const Tensor& t, double scale) {
  std::vector<double> values;
  if (!t.present()) return values;
  int64_t count = 1;
  for (int32_t d = 0; d < t.rank; ++d) count *= t.shape[static_cast<size_t>(d)];
  for (int64_t i = 0; i < count; ++i) {  // gapless
    values.push_back(scale * static_cast<double>(core::load_element(t.data, t.dtype, i)));
  }
  return values;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double limit,
                 const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;  // -infinity
    ASSERT_LE(std::fabs(got[i] - want[i]), limit * std::fmax(1, std::fabs(want[i])))
        << what << "[" << i << "]";
  }
}

using Param = std::tuple<std::string, PeerCall>;

// Runs `call`, which is in host memory, on `backend`. The outputs are in host memory in the end.
Status run_on(const std::string& backend, const Attention& call, int32_t num_kv_splits) {
  const Options options{.backend = backend, .num_kv_splits = num_kv_splits};
  core::MemorySpace& space = mirror::space_of(backend);
  if (space.is_host()) return run(call, options);
  mirror::Mirror there(space, call);
  there.send_outputs();
  Status status = run(there.attention(), options);
  there.fetch_outputs();
  EXPECT_EQ(there.changed_input(), "");
  return status;
}

// Merges `call`, which is in host memory and in place, on `backend`.
Status merge_on(const std::string& backend, MergeStates call) {
  core::MemorySpace& space = mirror::space_of(backend);
  if (space.is_host()) return merge_states(call, {.backend = backend});
  const int64_t out_bytes = 2 * call.out.shape[0] * call.out.strides[0] * size_bytes(kOutType);
  const int64_t lse_bytes = 2 * call.lse.shape[0] * call.lse.strides[0] * int64_t{sizeof(float)};
  const mirror::Block out(space, out_bytes), lse(space, lse_bytes);
  const mirror::Block mask(space, call.row_mask.size());
  void* const host_out = call.out.data;
  void* const host_lse = call.lse.data;
  space.copy_in(out.data(), host_out, out_bytes);
  space.copy_in(lse.data(), host_lse, lse_bytes);
  space.copy_in(mask.data(), call.row_mask.data(), mask.bytes());
  const auto place = [&](auto& tensor, std::byte* data) {
    tensor.data = data;
    tensor.device = space.device();
  };
  place(call.partial_out, out.data());
  place(call.out, out.data());
  place(call.partial_lse, lse.data());
  place(call.lse, lse.data());
  call.row_mask = {reinterpret_cast<const uint8_t*>(mask.data()), mask.bytes(), space.device()};
  Status status = merge_states(call, {.backend = backend});
  space.copy_out(host_out, out.data(), out_bytes);
  space.copy_out(host_lse, lse.data(), lse_bytes);
  return status;
}

class PeerCalls : public testing::TestWithParam<Param> {};

TEST_P(PeerCalls, are_one_call) {
  const auto& [backend, call] = GetParam();
  CallMemory memory, same;
  const Attention got = call.make(memory), want = call.make(same);
  const Status status = run_on(backend, got, call.num_kv_splits);
  ASSERT_TRUE(status) << status.message();
  ASSERT_TRUE(run(want, {.backend = "reference"}));
  expect_near(elements_of(got.out, double{got.out_scale}),
              elements_of(want.out, double{want.out_scale}), tolerance(call, got.out.dtype), "out");
  expect_near(elements_of(got.lse, 1), elements_of(want.lse, 1), 0.02, "lse");
}

std::string name_of(const testing::TestParamInfo<Param>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
  for (char& letter : name) letter = letter == ':' ? '_' : letter;
  return name;
}
INSTANTIATE_TEST_SUITE_P(FlashAttention, PeerCalls,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(flash_attention_calls().begin(),
                                                            flash_attention_calls().end())),
                         name_of);
INSTANTIATE_TEST_SUITE_P(FlashInfer, PeerCalls,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(flashinfer_calls().begin(),
                                                            flashinfer_calls().end())),
                         name_of);

// merge_state_in_place(v, s, v_other, s_other, mask): v and s are parts of their own merge.
TEST(PeerStates, merge_in_place_with_a_mask) {
  for (const std::string& backend : backend_names()) {
    SCOPED_TRACE(backend);
    const auto merged = [&](CallMemory& m, const std::string& on) {
      const auto writable = [](const ConstTensor& t, std::initializer_list<int64_t> shape) {
        return Tensor::contiguous(const_cast<void*>(t.data), t.dtype, shape);
      };
      MergeStates call{.partial_out = m.values(kOutType, {2, 5, 4, 64}),
                       .partial_lse = m.values(DType::kF32, {2, 5, 4}),
                       .lse_base = LogBase::k2};
      call.out = writable(call.partial_out, {5, 4, 64});
      call.lse = writable(call.partial_lse, {5, 4});
      const std::vector<uint8_t> mask{1, 0, 1, 1, 0};
      call.row_mask = mask;
      const Status status = merge_on(on, call);
      EXPECT_TRUE(status) << status.message();
      std::vector<double> result = elements_of(call.out, 1), lse = elements_of(call.lse, 1);
      result.insert(result.end(), lse.begin(), lse.end());
      return result;
    };
    CallMemory got, want;
    expect_near(merged(got, backend), merged(want, "reference"), 1e-3, "state");
  }
}

}  // namespace
}  // namespace pagoda::test
