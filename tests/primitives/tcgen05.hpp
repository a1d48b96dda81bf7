// tcgen05: loads and stores of tensor memory, and products for one and two CTAs. No Blackwell chip
// has run these yet: nvcc compiles them, the emulator runs them.
#pragma once

#include "arch/cluster.hpp"
#include "arch/fence.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "elements.hpp"
#include "swizzled.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

// Four warps: registers -> tensor memory in one shape -> registers in another.
template <TmemShape kStoreShape, int kStoreCount, TmemShape kLoadShape, int kLoadCount>
struct TmemRoundTrip {
  static constexpr int kIn = tmem_registers(kStoreShape, kStoreCount);
  static constexpr int kOut = tmem_registers(kLoadShape, kLoadCount);
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [128 threads, kIn]
    arch::GlobalPtr<uint32_t> out;       // [128 threads, kOut]
  };
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 100, kMaxArch = 100;
  static constexpr bool kHasTensorMemory = true;
  static constexpr int kColumns = 128;
  struct Storage {
    SharedArray<uint32_t, 1> tmem;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    if (warp_idx() == 0) {
      tmem_allocate<1>(s.tmem.data(), kColumns);
      tmem_relinquish<1>();
    }
    tcgen05_fence_before_thread_sync();
    syncthreads();
    tcgen05_fence_after_thread_sync();
    const TmemPtr base{load(s.tmem.at(0))};
    const TmemPtr mine = base.lanes(32 * warp_idx());
    uint32_t in[kIn], out[kOut];
    PAGODA_UNROLL
    for (int i = 0; i < kIn; ++i) in[i] = load(p.in + thread_idx() * kIn + i);
    tmem_store<kStoreShape, kStoreCount>(mine, in);
    tmem_wait_store();
    tmem_load<kLoadShape, kLoadCount>(out, mine);
    tmem_wait_load();
    PAGODA_UNROLL
    for (int i = 0; i < kOut; ++i) store(p.out + thread_idx() * kOut + i, out[i]);
    tcgen05_fence_before_thread_sync();
    syncthreads();
    if (warp_idx() == 0) {
      tcgen05_fence_after_thread_sync();
      tmem_free<1>(base, kColumns);
    }
  }
};

struct UMmaParams {
  arch::GlobalPtr<const uint8_t> in;  // per CTA: A image, B image; then A[128] rows of K for TS
  arch::GlobalPtr<float> out;         // D, as 128 lanes of n columns per CTA
  SmemDescriptor a[4], b[4];
  InstructionDescriptor instruction;
};

enum class UMmaSource : uint8_t { kShared, kTensorMemory };

// D[128 lanes][kN] per CTA, over four instructions. With two CTAs each loads half of A and of B,
// and CTA 0 issues the products.
template <MmaKind kKind, UMmaSource kSource, int kN, int kGroup>
struct UMmaProduct {
  using Params = UMmaParams;
  static constexpr int kThreads = 128, kClusterSize = kGroup, kMinArch = 100, kMaxArch = 100;
  static constexpr bool kHasTensorMemory = true;
  static constexpr int kColumns = 512, kAColumn = 256;
  static constexpr int kABytes = 128 * 128, kBBytes = kN / kGroup * 128;
  struct Storage {
    SharedArray<Words<4>, kABytes / 16, 1024> a;
    SharedArray<Words<4>, kBBytes / 16, 1024> b;
    MBarrier done;
    SharedArray<uint32_t, 1> tmem;
  };
  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const int cta = kGroup == 1 ? 0 : cluster_rank(), i = thread_idx();
    const auto images = (p.in + cta * (kABytes + kBBytes)).template as<const Words<4>>();
    for (int j = i; j < kABytes / 16; j += kThreads) store(s.a.at(j), load(images + j));
    for (int j = i; j < kBBytes / 16; j += kThreads) {
      store(s.b.at(j), load(images + kABytes / 16 + j));
    }
    fence_proxy_async_shared();
    if (i == 0) {
      s.done.init(1);
      fence_mbarrier_init();
    }
    if (warp_idx() == 0) {
      tmem_allocate<kGroup>(s.tmem.data(), kColumns);
      tmem_relinquish<kGroup>();
    }
    tcgen05_fence_before_thread_sync();
    sync_group();
    tcgen05_fence_after_thread_sync();
    const TmemPtr base{load(s.tmem.at(0))};
    if constexpr (kSource == UMmaSource::kTensorMemory) store_a(p, base, cta);
    if (warp_idx() == 0 && cta == 0) issue(p, s, base);
    s.done.wait(0);
    tcgen05_fence_after_thread_sync();
    uint32_t d[32];
    for (int column = 0; column < kN; column += 32) {
      tmem_load<TmemShape::k32x32b, 32>(d, base.lanes(32 * warp_idx()).columns(column));
      tmem_wait_load();
      const auto out = p.out.template as<uint32_t>() + (cta * 128 + i) * kN + column;
      PAGODA_UNROLL
      for (int j = 0; j < 32; ++j) store(out + j, d[j]);
    }
    tcgen05_fence_before_thread_sync();
    sync_group();
    if (warp_idx() == 0) {
      tcgen05_fence_after_thread_sync();
      tmem_free<kGroup>(base, kColumns);
    }
    if constexpr (kGroup == 2) cluster_sync();
  }
  PAGODA_DEVICE static void sync_group() {
    if constexpr (kGroup == 2) {
      cluster_sync();
    } else {
      syncthreads();
    }
  }
  // A row by row into tensor memory: lane = row, two 16-bit (four 8-bit) values of K per column.
  PAGODA_DEVICE static void store_a(const Params& p, TmemPtr base, int cta) {
    const auto rows =
        (p.in + kGroup * (kABytes + kBBytes) + cta * kABytes).template as<const uint32_t>();
    uint32_t words[32];
    PAGODA_UNROLL
    for (int j = 0; j < 32; ++j) words[j] = load(rows + thread_idx() * 32 + j);
    tmem_store<TmemShape::k32x32b, 32>(base.lanes(32 * warp_idx()).columns(kAColumn), words);
    tmem_wait_store();
    tcgen05_fence_before_thread_sync();
    sync_group();
    tcgen05_fence_after_thread_sync();
  }
  PAGODA_DEVICE static void issue(const Params& p, Storage& s, TmemPtr base) {
    if (elect_one() == 0) return;
    const uint32_t a = s.a.data().address(), b = s.b.data().address();
    using Mma = UMma<kKind, kGroup>;
    for (int step = 0; step < 4; ++step) {
      const SmemDescriptor b_step = advance(p.b[step], b);
      if constexpr (kSource == UMmaSource::kShared) {
        Mma::ss(base, advance(p.a[step], a), b_step, p.instruction, step > 0);
      } else {  // 32 bytes of K are 8 columns
        Mma::ts(base, base.columns(kAColumn + 8 * step), b_step, p.instruction, step > 0);
      }
    }
    if constexpr (kGroup == 2) {
      tcgen05_commit_multicast<2>(s.done, 0b11);
    } else {
      tcgen05_commit<1>(s.done);
    }
  }
};

