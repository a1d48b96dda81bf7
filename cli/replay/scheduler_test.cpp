// The scheduler: budget, order, preemption, rejection; and a random walk in which a fake memory
// shows that every position of every request always holds that request's own token.
#include "cli/replay/scheduler.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "cli/replay/content.hpp"

namespace pagoda::replay {
namespace {

Sequence sequence(int64_t prompt, int64_t output) {
  Sequence s;
  s.prompt_tokens = prompt;
  s.output_tokens = output;
  return s;
}

TEST(Scheduler, a_long_prompt_is_cut_into_chunks_of_the_budget) {
  BlockManager blocks(100);
  Scheduler scheduler({.token_budget = 100, .page_size = 16}, blocks);
  ASSERT_TRUE(scheduler.submit(sequence(250, 3)).ok());
  std::vector<int64_t> tokens;
  std::vector<int32_t> finished;
  for (int i = 0; i < 5; ++i) {
    const Step step = scheduler.schedule();
    ASSERT_EQ(step.chunks.size(), 1U);
    tokens.push_back(step.chunks[0].tokens);
    const StepOutcome outcome = scheduler.commit(step);
    EXPECT_EQ(outcome.first_tokens.size(), i == 2 ? 1U : 0U);
    finished = outcome.finished;
  }
  EXPECT_EQ(tokens, (std::vector<int64_t>{100, 100, 50, 1, 1}));
  EXPECT_EQ(finished, std::vector<int32_t>{0});
  EXPECT_TRUE(scheduler.schedule().chunks.empty());
  EXPECT_EQ(blocks.held_pages(), 0);
}

TEST(Scheduler, decodes_go_before_prompts_and_share_the_step_with_them) {
  BlockManager blocks(100);
  Scheduler scheduler({.token_budget = 64, .page_size = 16}, blocks);
  ASSERT_TRUE(scheduler.submit(sequence(10, 50)).ok());
  EXPECT_EQ(scheduler.commit(scheduler.schedule()).output_tokens, 1);
  ASSERT_TRUE(scheduler.submit(sequence(300, 1)).ok());
  const Step step = scheduler.schedule();
  ASSERT_EQ(step.chunks.size(), 2U);
  EXPECT_EQ(step.chunks[0].phase, Phase::kDecode);
  EXPECT_EQ(step.chunks[0].start, 10);
  EXPECT_EQ(step.chunks[1].phase, Phase::kPrefill);
  EXPECT_EQ(step.chunks[1].tokens, 63);
}

TEST(Scheduler, no_more_than_max_running_are_admitted) {
  BlockManager blocks(100);
  Scheduler scheduler({.token_budget = 64, .max_running = 2, .page_size = 16}, blocks);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(scheduler.submit(sequence(4, 4)).ok());
  EXPECT_EQ(scheduler.schedule().chunks.size(), 2U);
  EXPECT_EQ(scheduler.num_waiting(), 1);
}

TEST(Scheduler, a_request_that_the_whole_cache_could_not_hold_is_rejected_by_name) {
  BlockManager blocks(4);
  Scheduler scheduler({.page_size = 16}, blocks);
  const Status status = scheduler.submit(sequence(60, 6));  // 65 tokens, room for 64
  EXPECT_EQ(status.field(), "request 0");
  EXPECT_NE(status.message().find("holds 64"), std::string::npos);
  EXPECT_TRUE(scheduler.schedule().chunks.empty());
  EXPECT_TRUE(scheduler.submit(sequence(60, 5)).ok());
}

TEST(Scheduler, when_the_cache_is_full_the_last_admitted_gives_way_and_is_computed_again) {
  BlockManager blocks(4);
  Scheduler scheduler({.token_budget = 64, .page_size = 16}, blocks);
  ASSERT_TRUE(scheduler.submit(sequence(16, 40)).ok());
  ASSERT_TRUE(scheduler.submit(sequence(16, 40)).ok());
  std::vector<int32_t> finished;
  bool saw_recompute = false;
  for (int i = 0; i < 200 && finished.size() < 2; ++i) {
    const Step step = scheduler.schedule();
    ASSERT_FALSE(step.chunks.empty());
    for (const Chunk& chunk : step.chunks) {
      saw_recompute = saw_recompute || chunk.phase == Phase::kRecompute;
    }
    const auto done = scheduler.commit(step).finished;
    finished.insert(finished.end(), done.begin(), done.end());
  }
  EXPECT_EQ(finished, (std::vector<int32_t>{0, 1}));
  EXPECT_GE(scheduler.preemptions(), 1);
  EXPECT_EQ(scheduler.sequence(0).preemptions, 0);
  EXPECT_TRUE(saw_recompute);
}

TEST(Scheduler, a_cached_prefix_is_not_computed_again_but_the_last_prompt_token_is) {
  BlockManager blocks(100);
  Scheduler scheduler({.token_budget = 1000, .page_size = 16}, blocks);
  Sequence first = sequence(64, 1);
  first.page_keys = {1, 2, 3, 4};
  ASSERT_TRUE(scheduler.submit(first).ok());
  EXPECT_EQ(scheduler.commit(scheduler.schedule()).output_tokens, 1);
  ASSERT_TRUE(scheduler.submit(first).ok());
  const Step step = scheduler.schedule();
  ASSERT_EQ(step.chunks.size(), 1U);
  EXPECT_EQ(step.chunks[0].start, 48);
  EXPECT_EQ(step.chunks[0].tokens, 16);
  EXPECT_EQ(step.chunks[0].phase, Phase::kReused);
  EXPECT_EQ(scheduler.sequence(1).reused_tokens, 48);
}

TEST(Scheduler, a_page_is_found_by_others_only_once_it_is_full) {
  BlockManager blocks(100);
  Scheduler scheduler({.token_budget = 24, .page_size = 16}, blocks);
  Sequence first = sequence(64, 1);
  first.page_keys = {1, 2, 3, 4};
  ASSERT_TRUE(scheduler.submit(first).ok());
  for (const int64_t full_pages : {1, 3, 4}) {  // 24, 48 and 64 tokens
    const Step step = scheduler.schedule();
    EXPECT_EQ(blocks.find_prefix(first.page_keys), (step.chunks[0].start) / 16);
    static_cast<void>(scheduler.commit(step));
    EXPECT_EQ(blocks.find_prefix(first.page_keys), full_pages);
  }
}

// The contents of the cache as token keys, and the checks of every read.
struct FakeServer {
  FakeServer(const SchedulerLimits& limits, int32_t num_pages)
      : blocks(num_pages),
        scheduler(limits, blocks),
        page_size(limits.page_size),
        budget(limits.token_budget),
        slots(static_cast<size_t>(num_pages * limits.page_size)) {}

