// compile_functor() without a GPU: invalid calls; and with NVRTC, over a fake CUDA runtime, what it
// compiles, caches, registers and launches.
#include "pagoda/runtime_functor.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

#include "cuda/fake_cudart.hpp"
#include "examples/functors/causal.hpp"
#include "examples/functors/documents.hpp"
#include "kernels/common/attention_params.hpp"
#include "pagoda/attention.hpp"
#include "runtime_functor/cache.hpp"
#include "runtime_functor/compile.hpp"
#include "runtime_functor/cubin.hpp"
#include "runtime_functor/kernels.hpp"
#include "runtime_functors/nvrtc_presence.hpp"
#include "tests/functors/functor_sources.hpp"

namespace pagoda::runtime_functor_tests {
namespace {

namespace fs = std::filesystem;
using cuda_tests::described_devices;
using cuda_tests::RecordedLaunch;
using cuda_tests::take_launches;

constexpr const char* kNoLibrary = "/nowhere/libnvrtc.so";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool is_loaded() {  // NVRTC, into this process
  std::ifstream maps("/proc/self/maps");
  return contains({std::istreambuf_iterator<char>(maps), {}}, "libnvrtc.so");
}

// A folder that is removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "pagoda_functors_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path() const { return path_; }
  [[nodiscard]] std::vector<fs::path> files() const {
    return {fs::directory_iterator(path_), fs::directory_iterator()};
  }

 private:
  fs::path path_;
};

// Kernels that several tests compile are kept until the program ends.
FunctorSource source_of(const std::string& name, const std::string& type,
                        const std::string& source) {
  static const Folder kShared;
  return {.name = name,
          .type = type,
          .source = source,
          .shapes = {"sm80.d64.bf16"},
          .archs = {80},
          .cache_dir = kShared.path()};
}
FunctorSource causal_source(const std::string& name) {
  return source_of(name, "CausalAgain", functor_tests::functor_source("causal.hpp"));
}

// Addresses on a device. Nothing dereferences them.
template <class T>
T* address(int index) {
  return reinterpret_cast<T*>((uintptr_t{1} << 44) + (static_cast<uintptr_t>(index) << 38));
}

int32_t device_of(int32_t arch) {
  const auto devices = described_devices();
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [arch](const auto& device) { return device.arch == arch; });
  return static_cast<int32_t>(found - devices.begin());
}

// Self-attention of 4 x `rows` tokens on a device of this architecture.
Attention call_on(int32_t arch, int64_t head_dim, int64_t rows = 512) {
  const Device device{DeviceType::kCuda, device_of(arch)};
  const auto tensor = [&](int index, int64_t heads) {
    Tensor t =
        Tensor::contiguous(address<std::byte>(index), DType::kBF16, {4, rows, heads, head_dim});
    t.device = device;
    return t;
  };
  Attention a;
  a.q = tensor(0, 8);
  a.kv = DenseKV{tensor(1, 2), tensor(2, 2)};
  a.out = tensor(3, 8);
  return a;
}

const int32_t kBegins[] = {0, 100, 333};
FunctorCall documents(const std::string& name, int32_t arch) {
  const ArrayView<int32_t> begins(address<int32_t>(4), 3, {DeviceType::kCuda, device_of(arch)});
  static std::vector<std::string> names;  // the call keeps a view
  names.reserve(16);
  return functor(names.emplace_back(name), Documents{begins, 3, 20}, begins);
}

// --- invalid calls -------------------------------------------------------------------------------

