// Tensor memory of a CTA, byte-exact, and the tcgen05 instructions. `arch/emu/tcgen05.hpp` wraps
// these. It follows the text and the tables of the ISA; no Blackwell chip has confirmed it.
//
// Order of accesses (the clocks of vector_clock.hpp):
//   A load or store is one access of a warp, by an agent of the warp. tmem_wait_* completes it: the
//   later accesses of the warp are after it. Clocks::async of the lanes includes it, "complete, but
//   not fenced", which is enough to free the columns. tcgen05_fence_before_thread_sync adds it to
//   Clocks::generic, which a release publishes.
//   A product or copy is an operation of the thread's queue, ordered after the earlier ones of that
//   queue only (MmaOrder::kIssue) or of its pipeline (MmaOrder::kIsa: "Pipelined tcgen05
//   Instructions"). The arrival of a commit releases their completion by Clocks::generic.
//   tcgen05_fence_after_thread_sync joins what the thread has acquired into Clocks::tensor, and
//   only Clocks::tensor orders accesses to tensor memory.
// The ISA orders products by different threads by fences alone; here they need a commit.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "arch/layout/instruction_descriptor.hpp"
#include "arch/layout/smem_descriptor.hpp"
#include "arch/layout/tmem_layout.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

class TensorMemory {
 public:
  explicit TensorMemory(Cta& cta);
  // The CTA's; made when first used. Fails where the launch has none, or where the kernel used the
  // other cta_group before (0: an instruction without one).
  static TensorMemory& of(Cta& cta, int cta_group, const char* primitive, const Where& where);

  // `columns` words of one lane: checked and recorded; the caller copies them.
  uint32_t* read(int lane, int column, int columns, const Access& access, bool may_be_unwritten);
  uint32_t* write(int lane, int column, int columns, const Access& access);
  // Reports words that nothing wrote, as `read` does.
  void check_written(int lane, int column, int columns, const Access& access) const;

  uint32_t* word(int lane, int column) {
    return &words_[static_cast<size_t>(lane * arch::kTmemColumns + column)];
  }

  [[nodiscard]] bool is_free(int column, int columns) const;
  // Start of the first `columns` free columns; -1 if there are none.
  [[nodiscard]] int find_free(int columns) const;
  void allocate(int column, int columns, const Where& where);
  void free(int column, int columns, const Clocks& known, const Where& where);

  // Reports allocations and operations of the CTA that are open when its cluster has ended.
  void report_end(Reporter& reporter) const;

  // The loads and stores of a warp since its last waits.
  struct PendingLoad {
    Where where;
    int registers = 0;               // a lane
    std::array<uint32_t*, 32> to{};  // of each lane; nullptr: no such lane
    std::vector<uint32_t> values;    // [32 lanes, registers]
  };
  struct WarpState {
    uint32_t load_time = 1, store_time = 1;  // tick at waits
    std::vector<PendingLoad> loads;
    std::optional<Where> store;
  };
  WarpState& warp(int warp) { return warps_[static_cast<size_t>(warp)]; }

  // Operations of one thread that are ordered by their issue: one agent makes them all.
  struct Pipeline {
    std::string key;  // what they have in common
    Agent agent = kNoAgent;
    uint32_t time = 0;  // of the last operation
    const char* primitive = "";
    Where where;
  };
  // A thread that issues products and copies. Whatever their order, they are executed as issued: a
  // race between two of them is reported, not acted out.
  struct Issuer {
    AsyncQueue queue;
    const Thread* thread = nullptr;
    std::vector<Pipeline> pipelines;
    std::shared_ptr<const Clocks> known;  // to the last operation
  };
  Issuer& issuer(Thread& thread);
  Pipeline& pipeline(Issuer& issuer, const std::string& key);

  // The agents of a warp.
  [[nodiscard]] Agent store_agent(int warp) const { return agent(warp); }
  [[nodiscard]] Agent load_agent(int warp) const {
    return agent(static_cast<int>(warps_.size()) + warp);
  }
  // The warp or the issuing thread of an agent, for reports.
  [[nodiscard]] std::string describe(Agent agent) const;

  // An allocation for both CTAs of a pair, until the other CTA makes the same request.
  struct PairRequest {
    int columns = 0;  // 0: none
    Thread* waiter = nullptr;
    int result = -1;
  };
  PairRequest pair_request;
  std::vector<Thread*> waiters;  // for free columns
  bool is_relinquished = false;
  Where relinquished;

 private:
  void check_columns(int column, int columns, const char* primitive, const Where& where);
  [[nodiscard]] std::string place(size_t offset) const;
  // The agents for tensor memory follow those of the CTA's threads, as many: first stores of each
  // warp, then loads of each warp, then pipelines as they come.
  [[nodiscard]] Agent agent(int index) const {
    return make_agent(cta_.index,
                      static_cast<uint32_t>(cta_.threads.size()) + static_cast<uint32_t>(index));
  }

  struct Column {
    int allocation = 0;  // its number; 0: free
    bool was_freed = false;
    Where where;  // of the allocation, or of the last free
  };
  Cta& cta_;
  std::vector<uint32_t> words_;  // [128 lanes, 512 columns]
  ShadowMemory shadow_;
  std::array<Column, arch::kTmemColumns> columns_{};
  int allocations_ = 0;
  int cta_group_ = 0;
  Where cta_group_where_;
  std::vector<WarpState> warps_;
  std::map<int, Issuer> issuers_;  // by thread
  size_t pipelines_ = 0;           // of all issuers
};

// --- for the executing thread ------------------------------------------------------------------

void tmem_allocate(int cta_group, uint32_t* out, int columns, const Where& where);
void tmem_free(int cta_group, arch::TmemPtr at, int columns, const Where& where);
void tmem_relinquish(int cta_group, const Where& where);

struct TmemTransfer {
  arch::TmemShape shape;
  int repeat;
  int split;  // of 16x32bx2
};
void tmem_load(const TmemTransfer& transfer, arch::TmemPtr from, uint32_t* out, const Where& where);
void tmem_store(const TmemTransfer& transfer, arch::TmemPtr to, const uint32_t* in,
                const Where& where);
void tmem_wait_load(const Where& where);
void tmem_wait_store(const Where& where);
void tcgen05_fence_before_thread_sync(const Where& where);
void tcgen05_fence_after_thread_sync(const Where& where);

// Loads and stores of the thread's warp that a fence of the thread has published.
[[nodiscard]] Clocks fenced_tensor_accesses(const Thread& thread);

// Into `clocks`: the complete loads and stores of the thread's warp.
void publish_tensor_accesses(const Thread& thread, Clocks& clocks);

struct MmaOperands {
  arch::TmemPtr d;
  arch::SmemDescriptor a_shared;  // or
  arch::TmemPtr a_tensor;
  arch::SmemDescriptor b;
  arch::InstructionDescriptor instruction;
  bool accumulates = false;
};
void tcgen05_mma(const arch::MmaForm& form, const MmaOperands& operands, const Where& where);
void tmem_copy(arch::TmemCopyShape shape, int cta_group, arch::TmemPtr to,
               arch::SmemDescriptor from, const Where& where);
// cta_mask 0: the barrier of this CTA.
void tcgen05_commit(int cta_group, void* barrier_address, uint16_t cta_mask, const char* primitive,
                    const Where& where);

}  // namespace pagoda::emulator
