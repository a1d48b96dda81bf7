// The pool: a generation counter starts a region, a countdown ends it.
#include "bench/pinned_pool.hpp"

#include <algorithm>
#include <sched.h>

namespace pagoda::bench {
namespace {

// Longer than the gap between two calls, short enough to release an idle CPU soon.
constexpr int kSpins = 20000;

bool pin_to(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

std::vector<int> read_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

const std::vector<int>& allowed_cpus() {
  static const std::vector<int> kCpus = read_affinity();
  return kCpus;
}

PinnedPool::PinnedPool(int32_t workers) : workers_(std::max(1, workers)) {
  pin_to({allowed_cpus().front()});
  for (int32_t i = 1; i < workers_; ++i) threads_.emplace_back([this, i] { work(i); });
}

PinnedPool::~PinnedPool() {
  stops_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  pin_to(allowed_cpus());
}

void PinnedPool::parallel(int32_t n, void (*body)(void* context, int32_t i), void* context) {
  if (n <= 0) return;
  if (n == 1) {
    body(context, 0);
    return;
  }
  body_ = body;
  context_ = context;
  count_ = n;
  running_.store(workers_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);  // publishes the four fields above
  generation_.notify_all();
  body(context, 0);
  while (running_.load(std::memory_order_acquire) != 0) pause();
}

void PinnedPool::work(int32_t index) {
  const std::vector<int>& cpus = allowed_cpus();
  pin_to({cpus[static_cast<size_t>(index) % cpus.size()]});
  uint32_t seen = 0;
  for (;;) {
    for (int i = 0; i < kSpins && generation_.load(std::memory_order_relaxed) == seen; ++i) pause();
    generation_.wait(seen, std::memory_order_acquire);
    seen = generation_.load(std::memory_order_acquire);
    if (stops_.load()) return;
    if (index < count_) body_(context_, index);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace pagoda::bench
