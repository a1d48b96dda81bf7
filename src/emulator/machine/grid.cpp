// Clusters and CTAs at their start.
#include "emulator/machine/grid.hpp"

#include <cstring>
#include <utility>

#include "core/int_math.hpp"
#include "emulator/memory/tensor_memory.hpp"

namespace pagoda::emulator {
namespace {

// Slots of asynchronous operations, a CTA; more when more are in flight. A slot is used again after
// at least so many other operations: a missing wait that old goes unseen.
constexpr uint32_t kAsyncSlots = 256;
constexpr size_t kSharedAlignment = 1024;

}  // namespace

std::unique_ptr<Cta> Grid::make_cta(Cluster& cluster, uint32_t index, int rank,
                                    const std::function<void()>& kernel) const {
  auto cta = std::make_unique<Cta>();
  cta->cluster = &cluster;
  cta->index = index;
  cta->rank = rank;
  const auto position = static_cast<int32_t>(index);
  cta->block_idx = {position % shape_.grid.x, position / shape_.grid.x % shape_.grid.y,
                    position / shape_.grid.x / shape_.grid.y};
  cta->shared_storage = std::make_unique<std::byte[]>(shape_.shared_bytes + kSharedAlignment);
  void* base = cta->shared_storage.get();
  size_t space = shape_.shared_bytes + kSharedAlignment;
  cta->shared =
      static_cast<std::byte*>(std::align(kSharedAlignment, shape_.shared_bytes, base, space));
  cta->shared_bytes = shape_.shared_bytes;
  // Poison: as fp32, bf16, fp16 and e4m3 alike a NaN.
  std::memset(cta->shared, 0xff, shape_.shared_bytes);
  cta->shared_shadow = ShadowMemory(shape_.shared_bytes);
  cta->slots.resize(kAsyncSlots);
  for (uint32_t slot = 0; slot < kAsyncSlots; ++slot) cta->free_slots.push_back(slot);
  cta->threads.resize(static_cast<size_t>(shape_.threads));
  cta->warps.resize(static_cast<size_t>(core::ceil_div(shape_.threads, shape_.warp_size)));
  cta->warpgroups.resize(static_cast<size_t>(shape_.threads + 127) / 128);
  for (Warp& warp : cta->warps) warp.registers = shape_.registers;
  cta->running = shape_.threads;
  for (int i = 0; i < shape_.threads; ++i) {
    Thread& thread = cta->threads[static_cast<size_t>(i)];
    thread.cta = cta.get();
    thread.index = i;
    thread.warp_size = shape_.warp_size;
    thread.may_touch_global = !shape_.is_dependent;
    thread.agent = make_agent(index, static_cast<uint32_t>(i));
    thread.clocks = std::make_shared<Clocks>();
    thread.clocks->generic.set(thread.agent, thread.time);
    thread.fiber = std::make_unique<Fiber>([&kernel] { kernel(); });
  }
  return cta;
}

std::unique_ptr<Cluster> Grid::make_cluster(uint32_t number,
                                            const std::function<void()>& kernel) const {
  auto cluster = std::make_unique<Cluster>();
  const uint32_t ctas = shape_.ctas_per_cluster();
  for (uint32_t rank = 0; rank < ctas; ++rank) {
    cluster->ctas.push_back(
        make_cta(*cluster, number * ctas + rank, static_cast<int>(rank), kernel));
  }
  cluster->running = shape_.cluster_size;
  return cluster;
}

Cta* Grid::find_cta(const void* shared_address) const {
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      if (cta->owns(shared_address)) return cta.get();
    }
  }
  return nullptr;
}

std::string Grid::describe(Agent agent) const {
  const uint32_t index = agent_index(agent);
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      if (cta->index != agent_cta(agent)) continue;
      if (index < static_cast<uint32_t>(shape_.threads)) {
        return emulator::describe(cta->threads[index]);
      }
      if (index < shape_.first_engine()) return cta->tensor_memory->describe(agent);
      if (index < shape_.first_slot()) {
        return "issued by " +
               emulator::describe(cta->threads[(index - shape_.first_engine()) * 32]);
      }
      const Cta::Issued& issued = cta->slots[index - shape_.first_slot()];
      if (issued.issuer != nullptr) return "issued by " + emulator::describe(*issued.issuer);
    }
  }
  return "CTA " + std::to_string(agent_cta(agent));
}

}  // namespace pagoda::emulator
