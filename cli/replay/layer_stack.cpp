// Memory and calls; all arithmetic is done by the library.
#include "cli/replay/layer_stack.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <fmt/format.h>
#include <stdexcept>
#include <utility>

#include "engine/cost.hpp"
#include "engine/validate.hpp"
#include "pagoda/executor.hpp"
#include "testing/mirror/arrays.hpp"
#include "testing/mirror/host_space.hpp"

namespace pagoda::replay {

namespace {

constexpr std::byte kNaN{0xff};                   // all-ones is NaN in every element type
constexpr int64_t kLaneBytes = int64_t{4} << 30;  // device memory for layers in flight

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

LayerOutput::Row LayerOutput::row(int64_t vector) const {
  Row row;
  row.out.resize(static_cast<size_t>(vector_bytes_));
  space_.copy_out(row.out.data(), out_ + vector * vector_bytes_, vector_bytes_);
  space_.copy_out(&row.lse, reinterpret_cast<const std::byte*>(lse_ + vector), sizeof row.lse);
  return row;
}

LayerStack::LayerStack(core::MemorySpace& space, StackConfig config, const Synthesis& synthesis)
    : space_(space), config_(std::move(config)), synthesis_(synthesis), arrays_(space) {
  sinks_ = arrays_.sinks.send(std::span<const float>(synthesis.sinks()));
}

Result<std::unique_ptr<LayerStack>> LayerStack::create(const StackConfig& config,
                                                       const Synthesis& synthesis) {
  const int64_t bytes =
      config.num_pages * config.page_size * config.token_bytes() / (2 * config.num_layers);
  int32_t layer = 0;
  try {
    core::MemorySpace& space = mirror::space_of(config.options.backend);
    std::unique_ptr<LayerStack> stack(new LayerStack(space, config, synthesis));
    for (; layer < config.num_layers; ++layer) {
      Pool& pool = stack->pools_.emplace_back();
      for (mirror::Block* block : {&pool.k, &pool.v}) {
        *block = mirror::Block(space, bytes);
        space.fill(block->data(), kNaN, bytes);
      }
    }
    return stack;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, "cache",
                  fmt::format("no memory for the cache: layer {} of {} needs {} bytes", layer + 1,
                              config.num_layers, 2 * bytes));
  } catch (const std::exception& e) {
    return Status(StatusCode::kUnsupported, "backend", e.what());
  }
}

// The host computes one layer after the other, on rows that stay in its caches.
void LayerStack::make_lanes(int64_t needed) {
  if (needed <= lane_tokens_) return;
  const auto tokens = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(needed)));
  const ModelShape& model = config_.model;
  const int64_t vector = model.head_dim * size_bytes(config_.dtype);
  const int64_t q_bytes = tokens * model.num_q_heads * vector;
  const int64_t k_bytes = tokens * model.num_kv_heads * vector;
  const int64_t fitting = kLaneBytes / std::max<int64_t>(2 * (q_bytes + k_bytes), 1);
  const int64_t count =
      space_.is_host() ? 1 : std::clamp<int64_t>(fitting, 1, int64_t{config_.num_layers});
  lanes_.clear();
  for (int64_t i = 0; i < count; ++i) {
    Lane& lane = lanes_.emplace_back(space_);
    lane.q.reserve(q_bytes);
    lane.k.reserve(k_bytes);
    lane.v.reserve(k_bytes);
    lane.out = mirror::Block(space_, q_bytes);
    lane.lse = mirror::Block(space_, tokens * model.num_q_heads * int64_t{sizeof(float)});
  }
  lane_tokens_ = tokens;
}

LayerStack::SeenBatch LayerStack::send(const Batch& batch) {
  return {.cu_seqlens_q = arrays_.cu_seqlens_q.send(std::span(batch.cu_seqlens_q)),
          .page_indptr = arrays_.page_indptr.send(std::span(batch.page_indptr)),
          .page_indices = arrays_.page_indices.send(std::span(batch.page_indices)),
          .last_page_len = arrays_.last_page_len.send(std::span(batch.last_page_len)),
          .slots = arrays_.slots.send(std::span(batch.slots))};
}

