// The CPU back end's kernels: blocked flash attention, one row of the registry per instruction set.
// Plans the work items, distributes them to workers and provides each worker's scratch.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "backends/cpu/isa/tile_ops.hpp"
#include "backends/cpu/isa_level.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/tile_geometry.hpp"
#include "backends/cpu/tile_worker.hpp"
#include "core/host_memory.hpp"
#include "core/int_math.hpp"
#include "schedule/work_list.hpp"

namespace pagoda::cpu {
namespace {

struct TiledPlan final : core::KernelPlan {
  TileGeometry geometry;
  schedule::WorkList work;
};

// The cost of reading and packing one key, in units of one query row for one key (SPR, 2.7 GHz: 45
// ns from memory; about 0.3 ns a row with AMX, 2.7 ns a row in fp32).
int32_t rows_per_key_load(const TileOps& ops) { return ops.is_bf16 ? 64 : 16; }

std::string level_reason(IsaLevel needed) {
  const bool is_capped = detected_isa_level() >= needed;
  return std::string("needs ") + name(needed) +
         (is_capped ? "; the level is capped at " : "; this machine goes up to ") +
         name(is_capped ? active_isa_level() : detected_isa_level());
}

core::Fit bf16_fit(const core::Problem& problem, std::string* reason) {
  const auto is_exact_in_bf16 = [](DType dtype) {
    return dtype == DType::kBF16 || dtype == DType::kF8E4M3;
  };
  for (const DType dtype : {problem.q.dtype, problem.k.dtype, problem.v.dtype}) {
    if (is_exact_in_bf16(dtype)) continue;
    return core::unfit(core::Fit::kTypes, reason, [&] {
      return std::string("computes in bf16, which rounds ") + name(dtype);
    });
  }
  return core::Fit::kServes;
}

template <IsaLevel Level, const TileOps& Ops>
core::Fit fit(const core::Kernel& /*self*/, const core::Problem& problem, const Options& options,
              std::string* reason) {
  if (active_isa_level() < Level) {
    return core::unfit(core::Fit::kElsewhere, reason, [] { return level_reason(Level); });
  }
  if (options.schedule != Schedule::kAutomatic) {
    return core::unfit(core::Fit::kFeatures, reason,
                       [] { return "schedules other than automatic are for GPUs"; });
  }
  return Ops.is_bf16 ? bf16_fit(problem, reason) : core::Fit::kServes;
}

// The AVX-512 row follows in the table and serves every call that AVX512_BF16 serves.
bool is_ranked_lower_than_f32(const core::Kernel& /*self*/, const core::Problem& /*problem*/,
                              const Options& /*options*/, std::string* reason) {
  if (!is_f32_faster_than_bf16_dot()) return false;
  if (reason != nullptr) {
    *reason =
        "vdpbf16ps has half the rate of fp32 products on this processor; PAGODA_ISA=avx512_bf16 "
        "selects this kernel";
  }
  return true;
}

int64_t counter_bytes(const schedule::WorkList& work, int32_t num_kv_heads) {
  return core::align_up<int64_t>(int64_t{work.num_merge_groups} * num_kv_heads * 4, 64);
}

template <const TileOps& Ops>
Result<std::unique_ptr<core::KernelPlan>> plan(const core::Kernel& /*self*/,
                                               const core::Problem& problem,
                                               const Options& options) {
  auto result = std::make_unique<TiledPlan>();
  result->geometry = make_tile_geometry(problem, Ops);
  result->work =
      schedule::make_work_list(problem, {.max_rows = result->geometry.max_rows,
                                         .tile_keys = result->geometry.tile_keys,
                                         .rows_per_key_load = rows_per_key_load(Ops),
                                         .workers = options.executor->workers(),
                                         .is_batch_invariant = options.is_batch_invariant,
                                         .most_splits = options.num_kv_splits});
  const schedule::WorkList& work = result->work;
  const int64_t partial_rows = work.num_partial_rows * problem.num_kv_heads;
  result->workspace_bytes =
      counter_bytes(work, problem.num_kv_heads) + partial_rows * (result->geometry.columns + 2) * 4;
  result->worker_scratch_bytes = result->geometry.total_bytes;
  result->num_work_items = static_cast<int64_t>(work.items.size()) * problem.num_kv_heads;
  result->num_split_rows = work.num_split_rows * problem.num_kv_heads;
  return std::unique_ptr<core::KernelPlan>(std::move(result));
}

Partials place_partials(const TiledPlan& plan, const core::Problem& problem,
                        std::span<std::byte> workspace) {
  Partials partials;
  partials.num_merge_groups = plan.work.num_merge_groups;
  partials.num_partial_rows = plan.work.num_partial_rows;
  if (partials.num_merge_groups == 0) return partials;
  std::byte* next = workspace.data();
  partials.counters = reinterpret_cast<int32_t*>(next);
  next += counter_bytes(plan.work, problem.num_kv_heads);
  partials.o = reinterpret_cast<float*>(next);
  partials.sums =
      partials.o + partials.num_partial_rows * problem.num_kv_heads * plan.geometry.columns;
  for (const schedule::WorkItem& item : plan.work.items) {
    if (item.merge_group < 0) continue;
    for (int64_t head = 0; head < problem.num_kv_heads; ++head) {
      partials.counters[head * partials.num_merge_groups + item.merge_group] = item.num_splits;
    }
  }
  return partials;
}

// The calling thread's tile buffer: kept until the thread exits, grows and never shrinks. A nested
// call from a user's functor finds it taken and allocates another one.
class ThreadScratch {
 public:
  explicit ThreadScratch(int64_t bytes) : is_nested_(kept().is_taken) {
    Buffer& buffer = is_nested_ ? own_ : kept();
    if (std::cmp_less(buffer.memory.size(), bytes)) {
      buffer.memory = {};
      buffer.memory = core::HostMemory(static_cast<size_t>(bytes));
    }
    buffer.is_taken = true;  // not if the allocation has failed
    data_ = buffer.memory.data();
  }
  ThreadScratch(const ThreadScratch&) = delete;
  ThreadScratch& operator=(const ThreadScratch&) = delete;
  ~ThreadScratch() {
    if (!is_nested_) kept().is_taken = false;
  }

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  struct Buffer {
    core::HostMemory memory;
    bool is_taken = false;
  };
  static Buffer& kept() {
    thread_local Buffer buffer;
    return buffer;
  }

