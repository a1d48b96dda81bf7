// Memory and calls. All arithmetic is the library's.
#include "cli/replay/layer_stack.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

#include "pagoda/executor.hpp"

namespace pagoda::replay {

namespace {

constexpr size_t kAlignment = 64;
constexpr int kNaNByte = 0xff;  // all-ones is NaN in every element type

class Stopwatch {
 public:
  // Adds the time since the last lap to `seconds`.
  void lap(double& seconds) {
    const auto now = Clock::now();
    seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

// Calls body(first, last) for slices of [0, count) on the executor's workers.
template <typename Body>
void parallel_slices(Executor& executor, int64_t count, const Body& body) {
  struct Context {
    const Body& body;
    int64_t count;
    int32_t slices;
  } context{body, count, executor.workers()};
  executor.parallel(
      context.slices,
      [](void* pointer, int32_t i) {
        const auto& c = *static_cast<const Context*>(pointer);
        c.body(c.count * i / c.slices, c.count * (i + 1) / c.slices);
      },
      &context);
}

}  // namespace

StepCost& StepCost::operator+=(const StepCost& other) {
  attention_seconds += other.attention_seconds;
  append_seconds += other.append_seconds;
  synthesis_seconds += other.synthesis_seconds;
  check_seconds += other.check_seconds;
  flops += other.flops;
  bytes += other.bytes;
  return *this;
}

Result<std::unique_ptr<LayerStack>> LayerStack::create(const StackConfig& config,
                                                       const Synthesis& synthesis) {
  std::unique_ptr<LayerStack> stack(new LayerStack(config, synthesis));
  const auto bytes = static_cast<size_t>(config.num_pages * config.page_size *
                                         config.token_bytes() / (2 * config.num_layers));
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto allocate = [&] {
    Memory memory(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
    if (memory) std::memset(memory.get(), kNaNByte, rounded);
    return memory;
  };
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    Pool pool{.k = allocate(), .v = allocate()};
    if (!pool.k || !pool.v) {
      return Status(StatusCode::kOutOfMemory, "cache",
                    fmt::format("no memory for the cache: layer {} of {} needs {} bytes", layer + 1,
                                config.num_layers, 2 * rounded));
    }
    stack->pools_.push_back(std::move(pool));
  }
  return stack;
}

void LayerStack::reserve_rows(int64_t tokens) {
  const auto bytes = [&](int32_t heads) {
    return static_cast<size_t>(tokens * heads * config_.model.head_dim * size_bytes(config_.dtype));
  };
  const size_t q_bytes = bytes(config_.model.num_q_heads);
  if (q_.size() >= q_bytes) return;
  q_.resize(q_bytes);
  out_.resize(q_bytes);
  k_.resize(bytes(config_.model.num_kv_heads));
  v_.resize(k_.size());
  lse_.resize(static_cast<size_t>(tokens * config_.model.num_q_heads));
}

void LayerStack::synthesise(const Batch& batch, int32_t layer) {
  const ModelShape& model = config_.model;
  const auto vector_bytes = static_cast<size_t>(model.head_dim * size_bytes(config_.dtype));
  const auto write = [&](Operand operand, int64_t token, int32_t heads, std::byte* rows) {
    for (int32_t head = 0; head < heads; ++head) {
      const auto vector = static_cast<size_t>(token * heads + head);
      synthesis_.write(operand, batch.token_keys[static_cast<size_t>(token)], layer, head,
                       rows + vector * vector_bytes);
    }
  };
  Executor* executor = config_.options.executor;
  parallel_slices(executor != nullptr ? *executor : default_executor(), batch.tokens(),
                  [&](int64_t first, int64_t last) {
                    for (int64_t token = first; token < last; ++token) {
                      write(Operand::kQuery, token, model.num_q_heads, q_.data());
                      write(Operand::kKey, token, model.num_kv_heads, k_.data());
                      write(Operand::kValue, token, model.num_kv_heads, v_.data());
                    }
                    // Poison: a row that the kernel forgets must not keep an older result.
                    const auto row_bytes = static_cast<size_t>(model.num_q_heads) * vector_bytes;
                    std::memset(out_.data() + static_cast<size_t>(first) * row_bytes, kNaNByte,
                                static_cast<size_t>(last - first) * row_bytes);
                  });
  std::memset(lse_.data(), kNaNByte,
              static_cast<size_t>(batch.tokens() * model.num_q_heads) * sizeof(float));
}

Status LayerStack::append(const Batch& batch, int32_t layer) {
  const ModelShape& model = config_.model;
  Pool& pool = pools_[static_cast<size_t>(layer)];
  const auto rows = [&](const std::vector<std::byte>& data) {
    return ConstTensor::contiguous(data.data(), config_.dtype,
                                   {batch.tokens(), model.num_kv_heads, model.head_dim});
  };
  const auto pages = [&](const Memory& memory) {
    return Tensor::contiguous(
        memory.get(), config_.kv_dtype,
        {config_.num_pages, model.num_kv_heads, config_.page_size, model.head_dim});
  };
  AppendKV append;
  append.k_new = rows(k_);
  append.v_new = rows(v_);
  append.slot_mapping = batch.slots;
  append.k_cache = pages(pool.k);
  append.v_cache = pages(pool.v);
  append.layout = PageLayout::kHND;  // a head's rows of a page are one run of memory
  append.kv_scales = synthesis_.kv_scales();
  return append_kv(append, config_.options);
}

Attention LayerStack::make_attention(const Batch& batch, int32_t layer) {
  const ModelShape& model = config_.model;
  const Pool& pool = pools_[static_cast<size_t>(layer)];
  const auto pages = [&](const Memory& memory) {
    return ConstTensor::contiguous(
        memory.get(), config_.kv_dtype,
        {config_.num_pages, model.num_kv_heads, config_.page_size, model.head_dim});
  };
  Attention attention;
  attention.q = ConstTensor::contiguous(q_.data(), config_.dtype,
                                        {batch.tokens(), model.num_q_heads, model.head_dim});
  attention.cu_seqlens_q = batch.cu_seqlens_q;
  attention.kv = PagedKV{.k = pages(pool.k),
                         .v = pages(pool.v),
                         .layout = PageLayout::kHND,
                         .table = CsrPages{.indptr = batch.page_indptr,
                                           .indices = batch.page_indices,
                                           .last_page_len = batch.last_page_len}};
  attention.kv_scales = synthesis_.kv_scales();
  attention.softmax_scale = model.scale();
  attention.mask = model.mask(model.layer_kind(layer));
  attention.score_mod.softcap = model.softcap;
  attention.sinks = synthesis_.sinks();
  attention.out = Tensor::contiguous(out_.data(), config_.dtype,
                                     {batch.tokens(), model.num_q_heads, model.head_dim});
  attention.lse = Tensor::contiguous(lse_.data(), DType::kF32, {batch.tokens(), model.num_q_heads});
  return attention;
}

// Plans once for every kind of layer: pages and lengths are the same in all of them.
Status LayerStack::attend(const Attention& attention, int32_t kind, Plans& plans, StepCost& cost) {
  std::optional<Plan>& planned = plans[static_cast<size_t>(kind)];
  if (!planned) {
    Result<Plan> result = plan(attention, config_.options);
    if (!result) return result.status();
    planned = std::move(*result);
    kernel_ = planned->kernel();
  }
  const auto needed = static_cast<size_t>(planned->workspace_bytes()) + kAlignment;
  if (workspace_.size() < needed) workspace_.resize(needed);
  void* start = workspace_.data();
  size_t space = workspace_.size();
  std::align(kAlignment, space - kAlignment, start, space);
  std::fill_n(static_cast<std::byte*>(start), planned->zeroed_workspace_bytes(), std::byte{0});
  cost.flops += planned->flops();
  const double rows = static_cast<double>(attention.q.shape[0] * attention.q.strides[0]);
  cost.bytes += planned->kv_bytes() + 2 * rows * static_cast<double>(size_bytes(config_.dtype));
  return pagoda::run(*planned, attention, std::span(static_cast<std::byte*>(start), space));
}

Result<StepCost> LayerStack::run(const Batch& batch, const Inspector& inspect) {
  reserve_rows(batch.tokens());
  Plans plans;
  StepCost cost;
  Stopwatch watch;
  for (int32_t layer = 0; layer < config_.num_layers; ++layer) {
    synthesise(batch, layer);
    watch.lap(cost.synthesis_seconds);
    if (Status s = append(batch, layer); !s) return s;
    watch.lap(cost.append_seconds);
    const Attention attention = make_attention(batch, layer);
    if (Status s = attend(attention, config_.model.layer_kind(layer), plans, cost); !s) return s;
    watch.lap(cost.attention_seconds);
    inspect(layer, {.out = out_.data(), .lse = lse_.data()});
    watch.lap(cost.check_seconds);
  }
  return cost;
}

}  // namespace pagoda::replay
