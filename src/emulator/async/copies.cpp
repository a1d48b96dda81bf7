// cp.async and bulk copies. Tensor copies: tensor_copies.cpp.
#include "emulator/async/copies.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "emulator/sync/barriers.hpp"

namespace pagoda::emulator {
namespace {

CopyState& state_of(Thread& thread) {
  if (!thread.copies) thread.copies = std::make_shared<CopyState>();
  return *thread.copies;
}

void wake_waiter(Machine& machine, PendingCopy& copy) {
  if (copy.waiter != nullptr) machine.scheduler().wake(*std::exchange(copy.waiter, nullptr));
}

// Blocks the executing thread until the copy has read its source, or is complete.
void wait_for(PendingCopy& copy, bool read_only, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  while (!(read_only ? copy.has_read : copy.is_done)) {
    copy.waiter = &thread;
    machine.scheduler().block({.what = "its own copies", .primitive = primitive, .where = where});
  }
  thread.acquire(read_only ? copy.read_done : copy.done);
  copy.is_observed = true;
}

void check_aligned(const void* address, size_t alignment, const char* what, const char* primitive,
                   const Where& where) {
  if (reinterpret_cast<uintptr_t>(address) % alignment == 0) return;
  Machine::current().reporter().fail(
      ReportKind::kBounds, primitive, where,
      std::string(what) + " is not aligned to " + std::to_string(alignment) + " bytes");
}

void check_bulk(const void* shared, const void* other, size_t bytes, const char* primitive,
                const Where& where) {
  check_aligned(shared, 16, "the address in shared memory", primitive, where);
  check_aligned(other, 16, "the other address", primitive, where);
  if (bytes % 16 != 0 || bytes == 0) {
    Machine::current().reporter().fail(
        ReportKind::kBounds, primitive, where,
        "size " + std::to_string(bytes) + " is not a positive multiple of 16 bytes");
  }
}

}  // namespace

const char* copies_in_flight(const Thread& thread) {
  if (!thread.copies) return nullptr;
  const CopyState& copies = *thread.copies;
  const auto has_copies = [](const std::shared_ptr<PendingCopy>& group) {
    return !group->is_empty;
  };
  if (!copies.open_cp_async.empty() ||
      std::any_of(copies.cp_async_groups.begin(), copies.cp_async_groups.end(), has_copies)) {
    return "cp_async copies in flight that it did not wait for (cp_async_wait)";
  }
  const auto may_read = [](const std::shared_ptr<PendingCopy>& copy) { return !copy->is_observed; };
  const bool is_reading = std::any_of(copies.bulk_groups.begin(), copies.bulk_groups.end(),
                                      [&](const CopyState::Group& group) {
                                        return std::any_of(group.begin(), group.end(), may_read);
                                      });
  if (!copies.open_bulk.empty() || is_reading) {
    return "stores of the copy engine that may still read shared memory (bulk_commit_group, "
           "bulk_wait_group_read)";
  }
  return nullptr;
}

// --- cp.async ----------------------------------------------------------------------------------

void cp_async(void* to, const void* from, size_t bytes, size_t valid_bytes, const Where& where) {
  Machine& machine = Machine::current();
  machine.scheduler().progress();
  check_aligned(to, bytes, "the address in shared memory", "cp_async", where);
  if (valid_bytes > 0) check_aligned(from, bytes, "the source", "cp_async", where);
  if (valid_bytes > bytes) {
    machine.reporter().fail(
        ReportKind::kBounds, "cp_async", where,
        std::to_string(valid_bytes) + " valid bytes of a copy of " + std::to_string(bytes));
  }
  state_of(Machine::current_thread())
      .open_cp_async.push_back({to, from, bytes, valid_bytes, where});
}

namespace {

// One operation carries out the copies since the last commit.
std::shared_ptr<PendingCopy> submit_cp_async(CopyState& copies, const Where& where) {
  Machine& machine = Machine::current();
  auto pending = std::make_shared<PendingCopy>();
  auto operation = machine.engines().make_operation(
      "cp_async", where, Machine::current_thread(),
      [&machine, &copies, pending,
       group = std::exchange(copies.open_cp_async, {})](AsyncOperation& self) {
        for (const CopyState::ThreadCopy& copy : group) {
          Access access = self.access(Proxy::kGeneric);
          access.stamp.where = copy.where;
          if (copy.valid_bytes > 0)
            machine.memory().access_global(copy.from, copy.valid_bytes, false, access);
          machine.memory().access_shared(copy.to, copy.bytes, true, access);
          std::memcpy(copy.to, copy.from, copy.valid_bytes);
          std::memset(static_cast<std::byte*>(copy.to) + copy.valid_bytes, 0,
                      copy.bytes - copy.valid_bytes);
        }
        pending->done = self.completion();
        pending->is_done = true;
        copies.cp_async_done.join(pending->done);
        wake_waiter(machine, *pending);
      });
  machine.engines().submit(std::move(operation), &copies.cp_async_queue);
  return pending;
}

}  // namespace

void cp_async_commit(const Where& where) {
  Machine& machine = Machine::current();
  if (machine.mutations().is_dropped("cp_async_commit", where)) return;
  CopyState& copies = state_of(Machine::current_thread());
  if (copies.open_cp_async.empty()) {  // an empty group counts, too
    auto nothing = std::make_shared<PendingCopy>();
    nothing->is_done = nothing->is_empty = true;
    copies.cp_async_groups.push_back(std::move(nothing));
    return;
  }
  copies.cp_async_groups.push_back(submit_cp_async(copies, where));
}

void cp_async_wait(size_t groups_in_flight, const Where& where) {
  Machine& machine = Machine::current();
  const Mutation mutation =
      machine.mutations().at("cp_async_wait", where, Mutation::kDrop | Mutation::kMore);
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kMore) ++groups_in_flight;
  CopyState& copies = state_of(Machine::current_thread());
  while (copies.cp_async_groups.size() > groups_in_flight) {
    wait_for(*copies.cp_async_groups.front(), false, "cp_async_wait", where);
    copies.cp_async_groups.pop_front();
  }
}

