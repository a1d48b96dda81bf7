// Launches of the demonstration kernels, with their data and checks.
#include "testing/emulate/demo.hpp"

#include <numeric>
#include <span>

#include "emulator/machine/launch.hpp"
#include "testing/demo/copy_ring.hpp"
#include "testing/demo/last_block_sum.hpp"
#include "testing/demo/planted.hpp"
#include "testing/demo/relay.hpp"

namespace pagoda::emulate {

using emulator::input;
using emulator::launch;
using emulator::Options;
using emulator::output;
using emulator::shape_of;

Outcome run_relay(const Options& options) {
  constexpr int kItems = 16;
  const std::vector<uint32_t> in = random_words(kItems * 32, options.seed);
  std::vector<uint32_t> out(in.size());
  Outcome outcome;
  outcome.result = launch<demo::Relay>(
      shape_of<demo::Relay>("demo/relay", {1}), {in.data(), out.data(), kItems},
      {input("in", in.data(), in.size()), output("out", out.data(), out.size())}, options);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto row = in.begin() + static_cast<std::ptrdiff_t>(i / 32 * 32);
    outcome.check("out", i, out[i], in[i] + std::accumulate(row, row + 32, 0U));
  }
  return outcome;
}

Outcome run_copy_ring(const Options& options) {
  constexpr int kRows = 20;
  const std::vector<uint32_t> in = random_words(kRows * demo::CopyRing::kWidth, options.seed);
  std::vector<uint32_t> out(in.size());
  Outcome outcome;
  outcome.result = launch<demo::CopyRing>(
      shape_of<demo::CopyRing>("demo/copy_ring", {2}), {in.data(), out.data(), kRows},
      {input("in", in.data(), in.size()), output("out", out.data(), out.size())}, options);
  for (size_t i = 0; i < out.size(); ++i) outcome.check("out", i, out[i], 3 * in[i] + 1);
  return outcome;
}

Outcome run_last_block_sum(const Options& options) {
  constexpr int kBlocks = 6;
  const std::vector<uint32_t> in =
      random_words(kBlocks * demo::LastBlockSum::kThreads, options.seed);
  std::vector<uint32_t> partial(kBlocks);
  uint32_t ticket = 0;
  uint32_t out = 0;
  Outcome outcome;
  outcome.result = launch<demo::LastBlockSum>(
      shape_of<demo::LastBlockSum>("demo/last_block_sum", {kBlocks}),
      {in.data(), partial.data(), &ticket, &out, kBlocks},
      {input("in", in.data(), in.size()), output("partial", partial.data(), partial.size()),
       emulator::inout("ticket", &ticket, 1), output("out", &out, 1)},
      options);
  outcome.check("out", 0, out, std::accumulate(in.begin(), in.end(), 0U));
  return outcome;
}

namespace {

Outcome run_planted(const char* name, demo::Planted::Bug bug, const Options& options) {
  constexpr int kRows = 6;
  // One row more than the launch's buffer: the out-of-bounds read must not depend on the heap.
  const std::vector<uint32_t> memory = random_words((kRows + 1) * 32, options.seed);
  const std::span<const uint32_t> in(memory.data(), kRows * 32);
  std::vector<uint32_t> out(in.size());
  Outcome outcome;
  outcome.result = launch<demo::Planted>(
      shape_of<demo::Planted>(name, {1}), {in.data(), out.data(), kRows, bug},
      {input("in", in.data(), in.size()), output("out", out.data(), out.size())}, options);
  for (size_t i = 0; i < out.size(); ++i) outcome.check("out", i, out[i], in[i]);
  return outcome;
}

}  // namespace

Outcome run_planted_race(const Options& options) {
  return run_planted("planted/race", demo::Planted::Bug::kRace, options);
}
Outcome run_planted_deadlock(const Options& options) {
  return run_planted("planted/deadlock", demo::Planted::Bug::kDeadlock, options);
}
Outcome run_planted_uninitialised(const Options& options) {
  return run_planted("planted/uninitialised", demo::Planted::Bug::kUninitialised, options);
}
Outcome run_planted_bounds(const Options& options) {
  return run_planted("planted/bounds", demo::Planted::Bug::kBounds, options);
}
Outcome run_planted_protocol(const Options& options) {
  return run_planted("planted/protocol", demo::Planted::Bug::kProtocol, options);
}

}  // namespace pagoda::emulate
