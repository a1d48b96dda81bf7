// Happens-before as vector clocks. An agent makes accesses to memory: a thread, a warp's use of
// tensor memory, or an asynchronous operation. Its clock ticks at every synchronisation. A vector
// has one block for each CTA that it has learnt of: one entry an agent of the grid would be large.
#pragma once

#include <cstdint>
#include <vector>

namespace pagoda::emulator {

// CTA << kAgentBits | index in the CTA, plus one; 0: no agent.
using Agent = uint32_t;
inline constexpr int kAgentBits = 13;
inline constexpr Agent kNoAgent = 0;
[[nodiscard]] constexpr Agent make_agent(uint32_t cta, uint32_t index) {
  return (cta << kAgentBits | index) + 1;
}
[[nodiscard]] constexpr uint32_t agent_cta(Agent agent) { return (agent - 1) >> kAgentBits; }
[[nodiscard]] constexpr uint32_t agent_index(Agent agent) {
  return (agent - 1) & ((1U << kAgentBits) - 1);
}

class VectorClock {
 public:
  [[nodiscard]] uint32_t get(Agent agent) const {
    const uint32_t cta = agent_cta(agent);
    const uint32_t index = agent_index(agent);
    for (const Block& block : blocks_) {
      if (block.cta == cta) return index < block.times.size() ? block.times[index] : 0;
    }
    return 0;
  }
  void set(Agent agent, uint32_t time);
  void join(const VectorClock& other);  // the later of both, agent by agent
  void meet(const VectorClock& other);  // the earlier of both
  void clear() { blocks_.clear(); }

 private:
  struct Block {
    uint32_t cta;
    std::vector<uint32_t> times;
  };
  Block& block_of(uint32_t cta);
  std::vector<Block> blocks_;
};

// The accesses of other agents that happened before the next access of this one.
struct Clocks {
  VectorClock generic;  // as seen by ordinary loads and stores
  VectorClock async;    // as seen by the copy engine and the tensor cores' reads of shared memory:
                        // a proxy fence adds ordinary writes
  VectorClock tensor;   // as seen by accesses to tensor memory: a tcgen05 fence adds accesses

  void join(const Clocks& other) {
    generic.join(other.generic);
    async.join(other.async);
  }
  void meet(const Clocks& other) {  // what both know
    generic.meet(other.generic);
    async.meet(other.async);
  }
};

}  // namespace pagoda::emulator