void cp_async_mbarrier_arrive(void* barrier_address, const Where& where) {
  Machine& machine = Machine::current();
  void* const beside = barrier_beside(barrier_address);
  const Mutation mutation = machine.mutations().at(
      "cp_async_mbarrier_arrive", where,
      Mutation::kDrop | (beside != nullptr ? Mutation::kOtherBarrier : Mutation::kNone));
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kOtherBarrier) barrier_address = beside;
  Thread& thread = Machine::current_thread();
  CopyState& copies = state_of(thread);
  MBarrierState& barrier =
      machine.mbarriers().find(barrier_address, "cp_async_mbarrier_arrive", where);
  if (!copies.open_cp_async.empty()) submit_cp_async(copies, where);
  copies.cp_async_groups.clear();  // a wait at the barrier covers them
  auto operation = machine.engines().make_operation(
      "cp_async_mbarrier_arrive", where, thread,
      [&machine, &barrier, &copies, where](AsyncOperation& self) {
        Clocks known = self.completion();
        known.join(copies.cp_async_done);
        machine.mbarriers().arrive(
            barrier, 1,
            {std::move(known), barrier.cta, Scope::kCta, "cp_async_mbarrier_arrive", where});
      });
  operation->is_detached = true;
  machine.engines().submit(std::move(operation), &copies.cp_async_queue);
}

// --- bulk copies -------------------------------------------------------------------------------

void bulk_load(void* to, const void* from, size_t bytes, void* barrier_address,
               const Where& where) {
  Machine& machine = Machine::current();
  machine.scheduler().progress();
  check_bulk(to, from, bytes, "bulk_load", where);
  MBarrierState& barrier = machine.mbarriers().find_for_copy(barrier_address, "bulk_load", where);
  machine.engines().submit(machine.engines().make_operation(
      "bulk_load", where, Machine::current_thread(), [=, &machine, &barrier](AsyncOperation& self) {
        machine.memory().access_global(from, bytes, false, self.access());
        machine.memory().access_shared(to, bytes, true, self.access());
        std::memcpy(to, from, bytes);
        machine.mbarriers().complete_bytes(barrier, static_cast<int64_t>(bytes), self);
      }));
}