struct Invalid {
  const char* field;
  const char* message;
  void (*change)(FunctorSource&);
};
const Invalid kInvalid[] = {
    {"name", "name is \"\"; must be an identifier", [](FunctorSource& f) { f.name = ""; }},
    {"name", "must be an identifier", [](FunctorSource& f) { f.name = "a+b"; }},
    {"name", "must be an identifier", [](FunctorSource& f) { f.name = "1st"; }},
    {"type", "must be the name of a type", [](FunctorSource& f) { f.type = ""; }},
    {"type", "must be the name of a type", [](FunctorSource& f) { f.type = "A; int b"; }},
    {"source", "must define the functor's type", [](FunctorSource& f) { f.source = ""; }},
    {"shapes.size()", "must be at least 1", [](FunctorSource& f) { f.shapes = {}; }},
    {"shapes[1]", "\"sm90.d99\"; must be one of sm80.d64.bf16, ",
     [](FunctorSource& f) { f.shapes.push_back("sm90.d99"); }},
    {"shapes[0]", "must be named once",
     [](FunctorSource& f) { f.shapes.push_back("sm80.d64.bf16"); }},
    {"shapes[0]", "must run on one of the architectures 80",
     [](FunctorSource& f) { f.shapes = {"sm90.d128.bf16"}; }},
    {"archs[0]", "archs[0] is 75; must be a compute capability of at least 80",
     [](FunctorSource& f) { f.archs = {75}; }},
    {"archs[0]", "must be named once",
     [](FunctorSource& f) {
       f.archs = {80, 80};
     }},
    {"shapes[0]", "is registered for functor \"documents\" already",
     [](FunctorSource& f) { f.name = "documents"; }},
};

TEST(RuntimeFunctor, invalid_fields_are_named_before_nvrtc_is_loaded) {
  for (const Invalid& invalid : kInvalid) {
    FunctorSource f = causal_source("never_registered");
    invalid.change(f);
    const Status s = compile_functor(f).status();
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument) << invalid.message;
    EXPECT_EQ(s.field(), invalid.field) << s.message();
    EXPECT_TRUE(contains(s.message(), invalid.message)) << s.message();
  }
  EXPECT_FALSE(is_loaded());
}

TEST(RuntimeFunctor, missing_nvrtc_is_named_with_what_was_tried) {
  FunctorSource f = causal_source("never_registered");
  f.nvrtc = kNoLibrary;
  const Status s = compile_functor(f).status();
  EXPECT_EQ(s.code(), StatusCode::kNotFound);
  EXPECT_EQ(s.field(), "nvrtc");
  EXPECT_TRUE(contains(s.message(), kNoLibrary)) << s.message();
  Attention a = call_on(80, 64);
  a.functor = functor("never_registered", CausalAgain{});
  EXPECT_TRUE(contains(run(a).message(), "must be one of the registered functors"));
}

TEST(RuntimeFunctor, library_that_is_not_nvrtc_is_refused) {
  FunctorSource f = causal_source("never_registered");
  f.nvrtc = "libc.so.6";
  const Status s = compile_functor(f).status();
  EXPECT_EQ(s.code(), StatusCode::kNotFound);
  EXPECT_TRUE(contains(s.message(), "libc.so.6: it lacks functions of NVRTC")) << s.message();
}

TEST(RuntimeFunctor, bytes_that_are_no_cubin_have_no_facts) {
  EXPECT_FALSE(runtime_functor::read_facts("").has_value());
  EXPECT_FALSE(runtime_functor::read_facts(std::string(4096, '\x7f')).has_value());
}

TEST(RuntimeFunctor, cache_is_in_the_folder_that_the_environment_names) {
  const Folder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const runtime_functor::Cache cache{std::nullopt};
  unsetenv("XDG_CACHE_HOME");
  EXPECT_FALSE(cache.find("key").has_value());
  EXPECT_EQ(cache.store("key", "a cubin"), "");
  EXPECT_EQ(cache.find("key"), "a cubin");
  EXPECT_TRUE(fs::exists(folder.path() + "/pagoda/key.cubin"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() + "/pagoda"), {}), 1);
  fs::rename(folder.path() + "/pagoda/key.cubin", folder.path() + "/pagoda/other.cubin");
  EXPECT_FALSE(cache.find("other").has_value()) << "the file is of another key";
}

// --- compiled ------------------------------------------------------------------------------------

class CompiledFunctors : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_nvrtc()) GTEST_SKIP() << "there is no NVRTC";
  }
};

