// The grid of a launch: starts its clusters, owns those that are resident, and finds the CTA of an
// address and the thread of an agent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/hierarchy.hpp"
#include "emulator/machine/launch_shape.hpp"

namespace pagoda::emulator {

class Grid {
 public:
  explicit Grid(const LaunchShape& shape)
      : shape_(shape), num_clusters_(shape.num_ctas() / shape.ctas_per_cluster()) {}

  [[nodiscard]] const LaunchShape& shape() const { return shape_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Cluster>>& resident() const { return clusters_; }

  // Starts clusters until `resident` are there or the grid has no more. Their threads run `kernel`;
  // on_thread(thread) for each.
  template <class OnThread>
  void start_clusters(int resident, const std::function<void()>& kernel, OnThread on_thread) {
    while (next_cluster_ < num_clusters_ && clusters_.size() < static_cast<size_t>(resident)) {
      clusters_.push_back(make_cluster(next_cluster_++, kernel));
      for (const auto& cta : clusters_.back()->ctas) {
        for (Thread& thread : cta->threads) on_thread(thread);
      }
    }
  }
  // Removes clusters that have ended and have no operation in flight; on_cta(cta) for each CTA.
  template <class OnCta>
  void remove_ended(OnCta on_cta) {
    std::erase_if(clusters_, [&](const auto& cluster) {
      if (cluster->running != 0 || cluster->operations_in_flight != 0) return false;
      for (const auto& cta : cluster->ctas) on_cta(*cta);
      return true;
    });
  }
  void clear() { clusters_.clear(); }

  // The resident CTA whose shared memory holds the address; nullptr: none.
  [[nodiscard]] Cta* find_cta(const void* shared_address) const;
  // "CTA 0, warp 4, lane 0, role load": the agent's thread, or the issuer of its operation.
  [[nodiscard]] std::string describe(Agent agent) const;

 private:
  std::unique_ptr<Cluster> make_cluster(uint32_t number, const std::function<void()>& kernel) const;
  [[nodiscard]] std::unique_ptr<Cta> make_cta(Cluster& cluster, uint32_t index, int rank,
                                              const std::function<void()>& kernel) const;

  const LaunchShape& shape_;
  uint32_t num_clusters_;
  uint32_t next_cluster_ = 0;
  std::vector<std::unique_ptr<Cluster>> clusters_;  // resident
};

}  // namespace pagoda::emulator
