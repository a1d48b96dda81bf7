// On described devices, without a GPU and over a fake CUDA runtime: which kernel the public API
// selects for a call, and that its launches fit the device, have code for it in the library's fat
// binaries and use the row's types.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_cudart.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda::cuda_tests {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// PAGODA_TEST_ARCHS (CMake): the architectures of this build's attention kernels, "80 90a 100a".
bool is_compiled(int32_t arch) {
  const std::string list = " " PAGODA_TEST_ARCHS " ", name = " " + std::to_string(arch);
  return contains(list, name + " ") || contains(list, name + "a ");
}

bool is_blackwell(int32_t arch) { return arch == 100 || arch == 103; }

// What nvcc may compile mha_sm80 and mha_simt for, newest first.
constexpr int32_t kSM80Archs[] = {121, 120, 110, 90, 89, 88, 87, 86, 80};

// The code of this build with which mha_sm80 and mha_simt run on a GPU: SASS of the same major version, or PTX
// of sm_80.
struct Code {
  int32_t arch;
  bool is_ptx;
};
std::optional<Code> sm80_code(int32_t arch) {
  for (const int32_t each : kSM80Archs) {
    if (each / 10 == arch / 10 && each <= arch && is_compiled(each)) return Code{each, false};
  }
  if (arch > 80 && is_compiled(80)) return Code{80, true};
  return {};
}

// A kernel with a body is larger. launch.hpp compiles an empty body for architectures without the
// kernel's instructions, which ptxas pads to 128 bytes.
constexpr int64_t kLeastTextBytes = 1024;

// Addresses on a device. Nothing dereferences them.
template <class T>
T* address(int index) {
  return reinterpret_cast<T*>((uintptr_t{1} << 44) + (static_cast<uintptr_t>(index) << 38));
}

// The dtypes of Q and of K and V.
struct Types {
  DType q, kv;
};
constexpr Types kBF16{DType::kBF16, DType::kBF16}, kF16{DType::kF16, DType::kF16};
constexpr Types kFp8{DType::kF8E4M3, DType::kF8E4M3}, kFp8KV{DType::kBF16, DType::kF8E4M3};
constexpr Types kFp32{DType::kF32, DType::kF32};

struct Dims {
  int32_t qk, vo;
};

