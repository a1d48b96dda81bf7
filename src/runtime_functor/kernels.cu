// Host code: a table of rows that fit, plan and compute arguments for any functor, and copies of
// them that launch the kernels of one functor.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "arch/ptx/launch.hpp"
#include "backends/cuda/api.hpp"
#include "backends/cuda/gpu_machine.hpp"
#include "backends/gpu/guarded_rows.hpp"
#include "engine/functors.hpp"
#include "kernels/common/functor_family.hpp"
#include "kernels/common/kernel_table.hpp"
#include "kernels/common/make_instance.hpp"
#include "kernels/mha_sm100/family.hpp"
#include "kernels/mha_sm100_d512/family.hpp"
#include "kernels/mha_sm80/family.hpp"
#include "kernels/mha_sm90/family.hpp"
#include "runtime_functor/cubin.hpp"
#include "runtime_functor/kernels.hpp"

namespace pagoda::runtime_functor {
namespace {

constexpr size_t kMostVariants = 8;

struct LoadedKernel {
  cudaKernel_t entry = nullptr;
  KernelFacts facts;
};
using LoadedVariants = std::array<LoadedKernel, kMostVariants>;

// Parameters of a kernel with a functor of any type.
struct Params : kernels::AttentionParams {
  alignas(16) std::byte functor[kMaxFunctorBytes];
};

struct LoadedLaunch {
  const LoadedVariants* variants = nullptr;
  cudaStream_t stream = nullptr;
};

// A Launcher of kernels::instance().
struct OnLoaded {
  using Context = LoadedLaunch;

  template <class Family, size_t shape, size_t variant>
  static void launch(int32_t ctas, const kernels::LaunchArguments& arguments,
                     LoadedLaunch& launch) {
    static_assert(variant < kMostVariants);
    const auto& [entry, facts] = (*launch.variants)[variant];
    Params params;
    kernels::set_params(params, arguments, arch::make_tensor_map);
    std::memcpy(params.functor, arguments.functor, static_cast<size_t>(facts.functor_bytes));
    arch::check(arch::launch(reinterpret_cast<const void*>(entry),
                             {.threads = facts.threads,
                              .cluster = facts.cluster,
                              .shared_bytes = facts.shared_bytes,
                              .is_dependent = facts.is_dependent != 0},
                             {ctas}, &params, {.stream = launch.stream}),
                "launching attention");
  }
};

// All shapes of a family, for any functor.
template <class Base>
struct AnyFunctorFamily : kernels::FunctorLaunches<Base> {
  struct Functor;
};

template <class Base>
struct IsForFunctors;
template <>
struct IsForFunctors<mha_sm80::Family> {
  static constexpr int32_t kFamily = 80;
  static constexpr auto function = mha_sm80::is_for_functors;
};
template <>
struct IsForFunctors<mha_sm90::Family> {
  static constexpr int32_t kFamily = 90;
  static constexpr auto function = mha_sm90::is_for_functors;
};
template <>
struct IsForFunctors<mha_sm100::Family> {
  static constexpr int32_t kFamily = 100;
  static constexpr auto function = mha_sm100::is_for_functors;
};
template <>
struct IsForFunctors<mha_sm100_d512::Family> {
  static constexpr int32_t kFamily = 512;
  static constexpr auto function = mha_sm100_d512::is_for_functors;
};

}  // namespace
}  // namespace pagoda::runtime_functor

namespace pagoda::kernels {

template <class Base, size_t shape, size_t variant>
struct KernelOf<runtime_functor::AnyFunctorFamily<Base>, shape, variant> {
  // Any type: OnLoaded asks for none.
  using type = std::conditional_t<
      runtime_functor::IsForFunctors<Base>::function(Base::kShapes[shape], variant), int, void>;
};

}  // namespace pagoda::kernels

namespace pagoda::runtime_functor {

// A row of the table with kernels of its own. KernelTable's functions get it as their row.
class LoadedShape : public core::Kernel {
 public:
  LoadedShape(const Shape& shape, const std::string& functor)
      : core::Kernel(*shape.row),
        rank_(shape.rank),
        table_fit_(shape.row->fit),
        text_(std::string(shape.name) + "+" + functor) {
    name = text_.c_str();
    fit = fit_of_arch;
    const core::Kernel* row = this;
    guarded_ = std::make_unique<gpu::GuardedRows<cuda::Api>>(std::span(row, 1));
  }
  LoadedShape(const LoadedShape&) = delete;
  LoadedShape& operator=(const LoadedShape&) = delete;
  ~LoadedShape() = default;

