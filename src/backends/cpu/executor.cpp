// The executors that come with the library: oneTBB and the calling thread. TBB is used here only.
#include "pagoda/executor.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>
#include <pthread.h>
#include <sched.h>
#include <vector>

#include "backends/cpu/fork_join.hpp"

#if defined(PAGODA_THREAD_SANITIZER)
// Suppresses accesses of TBB's headers and library to TBB's memory, in functions that never call a
// body: accesses of this library are not suppressed.
extern "C" const char* __tsan_default_suppressions() {
  return "race_top:/oneapi/tbb/\n"
         "race:tbb::detail::d1::fold_tree\n"
         "race:tbb::detail::d1::node::node\n"
         "race:tbb::detail::d1::tree_node::tree_node\n"
         "race:tbb::detail::d1::wait_context::\n"
         "called_from_lib:libtbb.so\n";
}
#endif

namespace pagoda {
namespace {

std::vector<int> affinity_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// PAGODA_NUM_THREADS if it is a positive number, otherwise one worker per usable CPU.
int32_t choose_workers(size_t num_cpus) {
  constexpr int32_t kMostWorkers = 4096;
  if (const char* text = std::getenv("PAGODA_NUM_THREADS"); text != nullptr) {
    int32_t wanted = 0;
    const char* end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, wanted);
    if (error == std::errc{} && rest == end && wanted > 0) return std::min(wanted, kMostWorkers);
  }
  return static_cast<int32_t>(std::max<size_t>(num_cpus, 1));
}

// PAGODA_PIN_THREADS=1: the arena's i-th thread runs on the i-th CPU of the process's mask. A
// thread's own mask is restored when it exits the arena, because it may be the caller's thread.
class Pinning : public tbb::task_scheduler_observer {
 public:
  Pinning(tbb::task_arena& arena, std::vector<int> cpus)
      : task_scheduler_observer(arena), cpus_(std::move(cpus)) {
    observe(true);
  }
  ~Pinning() override { observe(false); }

  void on_scheduler_entry(bool /*is_worker*/) override {
    if (depth_++ > 0) return;
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    const auto slot = static_cast<size_t>(tbb::this_task_arena::current_thread_index());
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus_[slot % cpus_.size()], &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }
  void on_scheduler_exit(bool /*is_worker*/) override {
    if (--depth_ == 0) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
  }

 private:
  std::vector<int> cpus_;
  static thread_local int32_t depth_;
  static thread_local cpu_set_t before_;
};
thread_local int32_t Pinning::depth_ = 0;
thread_local cpu_set_t Pinning::before_;

// One call of parallel().
struct Region {
  void (*body)(void* context, int32_t i);
  void* context;
  cpu::ForkJoin order;
};

// The functor that TBB copies into its tasks.
struct Bodies {
  Region* region;
  PAGODA_UNSEEN_BY_THREAD_SANITIZER
  void operator()(const tbb::blocked_range<int32_t>& range) const {
    region->order.begin_body();
    for (int32_t i = range.begin(); i < range.end(); ++i) region->body(region->context, i);
    region->order.end_body();
  }
};

class TbbExecutor final : public Executor {
 public:
  TbbExecutor()
      : cpus_(affinity_cpus()),
        workers_(choose_workers(cpus_.size())),
        limit_(tbb::global_control::max_allowed_parallelism,
               std::max<size_t>(static_cast<size_t>(workers_),
                                tbb::global_control::active_value(
                                    tbb::global_control::max_allowed_parallelism))),
        arena_(workers_) {
    const char* pin = std::getenv("PAGODA_PIN_THREADS");
    if (pin != nullptr && std::strcmp(pin, "1") == 0) {
      pinning_ = std::make_unique<Pinning>(arena_, cpus_);
    }
  }

  [[nodiscard]] int32_t workers() const override { return workers_; }

  void parallel(int32_t n, void (*body)(void* context, int32_t i), void* context) override {
    if (n == 1) return body(context, 0);
    Region region{body, context, {}};
    region.order.fork();
    // Isolated: a thread that waits here for its own bodies must not start a body of another
    // region, which could find that thread's scratch buffer in use.
    //
    // If the arena is full, another thread calls these functions.
    arena_.execute([&]() PAGODA_UNSEEN_BY_THREAD_SANITIZER {
      tbb::this_task_arena::isolate([&]() PAGODA_UNSEEN_BY_THREAD_SANITIZER {
        tbb::parallel_for(tbb::blocked_range<int32_t>(0, n, 1), Bodies{&region},
                          tbb::simple_partitioner());
      });
    });
    region.order.join();
  }

 private:
  std::vector<int> cpus_;
  int32_t workers_;
  tbb::global_control limit_;
  tbb::task_arena arena_;
  std::unique_ptr<Pinning> pinning_;
};

class SerialExecutor final : public Executor {
 public:
  [[nodiscard]] int32_t workers() const override { return 1; }
  void parallel(int32_t n, void (*body)(void* context, int32_t i), void* context) override {
    for (int32_t i = 0; i < n; ++i) body(context, i);
  }
};

}  // namespace

Executor& default_executor() {
  // Never destroyed: worker threads may outlive static destruction.
  static Executor* const kExecutor = new TbbExecutor;
  return *kExecutor;
}

Executor& serial_executor() {
  static SerialExecutor executor;
  return executor;
}

}  // namespace pagoda
