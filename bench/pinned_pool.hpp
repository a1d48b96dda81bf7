// PinnedPool: an Executor with one CPU per worker, for reproducible timings.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "pagoda/executor.hpp"

namespace pagoda::bench {

// CPUs that this process could use when this was first called (before any pinning), ascending.
[[nodiscard]] const std::vector<int>& allowed_cpus();

// Worker 0 is the thread that constructs the pool and calls parallel(); it is pinned to the first
// allowed CPU; the destructor restores its affinity mask. Workers spin for a while before
// they sleep.
class PinnedPool final : public Executor {
 public:
  explicit PinnedPool(int32_t workers);
  ~PinnedPool() override;
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  [[nodiscard]] int32_t workers() const override { return workers_; }
  void parallel(int32_t n, void (*body)(void* context, int32_t i), void* context) override;

 private:
  void work(int32_t index);

  int32_t workers_;
  void (*body_)(void* context, int32_t i) = nullptr;
  void* context_ = nullptr;
  int32_t count_ = 0;
  std::atomic<uint32_t> generation_{0};  // raised to start a region; the workers wait for it
  std::atomic<int32_t> running_{0};      // workers that have not finished the region
  std::atomic<bool> stops_{false};
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::bench