void bulk_copy_to_cta(void* to, const void* from, size_t bytes, void* mine, int rank,
                      const Where& where) {
  Machine& machine = Machine::current();
  machine.scheduler().progress();
  check_bulk(from, to, bytes, "bulk_copy_to_cta", where);
  MBarrierState& barrier =
      machine.mbarriers().find_for_copy(map_shared(mine, rank, where), "bulk_copy_to_cta", where);
  machine.engines().submit(machine.engines().make_operation(
      "bulk_copy_to_cta", where, Machine::current_thread(),
      [=, &machine, &barrier](AsyncOperation& self) {
        machine.memory().access_shared(from, bytes, false, self.access());
        machine.memory().access_shared(to, bytes, true, self.access());
        std::memmove(to, from, bytes);
        machine.mbarriers().complete_bytes(barrier, static_cast<int64_t>(bytes), self);
      }));
}

void submit_bulk_store(const char* primitive, const Where& where,
                       std::function<std::vector<std::byte>(AsyncOperation&)> read,
                       std::function<void(AsyncOperation&, const std::vector<std::byte>&)> write) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  auto pending = std::make_shared<PendingCopy>();
  auto staged = std::make_shared<std::vector<std::byte>>();
  state_of(thread).open_bulk.push_back(pending);
  auto reading = machine.engines().make_operation(
      primitive, where, thread,
      [&machine, pending, staged, read = std::move(read)](AsyncOperation& self) {
        *staged = read(self);
        pending->read_done = self.completion();
        pending->has_read = true;
        wake_waiter(machine, *pending);
      });
  reading->is_detached = true;  // copies_in_flight() checks its waits at the end of the thread
  auto writing = machine.engines().make_operation(
      primitive, where, thread,
      [&machine, pending, staged, write = std::move(write)](AsyncOperation& self) {
        write(self, *staged);
        pending->done = self.completion();
        pending->done.join(pending->read_done);
        pending->is_done = true;
        wake_waiter(machine, *pending);
      });
  writing->is_detached = true;
  machine.engines().submit_in_order(std::move(reading), std::move(writing));
}

void bulk_store(void* to, const void* from, size_t bytes, const Where& where) {
  Machine& machine = Machine::current();
  machine.scheduler().progress();
  check_bulk(from, to, bytes, "bulk_store", where);
  submit_bulk_store(
      "bulk_store", where,
      [=, &machine](AsyncOperation& self) {
        machine.memory().access_shared(from, bytes, false, self.access());
        const auto* begin = static_cast<const std::byte*>(from);
        return std::vector<std::byte>(begin, begin + bytes);
      },
      [=, &machine](AsyncOperation& self, const std::vector<std::byte>& staged) {
        machine.memory().access_global(to, bytes, true, self.access());
        std::memcpy(to, staged.data(), bytes);
      });
}

void bulk_commit_group(const Where& where) {
  if (Machine::current().mutations().is_dropped("bulk_commit_group", where)) return;
  CopyState& copies = state_of(Machine::current_thread());
  copies.bulk_groups.push_back(std::exchange(copies.open_bulk, {}));
}

void bulk_wait_group(size_t groups_in_flight, bool read_only, const char* primitive,
                     const Where& where) {
  const Mutation mutation =
      Machine::current().mutations().at(primitive, where, Mutation::kDrop | Mutation::kMore);
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kMore) ++groups_in_flight;
  CopyState& copies = state_of(Machine::current_thread());
  if (read_only) {
    for (size_t i = 0; i + groups_in_flight < copies.bulk_groups.size(); ++i) {
      for (const auto& copy : copies.bulk_groups[i]) wait_for(*copy, true, primitive, where);
    }
    return;
  }
  while (copies.bulk_groups.size() > groups_in_flight) {
    for (const auto& copy : copies.bulk_groups.front()) wait_for(*copy, false, primitive, where);
    copies.bulk_groups.pop_front();
  }
}

}  // namespace pagoda::emulator