// Lengths are those of every sequence.
struct Shape {
  int32_t batch, rows, keys, q_heads, kv_heads;
  int32_t page_size;  // 0 = padded Q, dense K and V
  bool is_v_inside_k = false;
};
constexpr Shape kPrefill{4, 512, 512, 32, 8, 0};
constexpr Shape kPrompts{8, 2048, 2048, 16, 16, 0};  // tall row tiles on Hopper
constexpr Shape kFewKeys{8, 512, 512, 32, 8, 0};     // short ones, of head dim 64
constexpr Shape kFewTiles{1, 512, 512, 8, 2, 0};     // those of one consumer
constexpr Shape kTokens{2, 40, 2048, 32, 8, 64};     // those of e4m3 queries
constexpr Shape kChunk{1, 256, 100'000, 4, 1, 64};
constexpr Shape kDecode{64, 1, 4096, 32, 8, 64}, kDecode8{8, 1, 4096, 32, 8, 64};
constexpr Shape kPages1{64, 1, 4096, 32, 8, 1}, kShort{4, 1, 512, 32, 8, 16};
constexpr Shape kFewHeads{1, 1, 512, 16, 4, 64};        // a cluster each on Hopper
constexpr Shape kLatent{8, 1, 4096, 128, 1, 64, true};  // one cached head for all, as in MLA
constexpr Shape kLatent16{8, 1, 4096, 16, 1, 64, true};

// One call. `sm90`, `sm100` and `sm80`: the row of those families that serves it; nullptr = none. A
// name with a dot has its family: "decode.d128" is sm90_decode.d128.bf16.
// Without the type: "d128" is sm90.d128.bf16 where the queries are bf16. A GPU takes the row of its
// own architecture, otherwise that of sm80; a call that none of them serves takes one of mha_simt.
struct Call {
  const char* name;
  Types types;
  Dims dims;
  Shape shape;
  bool has_bias;  // ALiBi: scores of the general variant
  const char* sm90 = nullptr;
  const char* sm100 = nullptr;
  const char* sm80 = nullptr;
};

// clang-format off
const Call kCalls[] = {
    // name                  types   dims        shape     bias   sm90        sm100    sm80
    {"prefill",              kBF16,  {128, 128}, kPrefill, false, "d128",     "pair.d128", "d128"},
    {"prefill f16",          kF16,   {128, 128}, kPrefill, false, "d128",     "pair.d128", "d128"},
    {"prefill d64",          kBF16,  {64, 64},   kPrefill, false, "d64",      "d64",   "d64"},
    {"prefill d64 f16",      kF16,   {64, 64},   kPrefill, false, "d64",      "d64",   "d64"},
    {"prefill d96",          kBF16,  {96, 96},   kPrefill, false, "d96",      "pair.d128", "d128"},
    {"prefill d96 f16",      kF16,   {96, 96},   kPrefill, false, "d96",      "pair.d128", "d128"},
    {"prefill d192x128",     kBF16,  {192, 128}, kPrefill, false, "d192x128", "d256",  "d192x128"},
    {"prefill d192x128 f16", kF16,   {192, 128}, kPrefill, false, "d192x128", "d256",  "d192x128"},
    {"prefill d256",         kBF16,  {256, 256}, kPrefill, false, "d256",     "d256",  "d256"},
    {"prefill d256 f16",     kF16,   {256, 256}, kPrefill, false, "d256",     "d256",  "d256"},
    {"prefill d512",         kBF16,  {512, 512}, kPrefill, false, nullptr,    "d512",  "d576x512"},
    {"prefill d512 f16",     kF16,   {512, 512}, kPrefill, false, nullptr,    "d512",  "d576x512"},
    {"prefill fp8",          kFp8,   {128, 128}, kPrefill, false, "d128",     "pair.d128", nullptr},
    {"prefill fp8 d64",      kFp8,   {64, 64},   kPrefill, false, "d64",      "d64",   nullptr},
    {"prefill fp8 d256",     kFp8,   {256, 256}, kPrefill, false, "d256",     "d256",  nullptr},
    {"prefill fp8, ALiBi",   kFp8,   {192, 128}, kPrefill, true,  "d256",     "d256",  nullptr},
    {"decode fp8",           kFp8,   {128, 128}, kDecode,  false, "decode.d128", "d128", nullptr},
    {"decode fp8, 1-key",    kFp8,   {128, 128}, kPages1,  false, nullptr,    "d128",  nullptr},
    {"prefill fp8 d512",     kFp8,   {512, 512}, kPrefill, false, nullptr,    "d512",  nullptr},
    {"prefill, ALiBi",       kBF16,  {128, 128}, kPrefill, true,  "d128",     "pair.d128", "d128"},
    {"prompts",              kBF16,  {128, 128}, kPrompts, false, "d128",     "pair.d128", "d128"},
    {"prompts d96 f16",      kF16,   {96, 96},   kPrompts, false, "d96",      "pair.d128", "d128"},
    {"few keys d64",         kBF16,  {64, 64},   kFewKeys, false, "d64",      "d64",   "d64"},
    {"few keys d64 f16",     kF16,   {64, 64},   kFewKeys, false, "d64",      "d64",   "d64"},
    {"few tiles d64 f16",    kF16,   {64, 64},   kFewTiles, false, "d64",     "d64",   "d64"},
    {"few tiles d128",       kBF16,  {128, 128}, kFewTiles, false, "d128",    "d128",  "d128"},
    {"few tiles d256",       kBF16,  {256, 256}, kFewTiles, false, "d256",    "d256",  "d256"},
    {"prompts fp8 d64",      kFp8,   {64, 64},   kPrompts, false, "d64",      "d64",   nullptr},
    {"chunk, long cache",    kBF16,  {128, 128}, kChunk,   false, "d128",     "d128",  "d128"},
    {"decode",               kBF16,  {128, 128}, kDecode,  false, "decode.d128", "d128",  "d128"},
    {"decode, few heads",    kBF16,  {128, 128}, kFewHeads, false, "decode.d128", "d128",  "d128"},
    {"decode d64 f16",       kF16,   {64, 64},   kDecode8, false, "decode.d64", "d64",   "d64"},
    {"decode, 1-key pages",  kBF16,  {128, 128}, kPages1,  false, "d128",     "d128",  "d128"},
    {"decode d64, ALiBi",    kBF16,  {64, 64},   kDecode,  true,  "d64",      "d64",   "d64"},
    {"decode d256",          kBF16,  {256, 256}, kDecode8, false, "decode.d256", "d256",  "d256"},
    {"decode, fp8 cache",    kFp8KV, {128, 128}, kDecode,  false, "decode.d128", "d128", "d128"},
    {"decode, few fp8",      kFp8,   {128, 128}, kShort,   false, "decode.d128", "d128", nullptr},
    {"decode, few fp8 KV",   kFp8KV, {64, 64},   kShort,   false, "decode.d64", "d64",   "d64"},
    {"few tiles fp8",        kFp8,   {128, 128}, kTokens,  false, "d128",     "d128",  nullptr},
    {"latent",               kBF16,  {576, 512}, kLatent,  false, "d576x512", nullptr, "d576x512"},
    {"latent f16",           kF16,   {576, 512}, kLatent,  false, "d576x512", nullptr, "d576x512"},
    {"latent, 16 heads",     kBF16,  {576, 512}, kLatent16, false, "decode.d576x512", nullptr, "d576x512"},
    {"latent f16, ALiBi",    kF16,   {576, 512}, kLatent,  true,  nullptr,    nullptr, "d576x512"},
    {"decode d576x512",      kBF16,  {576, 512}, kDecode8, false, nullptr,    nullptr, "d576x512"},
    {"prefill d576x512",     kBF16,  {576, 512}, kPrefill, false, nullptr,    nullptr, "d576x512"},
    {"decode d512, fp8 KV",  kFp8KV, {512, 512}, kDecode8, false, nullptr,    "d512",  "d576x512"},
    {"decode d256, fp8 KV",  kFp8KV, {256, 256}, kDecode8, false, "decode.d256", "d256", "d256"},
    {"decode d256, fp8",     kFp8,   {256, 256}, kDecode8, false, "decode.d256", "d256", nullptr},
    {"decode d256, 1-key",   kF16,   {256, 256}, kPages1,  false, "d256",     "d256",  "d256"},
    {"decode d40",           kBF16,  {40, 40},   kDecode,  false, "decode.d64", "d64",   "d64"},
    {"decode d96",           kBF16,  {96, 96},   kDecode,  false, "decode.d128", "d128",  "d128"},
    {"decode fp32",          kFp32,  {128, 128}, kShort,   false, nullptr,    nullptr, nullptr},
};
// clang-format on

Attention attention_of(const Call& call, Device device) {
  Attention a;
  const Shape& shape = call.shape;
  const Types& types = call.types;
  const auto rows_shape = [&](int64_t dim) {
    return std::vector<int64_t>{shape.batch, shape.rows, shape.q_heads, dim};
  };
  const auto tensor = [&](int index, DType dtype, const std::vector<int64_t>& extents) {
    Tensor t{.data = address<std::byte>(index), .dtype = dtype, .device = device};
    t.rank = static_cast<int32_t>(extents.size());
    int64_t stride = 1;
    for (size_t d = extents.size(); d-- > 0;) {
      t.shape[d] = extents[d];
      t.strides[d] = stride;
      stride *= extents[d];
    }
    return t;
  };
  const auto first_columns = [](Tensor t, int64_t columns) {
    t.shape[static_cast<size_t>(t.rank - 1)] = columns;
    return t;
  };
  const DType out = types.q == DType::kF8E4M3 ? DType::kBF16 : types.q;
  a.q = tensor(0, types.q, rows_shape(call.dims.qk));
  a.out = tensor(1, out, rows_shape(call.dims.vo));
  if (shape.page_size == 0) {
    const Tensor k = tensor(2, types.kv, {shape.batch, shape.keys, shape.kv_heads, call.dims.qk});
    const Tensor v = tensor(3, types.kv, {shape.batch, shape.keys, shape.kv_heads, call.dims.vo});
    a.kv = DenseKV{.k = k, .v = shape.is_v_inside_k ? first_columns(k, call.dims.vo) : v};
  } else {
    const int64_t pages = (shape.keys + shape.page_size - 1) / shape.page_size;
    const int64_t all = pages * shape.batch;
    const Tensor k = tensor(2, types.kv, {all, shape.page_size, shape.kv_heads, call.dims.qk});
    const Tensor v = tensor(3, types.kv, {all, shape.page_size, shape.kv_heads, call.dims.vo});
    a.kv = PagedKV{.k = k,
                   .v = shape.is_v_inside_k ? first_columns(k, call.dims.vo) : v,
                   .table = BlockTable{MatrixView<int32_t>::contiguous(address<int32_t>(4),
                                                                       shape.batch, pages, device),
                                       {address<int32_t>(5), shape.batch, device}}};
  }
  if (call.has_bias) {
    a.score_mod.alibi_slopes = {address<float>(6), shape.q_heads, device};
  }
  return a;
}

// The kernel that a row must launch, by its name: "sm100.pair.d128.bf16" launches
// "SM100MHA2Q<pagoda::mha_sm100::Instance<pagoda::arch::BFloat16, pagoda::arch::BFloat16, 128,
// ..., 2> >".
std::string expected_instance(const std::string& row) {
  const auto has = [&](const char* part) { return row.find(part) != std::string::npos; };
  const std::string type = has(".bf16")  ? "pagoda::arch::BFloat16"
                           : has(".f16") ? "pagoda::arch::Half"
                                         : "pagoda::arch::Float8E4M3";
  const std::string out = has(".f8e4m3") ? "pagoda::arch::BFloat16" : type;
  const size_t d = row.find(".d") + 2;
  const std::string dims = row.substr(d, row.find('.', d) - d);
  const size_t x = dims.find('x');
  const std::string both =
      x == std::string::npos ? dims + ", " + dims : dims.substr(0, x) + ", " + dims.substr(x + 1);
  if (row.starts_with("simt.")) {
    return "pagoda::mha_simt::Kernel<pagoda::mha_simt::Instance<" + both + ", ";
  }
  if (row.starts_with("sm90.")) {
    return "pagoda::mha_sm90::Kernel<pagoda::mha_sm90::Instance<" + type + ", " + both + ", ";
  }
  if (row.starts_with("sm80.") || row.starts_with("sm90_decode.")) {
    return "pagoda::kernels::kv_buffer::Kernel<pagoda::kernels::kv_buffer::Instance<pagoda::mha_" +
           row.substr(0, row.find('.')) + "::Chip, " + type + ", " + both + ", ";
  }
  const bool is_d512 = std::stoi(dims) > 128;
  const std::string family = is_d512 ? "mha_sm100_d512" : "mha_sm100";
  return "pagoda::" + family + (is_d512 ? "::SM100MHAD512<" : "::SM100MHA2Q<") +
         "pagoda::" + family + "::Instance<" + type + ", " + out + ", " + dims + ", ";
}

// Expects that a launch can start on the device and that its kernel has code there.
void expect_fits(const RecordedLaunch& launch, const DescribedDevice& device) {
  const uint64_t ctas = launch.grid[0] * launch.grid[1] * launch.grid[2];
  const uint64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  EXPECT_GE(ctas, 1U);
  EXPECT_LE(launch.grid[0], uint64_t{INT32_MAX});
  EXPECT_LE(launch.grid[1], 65535U);
  EXPECT_LE(launch.grid[2], 65535U);
  EXPECT_GE(threads, 1U);
  EXPECT_LE(threads, 1024U);
  EXPECT_GE(launch.cluster, 1U);
  EXPECT_LE(launch.cluster, 8U);  // the portable cluster size
  EXPECT_EQ(launch.grid[0] % launch.cluster, 0U);
  if (device.arch < 90) {
    EXPECT_EQ(launch.cluster, 1U) << "clusters begin with sm_90";
    EXPECT_FALSE(launch.is_dependent) << "programmatic launches begin with sm_90";
  }
  const CodeEntry* code = code_for(launch.code, device.arch);
  ASSERT_NE(code, nullptr) << "no code of " << launch.kernel << " for sm_" << device.arch;
  int64_t static_bytes = 0;
  if (!code->is_ptx) {
    const KernelSize size = kernel_size(*code, launch.symbol);
    EXPECT_GE(size.text_bytes, kLeastTextBytes) << "its body is empty on sm_" << device.arch;
    static_bytes = size.static_shared_bytes;
  }
  EXPECT_LE(launch.shared_memory_bytes, launch.allowed_shared_memory_bytes);
  EXPECT_LE(launch.shared_memory_bytes + static_bytes, device.shared_memory_bytes);
}

// What mha_sm80 launches for a call by one of its rows: RowKind, Staging and ScoreClass of its
// Instance.
std::string expected_variant(const Call& call, const std::string& row) {
  const bool is_prefill = call.shape.rows > 16 && call.dims.vo <= 256;
  const bool is_async = call.types.kv == call.types.q;  // addresses and strides are aligned
  // One token that sees all keys, head dims up to 256, pages of 16 rows or more.
  const std::string dim = std::to_string(call.dims.qk);
  const bool is_decode = call.shape.rows == 1 && is_async && !call.has_bias &&
                         std::max(call.dims.qk, call.dims.vo) <= 256 && !contains(row, "x") &&
                         call.shape.page_size != 1;
  const auto number = [](const char* type, int value) {
    return std::string("(pagoda::kernels::") + type + ")" + std::to_string(value);
  };
  const bool is_narrow = is_decode && !contains(row, ".d" + dim + ".");
  const int row_kind = is_decode ? 2 : (is_prefill ? 0 : 1);
  return number("kv_buffer::RowKind", row_kind) + ", " +
         number("kv_buffer::Staging", is_narrow ? 3 : (is_async ? 0 : 2)) + ", " +
         number("ScoreClass", call.has_bias || !is_async ? 1 : 0) + ", 1>, 80>";
}

bool is_decode(const RecordedLaunch& launch) {
  return contains(launch.kernel, "kv_buffer::RowKind)2");
}

int64_t most_ctas_per_sm(const RecordedLaunch& launch, const DescribedDevice& device) {
  constexpr int64_t kReserved = 1 << 10;
  return (device.shared_memory_bytes + kReserved) / (launch.shared_memory_bytes + kReserved);
}

bool is_of_sm80(const std::string& row) {
  return row.starts_with("sm80.") || row.starts_with("simt.");
}

// Expects of a launch of a row of mha_sm80 or mha_simt what every GPU since sm_80 has, and of
// mha_sm80 the variant of the call.
void expect_sm80(const RecordedLaunch& launch, const Call& call, const std::string& row,
                 const DescribedDevice& device) {
  if (!contains(launch.kernel, "mha_simt")) {
    EXPECT_TRUE(contains(launch.kernel, expected_variant(call, row)))
        << launch.kernel << " should have " << expected_variant(call, row);
  }
  EXPECT_EQ(launch.cluster, 1U);
  EXPECT_FALSE(launch.is_dependent);
  EXPECT_EQ(launch.block[0], 128U);
  EXPECT_LE(launch.shared_memory_bytes, 99 << 10);
  const std::optional<Code> wanted = sm80_code(device.arch);
  const CodeEntry* code = code_for(launch.code, device.arch);
  ASSERT_TRUE(wanted);
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->arch, wanted->arch);
  EXPECT_EQ(code->is_ptx, wanted->is_ptx);
}

