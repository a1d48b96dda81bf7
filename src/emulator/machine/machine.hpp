// The emulated machine of one launch: makes its parts, runs threads and engines until the grid has
// ended, and collects what they found. `arch/emu/*.hpp` map the primitives onto the parts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/async/engines.hpp"
#include "emulator/machine/grid.hpp"
#include "emulator/machine/hierarchy.hpp"
#include "emulator/machine/launch_shape.hpp"
#include "emulator/machine/mutation.hpp"
#include "emulator/machine/mutation_points.hpp"
#include "emulator/machine/options.hpp"
#include "emulator/machine/scheduler.hpp"
#include "emulator/memory/memory.hpp"
#include "emulator/report/report.hpp"
#include "emulator/report/reporter.hpp"
#include "emulator/sync/barriers.hpp"
#include "emulator/sync/collective.hpp"
#include "emulator/sync/mbarrier.hpp"
#include "emulator/sync/scopes.hpp"
#include "emulator/trace/recorder.hpp"

namespace pagoda::emulator {

struct Statistics {
  uint64_t steps = 0;     // calls of synchronising primitives, issues and completions
  uint64_t switches = 0;  // of fibers
  uint64_t accesses = 0;  // by primitives, not bytes
  uint64_t async_operations = 0;
  uint64_t multiply_adds = 0;  // of matrix instructions
  double seconds = 0;
};

struct Result {
  std::vector<Report> reports;
  Statistics statistics;
  [[nodiscard]] bool is_clean() const { return reports.empty(); }
};

class Machine {
 public:
  Machine(LaunchShape shape, std::vector<GlobalBuffer> buffers, Options options,
          std::function<void()> kernel);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  Result run();

  static Machine& current();  // of the executing thread
  static Thread& current_thread();

  [[nodiscard]] const LaunchShape& shape() const { return shape_; }
  [[nodiscard]] const Options& options() const { return options_; }

  Scheduler& scheduler() { return scheduler_; }       // which thread runs, and when
  Reporter& reporter() { return reporter_; }          // what the run has found
  TraceRecorder& trace() { return trace_; }           // what happened in which order
  MutationPoints& mutations() { return mutations_; }  // what a mutant changes
  Memory& memory() { return memory_; }                // shared and global memory
  Scopes& scopes() { return scopes_; }                // release and acquire at scopes
  MBarriers& mbarriers() { return mbarriers_; }
  Collectives& collectives() { return collectives_; }  // instructions of a whole warp
  AsyncEngines& engines() { return engines_; }         // operations in flight

 private:
  void loop();
  void end_thread(Thread& thread);
  void end_cta(Cta& cta);
  void report_deadlock();

  LaunchShape shape_;
  Options options_;
  std::function<void()> kernel_;
  // In the order of their needs: a part uses those before it.
  Scheduler scheduler_;
  Reporter reporter_;
  TraceRecorder trace_;
  MutationPoints mutations_;
  Grid grid_;
  Scopes scopes_;
  Memory memory_;
  MBarriers mbarriers_;
  Collectives collectives_;
  AsyncEngines engines_;
};

}  // namespace pagoda::emulator