// --- expected: tables of the PTX ISA, "Data movement shape" --------------------------------------

struct TmemCell {
  size_t lane, column;
};

// What register `r` of `lane` holds, relative to the warp's first lane.
inline TmemCell tmem_cell(TmemShape shape, size_t lane, size_t r) {
  switch (shape) {
    case TmemShape::k16x64b: return {lane / 4 + 8 * (lane % 2), lane / 2 % 2 + 2 * r};
    case TmemShape::k16x128b: return {lane / 4 + 8 * (r % 2), lane % 4 + 4 * (r / 2)};
    case TmemShape::k16x256b:
      return {lane / 4 + 8 * (r / 2 % 2), 2 * (lane % 4) + r % 2 + 8 * (r / 4)};
    default: return {lane, r};
  }
}

template <TmemShape kStoreShape, int kStoreCount, TmemShape kLoadShape, int kLoadCount>
void add_tmem_round_trip_case(Cases& cases, const std::string& name) {
  using Kernel = TmemRoundTrip<kStoreShape, kStoreCount, kLoadShape, kLoadCount>;
  const auto input = from_bytes<uint32_t>(random_bytes(128 * Kernel::kIn * 4, 121));
  std::vector<uint32_t> tmem(128 * 128), expected(128 * Kernel::kOut);
  for (size_t t = 0; t < 128; ++t) {
    for (size_t r = 0; r < Kernel::kIn; ++r) {
      const TmemCell cell = tmem_cell(kStoreShape, t % 32, r);
      tmem[(t / 32 * 32 + cell.lane) * 128 + cell.column] = input[t * Kernel::kIn + r];
    }
  }
  for (size_t t = 0; t < 128; ++t) {
    for (size_t r = 0; r < Kernel::kOut; ++r) {
      const TmemCell cell = tmem_cell(kLoadShape, t % 32, r);
      expected[t * Kernel::kOut + r] = tmem[(t / 32 * 32 + cell.lane) * 128 + cell.column];
    }
  }
  cases.push_back(make_case<Kernel>("tmem_store tmem_load/" + name, {}, to_bytes(input),
                                    poison(expected.size() * 4), to_bytes(expected),
                                    in_and_out<Kernel>()));
}

// K-major, 128-byte swizzle: 128 bytes of K per row, as one TMA box stores them.
inline Bytes k_major_image(const Bytes& rows) {
  Bytes image(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) image[swizzled(i, Swizzle::k128B)] = rows[i];
  return image;
}