// Expects of a launch of a row of mha_sm90 or mha_sm90_decode the row tiles, or the clusters and CTAs
// an SM, that the name of the call tells.
void expect_sm90(const RecordedLaunch& launch, const Call& call, const DescribedDevice& device) {
  const std::string_view name = call.name;
  if (name.starts_with("prompts")) {
    EXPECT_TRUE(contains(launch.kernel, "mha_sm90::RowKind)1")) << "tall row tiles";
  }
  if (name.starts_with("few keys")) {
    EXPECT_TRUE(contains(launch.kernel, "mha_sm90::RowKind)2")) << "short row tiles";
  }
  if (name.starts_with("few tiles")) {
    const bool is_e4m3 = name.ends_with("fp8");
    EXPECT_TRUE(contains(launch.kernel, is_e4m3 ? "mha_sm90::RowKind)4" : "mha_sm90::RowKind)3"))
        << (is_e4m3 ? "several heads" : "one consumer");
  }
  if (name == "decode") {
    EXPECT_TRUE(is_decode(launch));
    EXPECT_EQ(launch.cluster, 1U);
    EXPECT_EQ(most_ctas_per_sm(launch, device), 2) << "three fit; 512 row tiles";
  }
  if (name == "decode, few heads") {
    EXPECT_EQ(launch.cluster, 8U);
    EXPECT_EQ(most_ctas_per_sm(launch, device), 1) << "few CTAs";
  }
}