  bool submit(const TraceRequest& request) {
    contents.emplace_back(request, std::ssize(contents));
    Sequence s = sequence(request.input_length, request.output_length);
    s.page_keys = contents.back().page_keys(page_size);
    return scheduler.submit(std::move(s)).ok();
  }

  uint64_t& slot(int32_t index, int64_t position) {
    const auto& pages = scheduler.sequence(index).pages;
    const int64_t page = pages[static_cast<size_t>(position / page_size)];
    return slots[static_cast<size_t>(page * page_size + position % page_size)];
  }

  // One step; false when there is nothing to do.
  bool step() {
    const Step step = scheduler.schedule();
    if (step.chunks.empty()) return false;
    EXPECT_LE(step.tokens, budget);
    int64_t tokens = 0;
    for (const Chunk& chunk : step.chunks) {
      const RequestContent& content = contents[static_cast<size_t>(chunk.sequence)];
      tokens += chunk.tokens;
      ++phases[chunk.phase];
      for (int64_t p = chunk.start; p < chunk.start + chunk.tokens; ++p) {
        slot(chunk.sequence, p) = content.token_key(p);
      }
    }
    EXPECT_EQ(tokens, step.tokens);
    for (const Chunk& chunk : step.chunks) {
      const RequestContent& content = contents[static_cast<size_t>(chunk.sequence)];
      for (int64_t p = 0; p < chunk.start + chunk.tokens; ++p) {
        if (slot(chunk.sequence, p) != content.token_key(p)) {
          ADD_FAILURE() << "sequence " << chunk.sequence << " position " << p;
          break;
        }
      }
    }
    finished += std::ssize(scheduler.commit(step).finished);
    EXPECT_EQ(blocks.find_defect(), "");
    return !testing::Test::HasFailure();
  }

  BlockManager blocks;
  Scheduler scheduler;
  int64_t page_size, budget;
  std::vector<uint64_t> slots;
  std::vector<RequestContent> contents;
  std::map<Phase, int64_t> phases;
  int64_t finished = 0;
};

TEST(Scheduler, random_traffic_always_finds_its_own_tokens_and_always_ends) {
  std::map<Phase, int64_t> phases;
  int64_t evictions = 0;
  for (uint64_t seed = 0; seed < 15; ++seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const int64_t page_size = std::vector<int64_t>{1, 16, 17, 64, 700}[seed % 5];
    const int64_t cache_tokens = between(3000, 9000);
    FakeServer server(
        {.token_budget = between(1, 1500), .max_running = between(1, 12), .page_size = page_size},
        static_cast<int32_t>(cache_tokens / page_size));
    int64_t accepted = 0;
    for (int i = 0; i < 25; ++i) {
      TraceRequest request;
      request.input_length = between(1, 2500);
      request.output_length = between(1, 150);
      for (int64_t block = 0; block * kTraceBlockTokens < request.input_length; ++block) {
        request.hash_ids.push_back(static_cast<uint64_t>(between(0, 1)));
      }
      if (server.submit(request)) ++accepted;
      for (int64_t steps = between(0, 10); steps > 0; --steps) server.step();
    }
    while (server.step()) {
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    EXPECT_EQ(server.finished, accepted) << "seed " << seed;
    EXPECT_EQ(server.blocks.held_pages(), 0);
    for (const auto& [phase, count] : server.phases) phases[phase] += count;
    evictions += server.blocks.evictions();
  }
  EXPECT_EQ(phases.size(), static_cast<size_t>(kNumPhases)) << "every phase was exercised";
  EXPECT_GT(evictions, 0);
}

}  // namespace
}  // namespace pagoda::replay
