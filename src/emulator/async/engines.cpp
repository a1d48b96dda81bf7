// Operations from their issue to their completion.
#include "emulator/async/engines.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace pagoda::emulator {

std::unique_ptr<AsyncOperation> AsyncEngines::make_operation(
    const char* primitive, const Where& where, Thread& issuer,
    std::function<void(AsyncOperation&)> run) {
  auto operation = std::make_unique<AsyncOperation>();
  Cta& cta = *issuer.cta;
  operation->primitive = primitive;
  operation->where = where;
  operation->issuer = &issuer;
  operation->cta = &cta;
  operation->may_touch_global = issuer.may_touch_global;
  operation->run = std::move(run);
  if (cta.free_slots.empty()) {
    if (shape_.first_slot() + cta.slots.size() >= 1U << kAgentBits) {
      reporter_.fail(
          ReportKind::kProtocol, primitive, where,
          std::to_string(cta.slots.size()) + " asynchronous operations of one CTA are in flight");
    }
    cta.free_slots.push_back(static_cast<uint32_t>(cta.slots.size()));
    cta.slots.emplace_back();
  }
  const uint32_t slot = cta.free_slots.front();
  cta.free_slots.pop_front();
  Cta::Issued& issued = cta.slots[slot];
  issued = {.agent = make_agent(cta.index, shape_.first_slot() + slot),
            .time = issued.time + 1,
            .primitive = primitive,
            .where = where,
            .issuer = &issuer};
  operation->agent = issued.agent;
  operation->time = issued.time;
  operation->known = issuer.clocks;
  issuer.tick();
  return operation;
}

void AsyncEngines::submit(std::unique_ptr<AsyncOperation> operation, AsyncQueue* queue) {
  ++operations_;
  Cta& cta = *operation->cta;
  ++cta.cluster->operations_in_flight;
  if (const int64_t slot = slot_of(*operation); slot >= 0) {
    cta.slots[static_cast<size_t>(slot)].is_detached = operation->is_detached;
  }
  scheduler_.progress();
  operation->issued_step = scheduler_.next_step();
  if (queue == nullptr) queue = &make_queue();
  queue->operations.push_back(std::move(operation));
  if (scheduler_.mode() == Mode::kEager) {
    complete(*queue);
    if (!queue->is_listed && queue->operations.empty()) own_queues_.erase(queue);
    return;
  }
  if (!queue->is_listed) {
    queue->is_listed = true;
    ready_.push_back(queue);
  }
}

void AsyncEngines::submit_in_order(std::unique_ptr<AsyncOperation> first,
                                   std::unique_ptr<AsyncOperation> second) {
  if (scheduler_.mode() == Mode::kEager) {
    submit(std::move(first));
    submit(std::move(second));
    return;
  }
  AsyncQueue& queue = make_queue();
  submit(std::move(first), &queue);
  submit(std::move(second), &queue);
}

AsyncQueue& AsyncEngines::make_queue() {
  auto queue = std::make_unique<AsyncQueue>();
  AsyncQueue& made = *queue;
  own_queues_.emplace(&made, std::move(queue));
  return made;
}

void AsyncEngines::complete(AsyncQueue& queue) {
  const std::unique_ptr<AsyncOperation> operation = std::move(queue.operations.front());
  queue.operations.pop_front();
  scheduler_.next_step();
  scheduler_.progress();
  const Reporter::OnBehalfOf issuer(reporter_, operation->issuer);
  {
    const Scheduler::Completing completing(scheduler_, operation.get());
    operation->run(*operation);
  }
  trace_.operation(*operation);
  --operation->cta->cluster->operations_in_flight;
  if (const int64_t slot = slot_of(*operation); slot >= 0) {
    operation->cta->free_slots.push_back(static_cast<uint32_t>(slot));
  }
}

bool AsyncEngines::complete_one() {
  if (ready_.empty()) return false;
  const size_t chosen =
      scheduler_.mode() == Mode::kRoundRobin ? 0 : scheduler_.random()() % ready_.size();
  AsyncQueue* const queue = ready_[chosen];
  complete(*queue);
  if (queue->operations.empty()) {
    queue->is_listed = false;
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
    own_queues_.erase(queue);
  }
  return true;
}

void AsyncEngines::finish(AsyncQueue& queue) {
  while (!queue.operations.empty()) complete(queue);
  if (std::exchange(queue.is_listed, false)) std::erase(ready_, &queue);
}

void AsyncEngines::report_end(const Cta& cta) {
  for (const Cta::Issued& issued : cta.slots) {
    if (issued.agent == kNoAgent || issued.is_detached) continue;
    const auto has_observed = [&](const Thread& thread) {
      return thread.clocks->generic.get(issued.agent) >= issued.time ||
             thread.clocks->tensor.get(issued.agent) >= issued.time;
    };
    const auto& members = cta.cluster->ctas;
    if (std::none_of(members.begin(), members.end(), [&](const auto& member) {
          return std::any_of(member->threads.begin(), member->threads.end(), has_observed);
        })) {
      reporter_.report(ReportKind::kProtocol, issued.primitive, issued.where,
                       "the CTA ended without any thread having waited for this operation",
                       issued.issuer);
    }
  }
}

}  // namespace pagoda::emulator