// Runs `body(device, cuda:i)` on each described device.
template <class Body>
void on_each_device(const Body& body) {
  ASSERT_FALSE(described_devices().empty());
  for (size_t i = 0; i < described_devices().size(); ++i) {
    const DescribedDevice& device = described_devices()[i];
    SCOPED_TRACE(std::string(device.name) + ", sm_" + std::to_string(device.arch));
    body(device, Device{DeviceType::kCuda, static_cast<int32_t>(i)});
  }
}

// Whether a row can run on a GPU with the code of this build.
bool has_code(const std::string& row, int32_t arch) {
  if (is_of_sm80(row)) return sm80_code(arch).has_value();
  return (row.starts_with("sm90") ? arch == 90 : is_blackwell(arch)) && is_compiled(arch);
}

// The row that serves the call on a GPU; empty = none.
std::string wanted_row(const Call& call, int32_t arch) {
  const std::string type = call.types.q == DType::kBF16  ? ".bf16"
                           : call.types.q == DType::kF16 ? ".f16"
                                                         : ".f8e4m3";
  const std::pair<const char*, const char*> rows[] = {
      {"sm90.", call.sm90}, {"sm100.", call.sm100}, {"sm80.", call.sm80}};
  for (const auto& [family, dims] : rows) {
    if (dims == nullptr || !has_code(family, arch)) continue;
    const bool is_decode = std::string_view(dims).starts_with("decode.");
    return (is_decode ? "sm90_" : std::string(family)) + dims + type;
  }
  if (!has_code("simt.", arch)) return {};
  const int32_t dim = std::max(call.dims.qk, call.dims.vo);
  return dim <= 128 ? "simt.d128" : dim <= 256 ? "simt.d256" : "simt.d576";
}