void LayerStack::synthesise(const Batch& batch, int32_t layer) {
  const ModelShape& model = config_.model;
  const auto vector_bytes = static_cast<size_t>(model.head_dim * size_bytes(config_.dtype));
  Lane& rows = lane(layer);
  const auto write = [&](Operand operand, int64_t token, int32_t heads, std::byte* to) {
    for (int32_t head = 0; head < heads; ++head) {
      const auto vector = static_cast<size_t>(token * heads + head);
      synthesis_.write(operand, batch.token_keys[static_cast<size_t>(token)], layer, head,
                       to + vector * vector_bytes);
    }
  };
  Executor* executor = config_.options.executor;
  parallel_slices(executor != nullptr ? *executor : default_executor(), batch.tokens(),
                  [&](int64_t first, int64_t last) {
                    for (int64_t token = first; token < last; ++token) {
                      write(Operand::kQuery, token, model.num_q_heads, rows.q.host());
                      write(Operand::kKey, token, model.num_kv_heads, rows.k.host());
                      write(Operand::kValue, token, model.num_kv_heads, rows.v.host());
                    }
                  });
  const auto row_bytes = static_cast<int64_t>(vector_bytes) * batch.tokens();
  rows.q.send(row_bytes * model.num_q_heads);
  rows.k.send(row_bytes * model.num_kv_heads);
  rows.v.send(row_bytes * model.num_kv_heads);
  // Poison: a row that the kernel does not write must not keep an older result.
  space_.fill(rows.out.data(), kNaN, row_bytes * model.num_q_heads);
  space_.fill(rows.lse.data(), kNaN, batch.tokens() * model.num_q_heads * int64_t{sizeof(float)});
}

Status LayerStack::append(const SeenBatch& batch, int32_t layer) {
  const ModelShape& model = config_.model;
  const Device device = space_.device();
  Pool& pool = pools_[static_cast<size_t>(layer)];
  const auto rows = [&](const mirror::Staged& data) {
    return ConstTensor::contiguous(data.seen(), config_.dtype,
                                   {std::ssize(batch.slots), model.num_kv_heads, model.head_dim},
                                   device);
  };
  const auto pages = [&](const mirror::Block& memory) {
    return Tensor::contiguous(
        memory.data(), config_.kv_dtype,
        {config_.num_pages, model.num_kv_heads, config_.page_size, model.head_dim}, device);
  };
  AppendKV append;
  append.k_new = rows(lane(layer).k);
  append.v_new = rows(lane(layer).v);
  append.slot_mapping = batch.slots;
  append.k_cache = pages(pool.k);
  append.v_cache = pages(pool.v);
  append.layout = PageLayout::kHND;  // a head's rows of a page are one run of memory
  append.kv_scales = synthesis_.kv_scales();
  return append_kv(append, config_.options);
}

Attention LayerStack::make_attention(const Batch& batch, const SeenBatch& seen, int32_t layer) {
  const ModelShape& model = config_.model;
  const Device device = space_.device();
  const Pool& pool = pools_[static_cast<size_t>(layer)];
  const Lane& rows = lane(layer);
  const auto pages = [&](const mirror::Block& memory) {
    return ConstTensor::contiguous(
        memory.data(), config_.kv_dtype,
        {config_.num_pages, model.num_kv_heads, config_.page_size, model.head_dim}, device);
  };
  Attention attention;
  attention.q = ConstTensor::contiguous(
      rows.q.seen(), config_.dtype, {batch.tokens(), model.num_q_heads, model.head_dim}, device);
  attention.cu_seqlens_q = seen.cu_seqlens_q;
  attention.kv = PagedKV{.k = pages(pool.k),
                         .v = pages(pool.v),
                         .layout = PageLayout::kHND,
                         .table = CsrPages{.indptr = seen.page_indptr,
                                           .indices = seen.page_indices,
                                           .last_page_len = seen.last_page_len}};
  attention.kv_scales = synthesis_.kv_scales();
  attention.softmax_scale = model.scale();
  attention.mask = model.mask(model.layer_kind(layer));
  attention.score_mod.softcap = model.softcap;
  attention.sinks = sinks_;
  attention.max_seqlen_q = batch.max_seqlen_q();
  attention.max_seqlen_kv = batch.max_seqlen_kv(config_.page_size);
  attention.out = Tensor::contiguous(rows.out.data(), config_.dtype,
                                     {batch.tokens(), model.num_q_heads, model.head_dim}, device);
  attention.lse =
      Tensor::contiguous(rows.lse.data(), DType::kF32, {batch.tokens(), model.num_q_heads}, device);
  return attention;
}