CompiledFunctor compiled(const FunctorSource& f) {
  const Result<CompiledFunctor> result = compile_functor(f);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : CompiledFunctor{};
}

TEST_F(CompiledFunctors, compiled_kernels_are_kept_and_found_without_nvrtc) {
  const Folder folder;
  FunctorSource f = causal_source("cached_first");
  f.cache_dir = folder.path();
  const CompiledFunctor first = compiled(f);
  EXPECT_EQ(first.names, std::vector<std::string>{"sm80.d64.bf16+cached_first"});
  EXPECT_EQ(first.value_bytes, 1);
  EXPECT_EQ(first.num_compiled, 2);
  EXPECT_EQ(first.num_cached, 0);
  ASSERT_EQ(folder.files().size(), 2U);

  f.nvrtc = kNoLibrary;
  f.name = "cached_second";  // the name is not part of a kernel
  const CompiledFunctor second = compiled(f);
  EXPECT_EQ(second.num_compiled, 0);
  EXPECT_EQ(second.num_cached, 2);

  f.name = "cached_third";
  for (void (*change)(FunctorSource&) : {
           +[](FunctorSource& of) { of.source += "\n"; },
           +[](FunctorSource& of) { of.archs = {86}; },
           +[](FunctorSource& of) { of.shapes = {"sm80.d64.f16"}; },
           +[](FunctorSource& of) { of.type = "::CausalAgain"; },
           +[](FunctorSource& of) { of.cache_dir = ""; },
       }) {
    FunctorSource other = f;
    change(other);
    EXPECT_EQ(compile_functor(other).status().code(), StatusCode::kNotFound);
  }

  // One damaged byte, and a file that ends early.
  const std::vector<fs::path> files = folder.files();
  std::fstream damaged(files[0], std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekg(5000);
  const auto byte = static_cast<char>(damaged.get());
  damaged.seekp(5000);
  damaged.put(static_cast<char>(byte ^ 1));
  damaged.close();
  EXPECT_EQ(compile_functor(f).status().code(), StatusCode::kNotFound);
  f.nvrtc = "";
  EXPECT_EQ(compiled(f).num_compiled, 1);
  f.name = "cached_fourth";
  fs::resize_file(files[1], fs::file_size(files[1]) / 2);
  EXPECT_EQ(compiled(f).num_compiled, 1);
  f.name = "cached_fifth";
  f.nvrtc = kNoLibrary;
  EXPECT_EQ(compiled(f).num_cached, 2);
}

TEST_F(CompiledFunctors, unwritable_cache_is_reported_and_the_functor_compiled) {
  FunctorSource f = causal_source("uncached");
  f.cache_dir = "/proc/nowhere";
  EXPECT_TRUE(contains(compiled(f).log, "was not written to /proc/nowhere/"));
}

TEST_F(CompiledFunctors, errors_of_the_source_are_those_of_the_compiler) {
  struct Wrong {
    const char *type, *source, *message;
  };
  const std::string include = "#include \"pagoda/functor.hpp\"\n";
  const std::string keep =
      "PAGODA_FUNCTOR bool keep(const pagoda::QueryRow&, int key) const { return key < 3; }";
  const std::string big = "struct Big { char bytes[132]; " + keep + "};";
  for (const Wrong& wrong : {
           Wrong{"F", "struct F {\n  int a = b;\n};", "source(3): error: identifier \"b\""},
           Wrong{"G", "struct F {};", "\"G\" is undefined"},
           Wrong{"F", "struct F {};", "a functor has keep(const QueryRow&, int32_t) -> bool"},
           Wrong{"Big", big.c_str(), "a functor is too large"},
       }) {
    const Status s =
        compile_functor(source_of("wrong", wrong.type, include + wrong.source)).status();
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(s.field(), "source");
    EXPECT_TRUE(contains(s.message(), wrong.message)) << s.message();
  }
  Attention a = call_on(80, 64);
  a.functor = functor("wrong", CausalAgain{});
  EXPECT_TRUE(contains(run(a).message(), "must be one of the registered functors"));
}

TEST_F(CompiledFunctors, unknown_architecture_is_refused_by_nvrtc) {
  FunctorSource f = causal_source("future");
  f.archs = {999};
  const Status s = compile_functor(f).status();
  EXPECT_EQ(s.code(), StatusCode::kUnsupported) << s.message();
  EXPECT_TRUE(contains(s.message(), "--gpu-architecture=sm_999")) << s.message();
}

TEST_F(CompiledFunctors, functor_without_host_code_is_refused_in_host_memory) {
  compiled(causal_source("gpu_only"));
  std::vector<uint16_t> values(4 * 16 * 64);
  const Tensor t = Tensor::contiguous(values.data(), DType::kBF16, {4, 16, 1, 64});
  std::vector<uint16_t> out(values.size());
  Attention a;
  a.q = t;
  a.kv = DenseKV{t, t};
  a.out = Tensor::contiguous(out.data(), DType::kBF16, {4, 16, 1, 64});
  a.functor = functor("gpu_only", CausalAgain{});
  for (const char* backend : {"cpu", "reference"}) {
    const Status s = run(a, Options{.backend = backend});
    EXPECT_EQ(s.field(), "functor.name");
    EXPECT_TRUE(contains(s.message(), "for GPUs alone")) << s.message();
  }
}

TEST_F(CompiledFunctors, value_of_another_size_is_refused) {
  compiled(causal_source("one_byte"));
  Attention a = call_on(80, 64);
  a.functor = functor("one_byte", Documents{});
  EXPECT_TRUE(contains(run(a).message(), "must be the size of \"one_byte\", 1"));
}

TEST_F(CompiledFunctors, type_may_have_a_name_of_pagoda) {
  for (const char* type : {"Device", "Kernel", "mine::Params"}) {
    const std::string of_type = type;
    const std::string plain = of_type.substr(of_type.find_last_of(':') + 1);
    const std::string text =
        "struct " + plain +
        " { PAGODA_FUNCTOR bool keep(const pagoda::QueryRow& row, int key) const { return key <= "
        "row.position; } };";
    const bool is_nested = plain != of_type;
    FunctorSource f = source_of("named_" + plain, of_type,
                                "#include \"pagoda/functor.hpp\"\n" +
                                    (is_nested ? "namespace mine { " + text + " }" : text));
    EXPECT_EQ(compiled(f).num_compiled, 2) << type;
  }
}

// causal.cpp is compiled into this program for the CPU.
TEST_F(CompiledFunctors, functor_of_the_program_gets_kernels_if_both_agree) {
  FunctorSource f = causal_source("causal");
  const std::string larger =
      "#include \"pagoda/functor.hpp\"\nstruct Larger { int more; "
      "PAGODA_FUNCTOR bool keep(const pagoda::QueryRow& row, int key) const "
      "{ return key <= row.position + more; } "
      "static constexpr bool kIsCausal = true; };";
  const Status of_larger = compile_functor(source_of("causal", "Larger", larger)).status();
  EXPECT_TRUE(contains(of_larger.message(), "has 4 bytes; functor \"causal\""))
      << of_larger.message();
  const std::string scored =
      "#include \"pagoda/functor.hpp\"\nstruct Scored { "
      "PAGODA_FUNCTOR float score(const pagoda::QueryRow&, int, float s) "
      "const { return s; } };";
  const Status of_scored = compile_functor(source_of("causal", "Scored", scored)).status();
  EXPECT_TRUE(contains(of_scored.message(), "must have the members")) << of_scored.message();
  compiled(f);
  Attention a = call_on(80, 64);
  a.functor = functor("causal", CausalAgain{});
  static_cast<void>(take_launches());
  EXPECT_TRUE(run(a).ok());
  EXPECT_FALSE(take_launches().empty());
  EXPECT_TRUE(contains(compile_functor(f).status().message(), "already"));
}

// --- launches ------------------------------------------------------------------------------------

std::vector<RecordedLaunch> launches_of(const Attention& a, const std::string& kernel,
                                        const Options& options = {.backend = "cuda"}) {
  static_cast<void>(take_launches());
  const Result<Plan> p = plan(a, options);
  EXPECT_TRUE(p.ok()) << p.status().message();
  if (!p.ok()) return {};
  EXPECT_EQ(p->kernel(), kernel);
  const Status s = run(a, options);
  EXPECT_TRUE(s.ok()) << s.message();
  return take_launches();
}

// documents.cpp is compiled into this program for sm_80, too.
TEST_F(CompiledFunctors, launches_are_those_of_a_functor_that_nvcc_compiled) {
  compiled(
      source_of("documents_again", "Documents", functor_tests::functor_source("documents.hpp")));
  for (const int64_t rows : {1, 300, 2000}) {
    Attention a = call_on(80, 64, rows);
    a.functor = documents("documents", 80);
    const std::vector<RecordedLaunch> expected = launches_of(a, "sm80.d64.bf16+documents");
    a.functor = documents("documents_again", 80);
    const std::vector<RecordedLaunch> found = launches_of(a, "sm80.d64.bf16+documents_again");
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(std::equal(found[i].grid, found[i].grid + 3, expected[i].grid));
      EXPECT_TRUE(std::equal(found[i].block, found[i].block + 3, expected[i].block));
      EXPECT_EQ(found[i].cluster, expected[i].cluster);
      EXPECT_EQ(found[i].shared_memory_bytes, expected[i].shared_memory_bytes);
      EXPECT_EQ(found[i].allowed_shared_memory_bytes, expected[i].allowed_shared_memory_bytes);
      EXPECT_EQ(found[i].is_dependent, expected[i].is_dependent);
      EXPECT_EQ(found[i].stream, expected[i].stream);
      const std::string kind =
          contains(expected[i].kernel, "RowKind)1") ? "RowKind)1" : "RowKind)0";
      EXPECT_TRUE(contains(expected[i].kernel, kind));
      ASSERT_EQ(found[i].params.size(), expected[i].params.size());
      // But padding, whose bytes no constructor writes.
      alignas(64) std::byte zeros[sizeof(kernels::AttentionArguments)],
          ones[sizeof(kernels::AttentionArguments)];
      std::memset(zeros, 0, sizeof zeros);
      std::memset(ones, 0xFF, sizeof ones);
      new (zeros) kernels::AttentionArguments;
      new (ones) kernels::AttentionArguments;
      size_t num_compared = 0;
      for (size_t at = 0; at < sizeof zeros; ++at) {
        if (zeros[at] != ones[at]) continue;
        ++num_compared;
        EXPECT_EQ(found[i].params[at], expected[i].params[at]) << "byte " << at;
      }
      EXPECT_GT(num_compared, sizeof zeros / 2);
      const auto offset = static_cast<size_t>(runtime_functor::attention_params_bytes());
      EXPECT_EQ(std::memcmp(&found[i].params[offset], a.functor.value.data(), sizeof(Documents)),
                0);
      EXPECT_EQ(std::memcmp(&expected[i].params[offset], a.functor.value.data(), sizeof(Documents)),
                0);
    }
  }
}