const KernelInfo* selected(const std::vector<KernelInfo>& infos) {
  for (const KernelInfo& info : infos) {
    if (info.is_selected) return &info;
  }
  return nullptr;
}

TEST(DescribedDevices, each_call_selects_the_kernel_of_its_architecture) {
  on_each_device([](const DescribedDevice& device, Device at) {
    for (const Call& call : kCalls) {
      SCOPED_TRACE(call.name);
      const Attention a = attention_of(call, at);
      const Options options{.backend = "cuda"};
      const std::string wanted = wanted_row(call, device.arch);
      const Result<Plan> planned = plan(a, options);
      const auto infos = explain(a, options);
      ASSERT_TRUE(infos) << infos.status().message();
      if (wanted.empty()) {
        EXPECT_FALSE(planned) << "got " << planned->kernel();
        EXPECT_EQ(planned.status().code(), StatusCode::kUnsupported);
        EXPECT_FALSE(planned.status().message().empty());
        EXPECT_EQ(selected(*infos), nullptr);
        for (const KernelInfo& info : *infos) {
          EXPECT_FALSE(info.can_run) << info.name;
          EXPECT_FALSE(info.reason.empty()) << info.name;
        }
        continue;
      }
      EXPECT_TRUE(planned) << planned.status().message();
      if (!planned) continue;
      EXPECT_EQ(planned->kernel(), wanted);
      ASSERT_NE(selected(*infos), nullptr);
      EXPECT_EQ(selected(*infos)->name, wanted);
      EXPECT_EQ(selected(*infos)->reason.empty(), !wanted.starts_with("simt."));
    }
  });
}

TEST(DescribedDevices, launches_fit_the_device_and_have_code_for_it) {
  on_each_device([](const DescribedDevice& device, Device at) {
    for (const Call& call : kCalls) {
      SCOPED_TRACE(call.name);
      const std::string wanted = wanted_row(call, device.arch);
      void* const stream = address<void>(20);
      const Options options{.backend = "cuda", .stream = Stream{stream}};
      // Launches ask the driver once about a device; plans are kept by the thread.
      std::thread([&] { static_cast<void>(run(attention_of(call, at), options)); }).join();
      static_cast<void>(take_launches());
      const int64_t maps_before = num_tensor_maps(), device_calls_before = num_device_calls();
      const Status status = run(attention_of(call, at), options);
      const std::vector<RecordedLaunch> launches = take_launches();
      EXPECT_EQ(status.ok(), !wanted.empty()) << status.message() << tensor_map_fault();
      EXPECT_EQ(launches.empty(), wanted.empty());
      // The workspace and the run make the device current (three calls each), a launch queries it.
      // Selection, over dozens of rows, does neither.
      EXPECT_LE(num_device_calls() - device_calls_before, 6 + std::ssize(launches));
      for (const RecordedLaunch& launch : launches) {
        SCOPED_TRACE(launch.kernel);
        EXPECT_EQ(launch.device, at.index);
        EXPECT_EQ(launch.stream, stream);
        expect_fits(launch, device);
        EXPECT_TRUE(contains(launch.kernel, expected_instance(wanted)))
            << wanted << " must launch " << expected_instance(wanted);
        if (is_of_sm80(wanted)) expect_sm80(launch, call, wanted, device);
        if (wanted.starts_with("sm90")) expect_sm90(launch, call, device);
      }
      if (is_of_sm80(wanted)) {
        EXPECT_EQ(num_tensor_maps(), maps_before) << "TMA begins with sm_90";
      } else if (!wanted.empty() && !wanted.starts_with("sm90_decode.") &&
                 call.shape.page_size == 0) {
        EXPECT_GT(num_tensor_maps(), maps_before);
      }
    }
  });
}