// Plans once for every kind of layer: pages and lengths are the same in all of them.
Status LayerStack::plan_layers(const Batch& batch, const SeenBatch& seen, Plans& plans) {
  for (int32_t layer = 0; layer < config_.num_layers; ++layer) {
    const auto kind = static_cast<size_t>(config_.model.layer_kind(layer));
    if (plans[kind]) continue;
    Result<Plan> planned = plan(make_attention(batch, seen, layer), config_.options);
    if (!planned) return planned.status();
    plans[kind] = std::move(*planned);
    mirror::Block& workspace = workspaces_[kind];
    const int64_t needed = plans[kind]->workspace_bytes();
    if (workspace.bytes() < needed) workspace = mirror::Block(space_, needed);
    space_.fill(workspace.data(), std::byte{0}, plans[kind]->zeroed_workspace_bytes());
    kernel_ = plans[kind]->kernel();
  }
  return {};
}

// From the host's lengths, which a plan for a GPU does not depend on.
Status LayerStack::count_cost(const Batch& batch, StepCost& cost) {
  const SeenBatch host{.cu_seqlens_q = batch.cu_seqlens_q,
                       .page_indptr = batch.page_indptr,
                       .page_indices = batch.page_indices,
                       .last_page_len = batch.last_page_len,
                       .slots = batch.slots};
  std::array<std::optional<engine::Cost>, 2> costs;  // by kind of layer
  for (int32_t layer = 0; layer < config_.num_layers; ++layer) {
    std::optional<engine::Cost>& of_kind =
        costs[static_cast<size_t>(config_.model.layer_kind(layer))];
    if (!of_kind) {
      Attention attention = make_attention(batch, host, layer);
      attention.sinks = synthesis_.sinks();
      mirror::replace_arrays(attention, {}, [](const mirror::Array& array) { return array.data; });
      const Result<core::Problem> problem = engine::validate(attention, {.backend = "reference"});
      if (!problem) return problem.status();
      of_kind = engine::cost(*problem);
    }
    const auto q_bytes = static_cast<double>(batch.tokens() * config_.model.num_q_heads *
                                             config_.model.head_dim * size_bytes(config_.dtype));
    cost.flops += of_kind->flops;
    cost.bytes += of_kind->kv_bytes + 2 * q_bytes;
  }
  return {};
}

Status LayerStack::run_attention(const Attention& attention, int32_t layer, const Plans& plans) {
  const auto kind = static_cast<size_t>(config_.model.layer_kind(layer));
  return pagoda::run(*plans[kind], attention, workspaces_[kind].span());
}

Status LayerStack::run_layers(const Batch& batch, const SeenBatch& seen, int32_t first,
                              Plans& plans, StepCost& cost, const Inspector& inspect) {
  const int32_t last = std::min(config_.num_layers, first + static_cast<int32_t>(lanes_.size()));
  Stopwatch watch;
  for (int32_t layer = first; layer < last; ++layer) synthesise(batch, layer);
  space_.wait();
  watch.lap(cost.synthesis_seconds);
  for (int32_t layer = first; layer < last; ++layer) {
    if (Status s = append(seen, layer); !s) return s;
  }
  space_.wait();
  watch.lap(cost.append_seconds);
  if (first == 0) {
    if (Status s = plan_layers(batch, seen, plans); !s) return s;
  }
  for (int32_t layer = first; layer < last; ++layer) {
    const Attention attention = make_attention(batch, seen, layer);
    if (Status s = run_attention(attention, layer, plans); !s) return s;
  }
  space_.wait();
  watch.lap(cost.attention_seconds);
  for (int32_t layer = first; layer < last; ++layer) {
    const Lane& rows = lane(layer);
    inspect(layer,
            LayerOutput(space_, rows.out.data(), reinterpret_cast<const float*>(rows.lse.data()),
                        config_.model.head_dim * size_bytes(config_.dtype)));
  }
  watch.lap(cost.check_seconds);
  return {};
}

Result<StepCost> LayerStack::run_step(const Batch& batch, const Inspector& inspect) {
  make_lanes(batch.tokens());
  const SeenBatch seen = send(batch);
  Plans plans;
  StepCost cost;
  if (Status s = count_cost(batch, cost); !s) return s;
  const auto lanes = static_cast<int32_t>(lanes_.size());
  for (int32_t first = 0; first < config_.num_layers; first += lanes) {
    if (Status s = run_layers(batch, seen, first, plans, cost, inspect); !s) return s;
  }
  return cost;
}

Result<StepCost> LayerStack::run(const Batch& batch, const Inspector& inspect) {
  try {
    return run_step(batch, inspect);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, "", "no memory for the rows of a step");
  } catch (const std::runtime_error& e) {  // a device error
    return Status(StatusCode::kInternal, "", e.what());
  }
}

}  // namespace pagoda::replay
