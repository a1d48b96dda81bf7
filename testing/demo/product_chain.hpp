// O = sum over tiles of (Q K[tile]^T) V[tile] on the tensor core of Blackwell: attention without
// softmax. One warp issues products; four warps convert each S to bf16 in place, in tensor memory.
// No Blackwell chip has run it yet.
//
//   barrier  producer                    consumer     arrivals
//   s_full   commit of Q K^T             convert      1
//   p_full   convert                     mma          128
//   o_full   commit of the last P V      convert      1
#pragma once

#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"

namespace pagoda::demo {

struct ProductChain {
  static constexpr int kRows = 128, kKeys = 32, kDepth = 16, kColumns = 32, kMaxTiles = 8;
  static constexpr int kThreads = 160;
  static constexpr bool kHasTensorMemory = true;
  static constexpr int kTmemColumns = 64;  // S, of which P takes the first half, then O

  // Matrices lie in chunks of 8 columns (16 bytes), each of all rows: no swizzle.
  struct Params {
    arch::GlobalPtr<const uint16_t> q;  // [2 chunks, 128 rows, 8], bf16
    arch::GlobalPtr<const uint16_t> k;  // [tiles, 2 chunks, 32 keys, 8]
    arch::GlobalPtr<const uint16_t> v;  // [tiles, 4 chunks, 32 keys, 8]
    arch::GlobalPtr<float> out;         // [128, 32]
    int tiles;
  };
  struct Storage {
    arch::SharedArray<uint16_t, kRows * kDepth, 128> q;
    arch::SharedArray<uint16_t, kMaxTiles * kKeys * kDepth, 128> k;
    arch::SharedArray<uint16_t, kMaxTiles * kKeys * kColumns, 128> v;
    arch::SharedArray<uint32_t, 1> tmem;
    arch::MBarrier s_full, p_full, o_full;
  };

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    copy(storage.q.data(), params.q, kRows * kDepth);
    copy(storage.k.data(), params.k, params.tiles * kKeys * kDepth);
    copy(storage.v.data(), params.v, params.tiles * kKeys * kColumns);
    arch::fence_proxy_async_shared();  // the stores above, before products read them
    if (arch::warp_idx() == 0) arch::tmem_allocate<1>(storage.tmem.data(), kTmemColumns);
    if (arch::thread_idx() == 0) {
      arch::name_barrier(storage.s_full, "s_full");
      arch::name_barrier(storage.p_full, "p_full");
      arch::name_barrier(storage.o_full, "o_full");
      storage.s_full.init(1);
      storage.p_full.init(128);
      storage.o_full.init(1);
      arch::fence_mbarrier_init();
    }
    arch::syncthreads();
    const arch::TmemPtr s{arch::load(storage.tmem.at(0))};
    if (arch::warp_idx() == 4) {
      const arch::Role role("mma");
      if (arch::lane_idx() == 0) multiply(storage, s, params.tiles);
    } else {
      const arch::Role role("convert");
      convert(params, storage, s.lanes(arch::tmem_first_lane_of_warp(arch::warp_idx())));
    }
    arch::syncthreads();  // all loads are complete
    if (arch::warp_idx() == 0) arch::tmem_free<1>(s, kTmemColumns);
  }

 private:
  static PAGODA_DEVICE void copy(arch::SharedPtr<uint16_t> to, arch::GlobalPtr<const uint16_t> from,
                                 int count) {
    for (int i = arch::thread_idx(); i < count; i += kThreads) {
      arch::store(to + i, arch::load(from + i));
    }
  }

  static PAGODA_DEVICE arch::SmemDescriptor describe(arch::SharedPtr<uint16_t> start,
                                                     uint32_t leading_bytes,
                                                     uint32_t stride_bytes) {
    return arch::encode(arch::SmemDescriptorFields{.start_bytes = start.address(),
                                                   .leading_bytes = leading_bytes,
                                                   .stride_bytes = stride_bytes},
                        arch::DescriptorFormat::kSm100);
  }

  static PAGODA_DEVICE arch::InstructionDescriptor instruction(arch::Major b_major) {
    return arch::encode(arch::InstructionDescriptorFields{.kind = arch::MmaKind::kF16,
                                                          .a_type = arch::MmaType::kBF16,
                                                          .b_type = arch::MmaType::kBF16,
                                                          .b_major = b_major,
                                                          .m = kRows,
                                                          .n = kKeys});
  }

  static PAGODA_DEVICE void multiply(Storage& storage, arch::TmemPtr s, int tiles) {
    using Mma = arch::UMma<arch::MmaKind::kF16, 1>;
    const arch::TmemPtr o = s.columns(kKeys);
    const auto q = describe(storage.q.data(), kRows * 16, 128);
    for (int tile = 0; tile < tiles; ++tile) {
      // S overwrites P of the tile before, which P V has read: products of a thread are in order.
      const auto k = describe(storage.k.at(tile * kKeys * kDepth), kKeys * 16, 128);
      Mma::ss(s, q, k, instruction(arch::Major::kK), false);
      arch::tcgen05_commit<1>(storage.s_full);
      storage.p_full.wait(static_cast<uint32_t>(tile) &
                          1U);  // the 128 threads of convert() have stored P
      arch::tcgen05_fence_after_thread_sync();
      for (int step = 0; step < kKeys / 16; ++step) {
        const auto v =
            describe(storage.v.at(tile * kKeys * kColumns + step * 16 * 8), 128, kKeys * 16);
        Mma::ts(o, s.columns(8 * step), v, instruction(arch::Major::kMN), tile + step > 0);
      }
    }
    arch::tcgen05_commit<1>(storage.o_full);
  }

  static PAGODA_DEVICE void convert(const Params& params, Storage& storage, arch::TmemPtr s) {
    using arch::TmemShape;
    uint32_t words[kKeys];
    for (int tile = 0; tile < params.tiles; ++tile) {
      storage.s_full.wait(static_cast<uint32_t>(tile) & 1U);  // Q K^T is complete
      arch::tcgen05_fence_after_thread_sync();
      arch::tmem_load<TmemShape::k32x32b, kKeys>(words, s);
      arch::tmem_wait_load();
      uint32_t p[kKeys / 2];
      for (int i = 0; i < kKeys / 2; ++i) {  // bf16 by truncation: small integers are exact
        p[i] = words[2 * i] >> 16 | (words[2 * i + 1] & 0xffff0000U);
      }
      arch::tmem_store<TmemShape::k32x32b, kKeys / 2>(s, p);
      arch::tmem_wait_store();
      arch::tcgen05_fence_before_thread_sync();  // loads of S and stores of P, before the arrival
      storage.p_full.arrive();
    }
    storage.o_full.wait(0);  // the last P V is complete: multiply() commits it
    arch::tcgen05_fence_after_thread_sync();
    arch::tmem_load<TmemShape::k32x32b, kColumns>(words, s.columns(kKeys));
    arch::tmem_wait_load();
    const arch::GlobalPtr<float> row = params.out + arch::thread_idx() * kColumns;
    for (int i = 0; i < kColumns; ++i) {
      arch::store((row + i).as<uint32_t>(), words[i]);
    }
  }
};

}  // namespace pagoda::demo