// The launches of a call on a thread that has kept no plan.
std::vector<RecordedLaunch> launches_on_new_thread(const Attention& a, const Options& options) {
  static_cast<void>(take_launches());
  std::thread([&] { EXPECT_TRUE(run(a, options)); }).join();
  return take_launches();
}

void expect_same(const std::vector<RecordedLaunch>& launches,
                 const std::vector<RecordedLaunch>& wanted) {
  ASSERT_EQ(launches.size(), wanted.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    EXPECT_EQ(launches[i].kernel, wanted[i].kernel);
    EXPECT_TRUE(std::ranges::equal(launches[i].grid, wanted[i].grid));
    EXPECT_EQ(launches[i].shared_memory_bytes, wanted[i].shared_memory_bytes);
  }
}

// Arguments that a kept plan does not depend on, and addresses that keep kernels from copying 16
// bytes at a time, which it does depend on.
TEST(DescribedDevices, launches_of_kept_plans_are_those_of_new_ones) {
  int num_served = 0, num_other_kernels = 0;
  on_each_device([&](const DescribedDevice& device, Device at) {
    for (const Call& call : kCalls) {
      if (wanted_row(call, device.arch).empty()) continue;
      SCOPED_TRACE(call.name);
      const Options options{.backend = "cuda"};
      const Attention first = attention_of(call, at);
      Attention other = first, misaligned = first;
      other.softmax_scale = 0.25F;
      other.out.data = address<std::byte>(10);
      other.q.data = address<std::byte>(11);
      std::visit(
          [](auto& kv) {
            kv.k.data = address<std::byte>(12);
            kv.v.data = address<std::byte>(13);  // also where it was inside K
          },
          other.kv);
      std::visit([](auto& kv) { kv.k.data = address<std::byte>(2) + 8; }, misaligned.kv);
      const bool is_served = plan(misaligned, options).ok();
      num_served += is_served;
      const auto wanted = launches_on_new_thread(other, options);
      const auto wanted_first = launches_on_new_thread(first, options);
      const auto wanted_misaligned =
          is_served ? launches_on_new_thread(misaligned, options) : std::vector<RecordedLaunch>{};
      for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(run(first, options));
        expect_same(take_launches(), wanted_first);
        ASSERT_TRUE(run(other, options));
        expect_same(take_launches(), wanted);
        EXPECT_EQ(run(misaligned, options).ok(), is_served);
        expect_same(take_launches(), wanted_misaligned);
      }
      num_other_kernels += is_served && wanted_misaligned[0].kernel != wanted[0].kernel;
    }
  });
  EXPECT_EQ(num_other_kernels > 0, num_served > 0) << "the shifted address must matter";
}

// Every row that has code for the device launches instances of its own shape.
TEST(DescribedDevices, every_row_launches_instances_of_its_own_types) {
  on_each_device([](const DescribedDevice& device, Device at) {
    int of_chip = 0, of_sm80 = 0, of_simt = 0;
    for (const std::string& row : kernels("cuda")) {
      if (!has_code(row, device.arch)) continue;
      const bool is_sm80 = is_of_sm80(row);
      ++(row.starts_with("simt.") ? of_simt : is_sm80 ? of_sm80 : of_chip);
      SCOPED_TRACE(row);
      const DType q = contains(row, ".bf16")  ? DType::kBF16
                      : contains(row, ".f16") ? DType::kF16
                                              : DType::kF8E4M3;
      const bool is_decoding = row.starts_with("sm90_decode.");
      const bool is_latent = row.starts_with("sm90") && contains(row, ".d576x512.");
      for (const bool has_bias : {false, true}) {
        for (const int32_t length : {1, 256}) {
          if (is_decoding && (has_bias || length > 4)) continue;
          if (is_latent && has_bias) continue;
          for (const DType kv : {q, DType::kF8E4M3}) {
            if (kv != q && !is_sm80 && (!is_decoding || is_latent)) continue;
            Call call{.name = "",
                      .types = {q, kv},
                      .dims = {64, 64},  // supported by every shape but those that decode
                      .shape = {2, length, 256, 32, 8, 0},
                      .has_bias = has_bias};
            if (is_decoding && contains(row, "d128.")) call.dims = {128, 128};
            if (is_decoding && contains(row, "d256.")) call.dims = {256, 256};
            if (is_latent) {
              call.dims = {576, 512};
              call.shape.is_v_inside_k = true;
            }
            static_cast<void>(take_launches());
            const Status status =
                run(attention_of(call, at), Options{.backend = "cuda", .kernel = row});
            ASSERT_TRUE(status) << status.message() << tensor_map_fault();
            const std::vector<RecordedLaunch> launches = take_launches();
            ASSERT_FALSE(launches.empty());
            if (contains(row, "x512.")) call.dims.vo = 512;  // no prefill tile
            for (const RecordedLaunch& launch : launches) {
              expect_fits(launch, device);
              EXPECT_TRUE(contains(launch.kernel, expected_instance(row))) << launch.kernel;
              if (is_sm80) expect_sm80(launch, call, row, device);
            }
          }
        }
      }
    }
    const int rows = device.arch == 90 ? 26 : is_blackwell(device.arch) ? 15 : 0;
    EXPECT_EQ(of_chip, is_compiled(device.arch) ? rows : 0);
    EXPECT_EQ(of_sm80, sm80_code(device.arch) ? 10 : 0);
    EXPECT_EQ(of_simt, sm80_code(device.arch) ? 3 : 0);
  });
}