struct Chip {
  const char* shape;
  int32_t arch;
  int64_t head_dim;
  const char* kernel;
};
constexpr Chip kChips[] = {{"sm80.d128.bf16", 80, 128, "sm80.d128.bf16+every"},
                           {"sm90.d128.bf16", 90, 128, "sm90.d128.bf16+every"},
                           {"sm100.d128.bf16", 100, 128, "sm100.d128.bf16+every"},
                           {"sm100.d256.bf16", 100, 256, "sm100.d256.bf16+every"}};

TEST_F(CompiledFunctors, every_family_is_compiled_selected_and_launched) {
  const Folder folder;
  FunctorSource f = source_of("every", "Documents", functor_tests::functor_source("documents.hpp"));
  f.shapes = {"sm80.d128.bf16", "sm90.d128.bf16", "sm100.d128.bf16", "sm100.d256.bf16"};
  f.archs = {80, 90, 100};
  f.cache_dir = folder.path();
  // sm80 runs on each of the three.
  EXPECT_EQ(compiled(f).num_compiled, 3 * 2 + 4 + 1 + 1);
  for (const Chip& chip : kChips) {
    for (const int64_t rows : {1, 700}) {
      Attention a = call_on(chip.arch, chip.head_dim, rows);
      a.functor = documents("every", chip.arch);
      // Selected, but for decoding: little work is faster by sm80 on sm_90.
      Options options{.backend = "cuda"};
      if (rows == 1) options.kernel = chip.kernel;
      const std::vector<RecordedLaunch> launches = launches_of(a, chip.kernel, options);
      EXPECT_FALSE(launches.empty());
      for (const RecordedLaunch& launch : launches) {
        const cuda_tests::DescribedDevice& device =
            described_devices()[static_cast<size_t>(launch.device)];
        EXPECT_EQ(device.arch, chip.arch);
        EXPECT_EQ(launch.symbol, runtime_functor::kKernelName);
        ASSERT_EQ(launch.code.size(), 1U);
        EXPECT_EQ(launch.code[0].arch, chip.arch);
        EXPECT_GE(launch.grid[0], 1U);
        EXPECT_GT(launch.shared_memory_bytes, 0);
        EXPECT_LE(launch.shared_memory_bytes, launch.allowed_shared_memory_bytes);
        const cuda_tests::KernelSize size =
            cuda_tests::kernel_size(launch.code[0].image, launch.symbol);
        EXPECT_GT(size.text_bytes, 1024);
        EXPECT_EQ(size.static_shared_bytes, 0);
        const auto facts =
            runtime_functor::read_facts({reinterpret_cast<const char*>(launch.code[0].image.data()),
                                         launch.code[0].image.size()});
        ASSERT_TRUE(facts.has_value());
        EXPECT_EQ(facts->params_bytes, size.params_bytes);
        EXPECT_EQ(static_cast<size_t>(size.params_bytes), launch.params.size());
        EXPECT_EQ(facts->threads, static_cast<int32_t>(launch.block[0]));
      }
    }
  }
  EXPECT_EQ(cuda_tests::tensor_map_fault(), "");
  // A device whose architecture was not named.
  Attention a = call_on(89, 128);
  a.functor = documents("every", 89);
  const Status s = run(a, Options{.backend = "cuda", .kernel = "sm80.d128.bf16+every"});
  EXPECT_EQ(s.code(), StatusCode::kUnsupported);
  EXPECT_TRUE(contains(s.message(), "not compiled for architecture 89")) << s.message();

  // For instructions_test.py.
  f.nvrtc = kNoLibrary;
  fs::create_directories(PAGODA_CUBINS);
  for (const runtime_functor::Shape& shape : runtime_functor::shapes()) {
    for (const Chip& chip : kChips) {
      if (std::string(shape.name) != chip.shape) continue;
      for (const size_t variant : shape.variants) {
        const auto outcome = runtime_functor::compile(f, {{&shape, variant, chip.arch}});
        ASSERT_TRUE(outcome.ok()) << outcome.status().message();
        std::ofstream(fs::path(PAGODA_CUBINS) /
                          (std::string(shape.name) + "." + std::to_string(variant) + ".cubin"),
                      std::ios::binary)
            << outcome->code[0].cubin;
      }
    }
  }
}

TEST_F(CompiledFunctors, score_modification_is_compiled) {
  FunctorSource f =
      source_of("decay", "HeadDecay", functor_tests::functor_source("head_decay.hpp"));
  f.shapes = {"sm90.d64.bf16"};
  f.archs = {90};
  EXPECT_EQ(compiled(f).num_compiled, 4);
}

}  // namespace
}  // namespace pagoda::runtime_functor_tests