  bool is_nested_;
  Buffer own_;
  std::byte* data_ = nullptr;
};

struct Region {
  const core::Problem& problem;
  const TiledPlan& plan;
  const TileOps& ops;
  const Partials partials;
  std::atomic<int64_t> next{0};
};

void work(void* context, int32_t /*worker*/) {
  auto& region = *static_cast<Region*>(context);
  const ThreadScratch scratch(region.plan.geometry.total_bytes);
  TileWorker worker(region.problem, region.ops, region.plan.geometry, region.partials,
                    scratch.data());
  const int64_t heads = region.problem.num_kv_heads;
  const int64_t units = region.plan.num_work_items;
  for (;;) {
    const int64_t unit = region.next.fetch_add(1, std::memory_order_relaxed);
    if (unit >= units) return;
    worker.run(region.plan.work.items[static_cast<size_t>(unit / heads)],
               static_cast<int32_t>(unit % heads));
  }
}

template <const TileOps& Ops>
void run(const core::Kernel& /*self*/, const core::KernelPlan& kernel_plan,
         const core::Problem& problem, std::span<std::byte> workspace,
         const core::RunContext& context) {
  const auto& plan = static_cast<const TiledPlan&>(kernel_plan);
  if (plan.num_work_items == 0) return;
  Region region{problem, plan, Ops, place_partials(plan, problem, workspace)};
  const auto workers =
      static_cast<int32_t>(std::min<int64_t>(context.executor->workers(), plan.num_work_items));
  context.executor->parallel(workers, work, &region);
}

template <IsaLevel Level, const TileOps& Ops>
constexpr core::Kernel row(const char* name,
                           decltype(core::Kernel::is_ranked_lower) is_ranked_lower = nullptr) {
  return {.name = name,
          .backend = "cpu",
          .fit = fit<Level, Ops>,
          .plan = plan<Ops>,
          .run = run<Ops>,
          .is_ranked_lower = is_ranked_lower};
}

constexpr core::Kernel kKernels[] = {
#if defined(__x86_64__)
    row<IsaLevel::kAmx, kTileOpsAmxBf16>("cpu.bf16.amx"),
    row<IsaLevel::kAvx512Bf16, kTileOpsAvx512Bf16>("cpu.bf16.avx512_bf16",
                                                   is_ranked_lower_than_f32),
    row<IsaLevel::kAvx512, kTileOpsAvx512F32>("cpu.f32.avx512"),
    row<IsaLevel::kAvx2, kTileOpsAvx2F32>("cpu.f32.avx2"),
#endif
    row<IsaLevel::kScalar, kTileOpsScalarF32>("cpu.f32.scalar"),
};

}  // namespace

std::span<const core::Kernel> kernels() { return kKernels; }

}  // namespace pagoda::cpu