  void add(const Code& code) {
    LoadedVariants* variants = of_arch(code.arch);
    if (variants == nullptr) variants = &code_.emplace_back(code.arch, LoadedVariants{}).second;
    LoadedKernel& loaded = (*variants)[code.variant];
    loaded.facts = code.facts;
    cudaLibrary_t library = nullptr;  // for the rest of the process
    arch::check(
        cudaLibraryLoadData(&library, code.cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "loading a compiled functor");
    arch::check(cudaLibraryGetKernel(&loaded.entry, library, kKernelName),
                "finding the kernel of a compiled functor");
  }

  [[nodiscard]] const LoadedVariants* of_arch(int32_t arch) const {
    const auto found = std::find_if(code_.begin(), code_.end(),
                                    [arch](const auto& each) { return each.first == arch; });
    return found == code_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] LoadedVariants* of_arch(int32_t arch) {
    return const_cast<LoadedVariants*>(std::as_const(*this).of_arch(arch));
  }
  [[nodiscard]] std::span<const core::Kernel> rows() const { return guarded_->rows(); }
  [[nodiscard]] int32_t rank() const { return rank_; }

 private:
  static core::Fit fit_of_arch(const core::Kernel& self, const core::Problem& problem,
                               const Options& options, std::string* reason) {
    const auto& row = static_cast<const LoadedShape&>(self);
    const int32_t arch = cuda::GpuMachine::properties(problem).arch;
    if (row.of_arch(arch) != nullptr) return row.table_fit_(self, problem, options, reason);
    return core::unfit(core::Fit::kElsewhere, reason, [&] {
      return "it was not compiled for architecture " + std::to_string(arch) + ", which the GPU has";
    });
  }

  int32_t rank_;
  decltype(core::Kernel::fit) table_fit_;
  std::string text_;
  std::vector<std::pair<int32_t, LoadedVariants>> code_;  // by architecture
  std::unique_ptr<gpu::GuardedRows<cuda::Api>> guarded_;
};

namespace {

// The machine of the table; fit_of_arch() asks whether there is code.
struct Loader : cuda::GpuMachine {
  using Launcher = OnLoaded;
  static constexpr bool serves(const kernels::Archs& /*archs*/) { return true; }
  static constexpr bool has_code(const kernels::Archs& /*archs*/) { return true; }
  static bool can_run(const kernels::Archs& /*archs*/, const core::Problem& /*problem*/) {
    return true;
  }
  static std::string unsupported_reason(const kernels::Archs& /*archs*/,
                                        const core::Problem& /*problem*/) {
    return {};
  }
  static LoadedLaunch make_context(const core::Kernel& row, const core::KernelPlan& plan,
                                   const core::Problem& problem, std::span<std::byte> workspace,
                                   const core::RunContext& context) {
    return {static_cast<const LoadedShape&>(row).of_arch(properties(problem).arch),
            GpuMachine::make_context(row, plan, problem, workspace, context)};
  }
  static void finish(const LoadedLaunch& /*launch*/) {}
};

// In the order of the table.
template <class Base>
void add_shapes(std::vector<Shape>& all, std::span<const core::Kernel> rows) {
  for (size_t i = 0; i < std::size(Base::kShapes); ++i) {
    const auto& shape = Base::kShapes[i];
    std::vector<size_t> variants;
    for (size_t v = 0; v < Base::kNumVariants; ++v) {
      if (IsForFunctors<Base>::function(shape, v)) variants.push_back(v);
    }
    all.push_back({shape.name, IsForFunctors<Base>::kFamily, i, &Base::kArchs, variants,
                   kernels::functor_rank<Base>(shape), &rows[all.size()]});
  }
}

template <class... Bases>
std::vector<Shape> make_shapes() {
  static const kernels::KernelTable<Loader> kTable{
      kernels::FamilyList<AnyFunctorFamily<Bases>...>()};
  std::vector<Shape> all;
  (add_shapes<Bases>(all, kTable.kernels()), ...);
  return all;
}

}  // namespace

std::span<const Shape> shapes() {
  static const std::vector<Shape> kShapes =
      make_shapes<mha_sm80::Family, mha_sm90::Family, mha_sm100::Family, mha_sm100_d512::Family>();
  return kShapes;
}

int32_t attention_params_bytes() { return sizeof(kernels::AttentionParams); }

std::vector<int32_t> archs_present() {
  std::vector<int32_t> archs;
  for (const arch::DeviceProperties& device : arch::devices()) {
    if (std::find(archs.begin(), archs.end(), device.arch) == archs.end()) {
      archs.push_back(device.arch);
    }
  }
  return archs;
}

std::shared_ptr<const LoadedShape> load(const Shape& shape, const std::string& functor,
                                        const std::vector<Code>& code) {
  auto loaded = std::make_shared<LoadedShape>(shape, functor);
  const std::vector<int32_t> present = archs_present();
  for (const Code& each : code) {
    if (std::find(present.begin(), present.end(), each.arch) != present.end()) loaded->add(each);
  }
  return loaded;
}

void register_shape(std::shared_ptr<const LoadedShape> loaded, const std::string& functor) {
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const LoadedShape>> kept;
  const std::scoped_lock lock(mutex);
  kept.push_back(std::move(loaded));
  engine::register_functor_kernels(functor, cuda::Api::kBackend, kept.back()->rank(),
                                   kept.back()->rows());
}

}  // namespace pagoda::runtime_functor