template <class T, MmaKind kKind, UMmaSource kSource, int kN, int kGroup>
void add_umma_case(Cases& cases, const std::string& name) {
  using Kernel = UMmaProduct<kKind, kSource, kN, kGroup>;
  constexpr size_t kK = 128 / sizeof(T), kM = 128 * kGroup;
  const auto a = random_integers(kM * kK, 7, 122), b = random_integers(kN * kK, 7, 123);
  std::vector<float> expected(kM * kN);  // two CTAs, M 256: rows 128.. are CTA 1's
  for (size_t row = 0; row < kM; ++row) {
    for (size_t column = 0; column < kN; ++column) {
      int32_t sum = 0;
      for (size_t k = 0; k < kK; ++k) sum += a[row * kK + k] * b[column * kK + k];
      expected[row * kN + column] = static_cast<float>(sum);
    }
  }
  const Bytes a_rows = encode_elements<T>(a), b_rows = encode_elements<T>(b);
  Bytes input;
  const auto append = [&input](const Bytes& part) {
    input.insert(input.end(), part.begin(), part.end());
  };
  for (ptrdiff_t cta = 0; cta < kGroup; ++cta) {
    constexpr ptrdiff_t kA = Kernel::kABytes, kB = Kernel::kBBytes;
    append(k_major_image(Bytes(a_rows.begin() + cta * kA, a_rows.begin() + (cta + 1) * kA)));
    append(k_major_image(Bytes(b_rows.begin() + cta * kB, b_rows.begin() + (cta + 1) * kB)));
  }
  append(a_rows);
  UMmaParams params{};
  const MmaType type = std::same_as<T, BFloat16> ? MmaType::kBF16
                       : std::same_as<T, Half>   ? MmaType::kF16
                                                 : MmaType::kE4M3;
  params.instruction = encode(
      InstructionDescriptorFields{.kind = kKind, .a_type = type, .b_type = type, .m = kM, .n = kN});
  for (uint32_t step = 0; step < 4; ++step) {
    params.a[step] = params.b[step] = encode({.start_bytes = 32 * step,
                                              .leading_bytes = 16,
                                              .stride_bytes = 1024,
                                              .swizzle = Swizzle::k128B},
                                             DescriptorFormat::kSm100);
  }
  cases.push_back(make_case<Kernel>("tcgen05.mma " + name, {.x = kGroup}, input,
                                    poison(expected.size() * 4), to_bytes(expected),
                                    [params](const Buffers& buffers) {
                                      UMmaParams placed = params;
                                      placed.in = reinterpret_cast<const uint8_t*>(buffers.in);
                                      placed.out = reinterpret_cast<float*>(buffers.out);
                                      return placed;
                                    }));
}

inline void add_tcgen05_instances(Cases& cases) {
  using S = TmemShape;
  add_tmem_round_trip_case<S::k32x32b, 1, S::k32x32b, 1>(cases, "32x32b.x1 to 32x32b.x1");
  add_tmem_round_trip_case<S::k32x32b, 128, S::k32x32b, 128>(cases, "32x32b.x128 to 32x32b.x128");
  add_tmem_round_trip_case<S::k32x32b, 64, S::k16x64b, 32>(cases, "32x32b.x64 to 16x64b.x32");
  add_tmem_round_trip_case<S::k32x32b, 32, S::k16x128b, 8>(cases, "32x32b.x32 to 16x128b.x8");
  add_tmem_round_trip_case<S::k32x32b, 32, S::k16x256b, 4>(cases, "32x32b.x32 to 16x256b.x4");
  add_tmem_round_trip_case<S::k16x256b, 2, S::k16x64b, 8>(cases, "16x256b.x2 to 16x64b.x8");
  add_tmem_round_trip_case<S::k16x64b, 16, S::k16x128b, 8>(cases, "16x64b.x16 to 16x128b.x8");
  add_tmem_round_trip_case<S::k16x128b, 4, S::k16x256b, 2>(cases, "16x128b.x4 to 16x256b.x2");

  constexpr auto kShared = UMmaSource::kShared, kTmem = UMmaSource::kTensorMemory;
  add_umma_case<BFloat16, MmaKind::kF16, kShared, 32, 1>(cases, "ss/bf16, N 32, one CTA");
  add_umma_case<Half, MmaKind::kF16, kShared, 256, 1>(cases, "ss/f16, N 256, one CTA");
  add_umma_case<Float8E4M3, MmaKind::kF8F6F4, kShared, 64, 1>(cases, "ss/e4m3, N 64, one CTA");
  add_umma_case<BFloat16, MmaKind::kF16, kTmem, 128, 1>(cases, "ts/bf16, N 128, one CTA");
  add_umma_case<Float8E4M3, MmaKind::kF8F6F4, kTmem, 64, 1>(cases, "ts/e4m3, N 64, one CTA");
  add_umma_case<BFloat16, MmaKind::kF16, kShared, 128, 2>(cases, "ss/bf16, N 128, two CTAs");
  add_umma_case<BFloat16, MmaKind::kF16, kTmem, 64, 2>(cases, "ts/bf16, N 64, two CTAs");
}

}  // namespace pagoda::primitives