TEST(DescribedDevices, rows_of_simt_come_last) {
  std::vector<std::string> families;
  for (const std::string& row : kernels("cuda")) {
    const std::string family = row.substr(0, row.find('.'));
    if (families.empty() || families.back() != family) families.push_back(family);
  }
  EXPECT_EQ(families, (std::vector<std::string>{"sm90", "sm90_decode", "sm100", "sm80", "simt"}));
}

TEST(DescribedDevices, rows_that_cannot_run_name_the_device_and_the_code_of_this_build) {
  on_each_device([](const DescribedDevice& device, Device at) {
    const auto infos = explain(attention_of(kCalls[0], at), Options{.backend = "cuda"});
    ASSERT_TRUE(infos) << infos.status().message();
    EXPECT_EQ(infos->size(), 54U);
    for (const KernelInfo& info : *infos) {
      if (has_code(info.name, device.arch)) continue;
      SCOPED_TRACE(info.name + ": " + info.reason);
      EXPECT_FALSE(info.can_run);
      EXPECT_TRUE(contains(info.reason, "cuda:" + std::to_string(at.index)));
      EXPECT_TRUE(contains(info.reason, device.name));
      EXPECT_TRUE(contains(info.reason, "sm_" + std::to_string(device.arch)));
      EXPECT_TRUE(contains(info.reason, "this build has"));
      if (is_of_sm80(info.name)) {
        const std::string missing = "no code for sm_" + std::to_string(device.arch);
        EXPECT_TRUE(contains(info.reason, missing));
        continue;
      }
      const bool is_sm90 = info.name.starts_with("sm90");
      const bool is_for_it = is_sm90 ? device.arch == 90 : is_blackwell(device.arch);
      for (const int32_t arch : {90, 100, 103}) {
        if ((arch == 90) != is_sm90 || is_compiled(arch)) continue;
        if (is_for_it && arch != device.arch) continue;
        EXPECT_TRUE(contains(info.reason, "no code for")) << arch;
        EXPECT_TRUE(contains(info.reason, "sm_" + std::to_string(arch) + "a")) << arch;
      }
    }
  });
}

TEST(DescribedDevices, append_kv_runs_on_every_device_since_sm_80) {
  on_each_device([](const DescribedDevice& device, Device at) {
    static_cast<void>(take_launches());
    AppendKV append;
    append.k_new = ConstTensor::contiguous(address<std::byte>(0), DType::kBF16, {64, 8, 128}, at);
    append.v_new = ConstTensor::contiguous(address<std::byte>(1), DType::kBF16, {64, 8, 128}, at);
    append.slot_mapping = {address<int64_t>(2), 64, at};
    append.k_cache =
        Tensor::contiguous(address<std::byte>(3), DType::kF8E4M3, {100, 16, 8, 128}, at);
    append.v_cache =
        Tensor::contiguous(address<std::byte>(4), DType::kF8E4M3, {100, 16, 8, 128}, at);
    const Status status = append_kv(append, Options{.backend = "cuda"});
    ASSERT_TRUE(status) << status.message();
    const std::vector<RecordedLaunch> launches = take_launches();
    ASSERT_EQ(launches.size(), 1U);
    EXPECT_TRUE(contains(launches[0].kernel, "AppendKVRows"));
    expect_fits(launches[0], device);
    EXPECT_FALSE(code_for(launches[0].code, device.arch)->is_ptx)
        << "PTX would be compiled at the first call";
  });
}

TEST(DescribedDevices, merge_states_runs_on_every_device_since_sm_80) {
  on_each_device([](const DescribedDevice& device, Device at) {
    static_cast<void>(take_launches());
    MergeStates merge;
    merge.partial_out =
        ConstTensor::contiguous(address<std::byte>(0), DType::kBF16, {3, 100, 8, 128}, at);
    merge.partial_lse =
        ConstTensor::contiguous(address<std::byte>(1), DType::kF32, {3, 100, 8}, at);
    merge.out = Tensor::contiguous(address<std::byte>(2), DType::kBF16, {100, 8, 128}, at);
    merge.lse = Tensor::contiguous(address<std::byte>(3), DType::kF32, {100, 8}, at);
    const Status status = merge_states(merge, Options{.backend = "cuda"});
    ASSERT_TRUE(status) << status.message();
    const std::vector<RecordedLaunch> launches = take_launches();
    ASSERT_EQ(launches.size(), 1U);
    EXPECT_TRUE(contains(launches[0].kernel, "MergeStatesRows"));
    expect_fits(launches[0], device);
    EXPECT_FALSE(code_for(launches[0].code, device.arch)->is_ptx)
        << "PTX would be compiled at the first call";
  });
}

TEST(DescribedDevices, kernels_beside_attention_have_ptx_for_newer_gpus) {
  int found = 0;
  for (const RegisteredKernel& kernel : registered_kernels()) {
    const bool is_beside = contains(kernel.symbol, "AppendKVRows") ||
                           contains(kernel.symbol, "MergeStatesRows") ||
                           contains(kernel.symbol, "PaddingRows");
    if (!is_beside) continue;
    ++found;
    const CodeEntry* code = code_for(kernel.code, 200);
    ASSERT_NE(code, nullptr);
    EXPECT_TRUE(code->is_ptx);
    EXPECT_EQ(code_for(kernel.code, 75), nullptr);
  }
  EXPECT_EQ(found, 3);
}

// CMake's macros list the architectures of the library; its fat binaries must contain the same.
TEST(DescribedDevices, attention_kernels_have_code_for_the_architectures_of_this_build_only) {
  int sm90 = 0, sm100 = 0;
  for (const RegisteredKernel& kernel : registered_kernels()) {
    const bool is_sm90 = contains(kernel.symbol, "8mha_sm90") ||
                         contains(kernel.symbol, "15mha_sm90_decode"),
               is_sm100 = contains(kernel.symbol, "9mha_sm100") ||
                          contains(kernel.symbol, "14mha_sm100_d512");
    if (!is_sm90 && !is_sm100) continue;
    SCOPED_TRACE(kernel.symbol);
    ++(is_sm90 ? sm90 : sm100);
    std::vector<int32_t> archs;
    for (const CodeEntry& entry : kernel.code) {
      EXPECT_FALSE(entry.is_ptx);
      EXPECT_TRUE(entry.is_arch_specific) << entry.arch;
      archs.push_back(entry.arch);
    }
    std::vector<int32_t> wanted;
    for (const int32_t arch : {90, 100, 103}) {
      if ((arch == 90) == is_sm90 && is_compiled(arch)) wanted.push_back(arch);
    }
    EXPECT_EQ(archs, wanted);
  }
  EXPECT_EQ(sm90, is_compiled(90) ? 156 + 178 : 0);
  EXPECT_EQ(sm100, is_compiled(100) || is_compiled(103) ? 30 : 0);
}

TEST(DescribedDevices,
     kernels_of_sm80_and_simt_have_code_for_this_build_and_ptx_beside_that_of_sm_80) {
  std::set<int32_t> wanted;
  for (const int32_t arch : kSM80Archs) {
    if (is_compiled(arch)) wanted.insert(arch);
  }
  int found = 0;
  for (const RegisteredKernel& kernel : registered_kernels()) {
    if (!contains(kernel.symbol, "8mha_sm80") && !contains(kernel.symbol, "8mha_simt")) continue;
    SCOPED_TRACE(kernel.symbol);
    ++found;
    std::set<int32_t> sass, ptx;
    for (const CodeEntry& entry : kernel.code) {
      EXPECT_EQ(entry.is_arch_specific, entry.arch == 90);
      EXPECT_TRUE((entry.is_ptx ? ptx : sass).insert(entry.arch).second) << entry.arch;
      if (!entry.is_ptx) {
        EXPECT_GE(kernel_size(entry, kernel.symbol).text_bytes, kLeastTextBytes) << entry.arch;
      }
    }
    EXPECT_EQ(sass, wanted);
    EXPECT_EQ(ptx, is_compiled(80) ? std::set<int32_t>{80} : std::set<int32_t>());
    EXPECT_EQ(code_for(kernel.code, 75), nullptr);
  }
  // mha_sm80, two types: eight variants of d64, d128 and d256, six of 192 x 128, where decoding has
  // no kernel of its own, three of 576 x 512, which has no prefill tile. mha_simt: three shapes.
  EXPECT_EQ(found, wanted.empty() ? 0 : 2 * (8 * 3 + 6 + 3) + 3);
}

TEST(DescribedDevices, a_missing_device_is_named) {
  const auto beyond = static_cast<int32_t>(described_devices().size());
  const Status status =
      run(attention_of(kCalls[0], {DeviceType::kCuda, beyond}), Options{.backend = "cuda"});
  EXPECT_FALSE(status);
  EXPECT_TRUE(contains(status.message(), "there is no cuda:" + std::to_string(beyond)))
      << status.message();
}

}  // namespace
}  // namespace pagoda::cuda_tests
