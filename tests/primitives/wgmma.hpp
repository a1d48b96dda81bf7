// wgmma: types, every tested N, A from shared memory and from registers, majors, swizzles. The host
// lays the operands out by its own arithmetic; the kernel only copies them and issues.
#pragma once

#include "arch/fence.hpp"
#include "arch/layout/smem_descriptor.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "arch/wgmma.hpp"
#include "elements.hpp"
#include "swizzled.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

inline constexpr int kWgmmaRowBytes = 128;  // of K: four instructions of 32 bytes each

enum class ASource : uint8_t { kShared, kRegisters };

struct WgmmaParams {
  arch::GlobalPtr<const uint8_t>
      in;                      // A image, B image (multiples of 1024); A[64] rows of K; C[64][N]
  arch::GlobalPtr<float> out;  // D[64][N]
  // The operands of the four instructions, as if their images began at shared address 0.
  SmemDescriptor a[4], b[4];
  bool accumulates;
};

// D[64][N] = C + A B over four instructions. The accumulators start with C, or with values that the
// first instruction must ignore (accumulate == false).
template <class T, int kN, ASource kSource, Major a_major, Major b_major>
struct WarpgroupMma {
  using Params = WgmmaParams;
  static constexpr int kThreads = 128, kClusterSize = 1, kMinArch = 90, kMaxArch = 90;
  static constexpr int kABytes = 64 * kWgmmaRowBytes;
  static constexpr int kBBytes = (kN + 63) / 64 * 64 * kWgmmaRowBytes;
  struct Storage {
    SharedArray<Words<4>, kABytes / 16, 1024> a;
    SharedArray<Words<4>, kBBytes / 16, 1024> b;
  };

  // Word i of this thread's A fragment. PTX ISA, "Register fragments for wgmma.mma_async.m64nNkX":
  // 4 bytes of row group + 8 * (i & 1), at byte 4 * quad + 16 * (i / 2) of the instruction's K.
  PAGODA_DEVICE static uint32_t a_word(arch::GlobalPtr<const uint8_t> rows, int step, int i) {
    const int row = warp_idx() * 16 + lane_idx() / 4 + i % 2 * 8;
    const int byte = step * 32 + i / 2 * 16 + lane_idx() % 4 * 4;
    return load((rows + row * kWgmmaRowBytes + byte).as<const uint32_t>());
  }

  PAGODA_DEVICE static void run(const Params& p) {
    auto& s = shared_storage<Storage>();
    const auto images = p.in.template as<const Words<4>>();
    for (int i = thread_idx(); i < kABytes / 16; i += kThreads) store(s.a.at(i), load(images + i));
    for (int i = thread_idx(); i < kBBytes / 16; i += kThreads) {
      store(s.b.at(i), load(images + kABytes / 16 + i));
    }
    fence_proxy_async_shared();  // the stores above come before wgmma reads them
    syncthreads();

    const arch::GlobalPtr<const uint8_t> rows = p.in + kABytes + kBBytes;
    const auto c = (rows + kABytes).template as<const float>();
    const int row = warp_idx() * 16 + lane_idx() / 4, column = lane_idx() % 4 * 2;
    float d[kN / 2];
    PAGODA_UNROLL
    for (int i = 0; i < kN / 2; ++i) {
      d[i] = load(c + (row + (i >> 1 & 1) * 8) * kN + column + (i & 1) + i / 4 * 8);
    }
    uint32_t a[4][4];
    if constexpr (kSource == ASource::kRegisters) {
      PAGODA_UNROLL
      for (int step = 0; step < 4; ++step) {
        PAGODA_UNROLL
        for (int i = 0; i < 4; ++i) a[step][i] = a_word(rows, step, i);
        wgmma_pin(a[step]);
      }
    }
    const uint32_t a_start = s.a.data().address(), b_start = s.b.data().address();
    wgmma_pin(d);
    wgmma_fence();
    PAGODA_UNROLL
    for (int step = 0; step < 4; ++step) {
      using Mma = Wgmma<T, kN, a_major, b_major>;
      const bool accumulates = step > 0 || p.accumulates;
      if constexpr (kSource == ASource::kRegisters) {
        Mma::rs(d, a[step], advance(p.b[step], b_start), accumulates);
      } else {
        Mma::ss(d, advance(p.a[step], a_start), advance(p.b[step], b_start), accumulates);
      }
    }
    wgmma_commit_group();
    wgmma_wait_group<0>();
    wgmma_pin(d);
    PAGODA_UNROLL
    for (int i = 0; i < kN / 2; ++i) {
      store(p.out + (row + (i >> 1 & 1) * 8) * kN + column + (i & 1) + i / 4 * 8, d[i]);
    }
  }
};

// --- operands ---------------------------------------------------------------------------

// Lays out an operand of `mn` lines and kWgmmaRowBytes of K in panels that are one swizzle width
// wide: K-major, a panel is all mn by some K; MN-major, all K by some mn. Returns its image.
inline Bytes lay_out(const Bytes& rows, size_t mn, size_t element, Major major, Swizzle swizzle,
                     SmemDescriptor (&descriptors)[4]) {
  const size_t width = swizzle_width_bytes(swizzle), k_count = kWgmmaRowBytes / element;
  const size_t lines = major == Major::kK ? mn : k_count;
  const size_t line_bytes = major == Major::kK ? kWgmmaRowBytes : (mn * element + 127) / 128 * 128;
  const size_t panel = lines * width;
  Bytes image(lines * line_bytes, std::byte{0});
  for (size_t i = 0; i < mn; ++i) {
    for (size_t k = 0; k < k_count; ++k) {
      const size_t line = major == Major::kK ? i : k;
      const size_t byte = (major == Major::kK ? k : i) * element;
      const size_t at = byte / width * panel + line * width + byte % width;
      std::memcpy(&image[swizzled(at, swizzle)], &rows[(i * k_count + k) * element], element);
    }
  }
  // PTX ISA, "Strides": what the two offsets mean depends on the major and on the swizzle.
  const auto group = static_cast<uint32_t>(8 * width), next = static_cast<uint32_t>(panel);
  const bool is_plain_mn = major == Major::kMN && swizzle == Swizzle::kNone;
  const bool is_unused = major == Major::kK && swizzle != Swizzle::kNone;
  for (size_t step = 0; step < 4; ++step) {
    const size_t start = major == Major::kK ? step * 32 / width * panel + step * 32 % width
                                            : step * 32 / element * width;
    descriptors[step] = encode({.start_bytes = static_cast<uint32_t>(start),
                                .leading_bytes = is_unused     ? 16
                                                 : is_plain_mn ? group
                                                               : next,
                                .stride_bytes = is_plain_mn ? next : group,
                                .swizzle = swizzle},
                               DescriptorFormat::kSm90);
  }
  return image;
}

// The template arguments of a kernel at run time: the rest of a case is shared code.
struct WgmmaInstance {
  const char* type;
  Bytes (*encode)(const std::vector<int32_t>&);
  size_t element_bytes, n;
  ASource source;
  Major a_major, b_major;
  void (*launch)(const WgmmaParams&, const Buffers&);
};

inline Case make_wgmma_case(const WgmmaInstance& instance, Swizzle swizzle, bool accumulates) {
  const size_t n = instance.n, k_count = kWgmmaRowBytes / instance.element_bytes;
  const auto a = random_integers(64 * k_count, 7, 111), b = random_integers(n * k_count, 7, 112),
             c = random_integers(64 * n, 1000, 113);
  std::vector<float> start(c.begin(), c.end()), expected(64 * n);
  for (size_t row = 0; row < 64; ++row) {
    for (size_t column = 0; column < n; ++column) {
      int32_t sum = accumulates ? c[row * n + column] : 0;
      for (size_t k = 0; k < k_count; ++k) sum += a[row * k_count + k] * b[column * k_count + k];
      expected[row * n + column] = static_cast<float>(sum);
    }
  }
  const Bytes a_rows = instance.encode(a), b_rows = instance.encode(b);
  WgmmaParams params{};
  params.accumulates = accumulates;
  Bytes input = lay_out(a_rows, 64, instance.element_bytes, instance.a_major, swizzle, params.a);
  Bytes b_image = lay_out(b_rows, n, instance.element_bytes, instance.b_major, swizzle, params.b);
  input.resize(64 * kWgmmaRowBytes);
  b_image.resize((n + 63) / 64 * 64 * kWgmmaRowBytes);
  for (const Bytes& part : {b_image, a_rows, to_bytes(start)}) {
    input.insert(input.end(), part.begin(), part.end());
  }
  const auto major_name = [](Major major) { return major == Major::kK ? "K" : "MN"; };
  Case result;
  result.min_arch = result.max_arch = 90;
  result.name = std::string("wgmma ") + (instance.source == ASource::kShared ? "ss/" : "rs/") +
                instance.type + "/N " + std::to_string(n) + "/A " + major_name(instance.a_major) +
                ", B " + major_name(instance.b_major) + "/" + swizzle_name(swizzle) +
                (accumulates ? "/accumulates" : "");
  result.input = std::move(input);
  result.output = poison(expected.size() * 4);
  result.expected = to_bytes(expected);
  result.run = [params, launch = instance.launch](const Buffers& buffers) {
    WgmmaParams placed = params;
    placed.in = reinterpret_cast<const uint8_t*>(buffers.in);
    placed.out = reinterpret_cast<float*>(buffers.out);
    launch(placed, buffers);
  };
  return result;
}

template <class T, int kN, ASource kSource, Major a_major = Major::kK, Major b_major = Major::kK>
void add_wgmma_instance(Cases& cases) {
  constexpr bool kIsBFloat16 = std::same_as<T, BFloat16>, kIsHalf = std::same_as<T, Half>;
  const WgmmaInstance instance{.type = kIsBFloat16 ? "bf16"
                                       : kIsHalf   ? "f16"
                                                   : "e4m3",
                               .encode = encode_elements<T>,
                               .element_bytes = sizeof(T),
                               .n = kN,
                               .source = kSource,
                               .a_major = a_major,
                               .b_major = b_major,
                               .launch = [](const WgmmaParams& params, const Buffers& buffers) {
                                 launch<WarpgroupMma<T, kN, kSource, a_major, b_major>>({}, params,
                                                                                        buffers);
                               }};
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    cases.push_back(make_wgmma_case(instance, swizzle, swizzle == Swizzle::k64B));
  }
}

template <class T, int... kN>
void add_wgmma_k_major(Cases& cases) {
  (add_wgmma_instance<T, kN, ASource::kShared>(cases), ...);
  (add_wgmma_instance<T, kN, ASource::kRegisters>(cases), ...);
}

template <class T, int... kN>
void add_wgmma_mn_major(Cases& cases) {
  (add_wgmma_instance<T, kN, ASource::kShared, Major::kMN, Major::kK>(cases), ...);
  (add_wgmma_instance<T, kN, ASource::kShared, Major::kK, Major::kMN>(cases), ...);
  (add_wgmma_instance<T, kN, ASource::kShared, Major::kMN, Major::kMN>(cases), ...);
  (add_wgmma_instance<T, kN, ASource::kRegisters, Major::kK, Major::kMN>(cases), ...);
}

template <class T>
void add_wgmma_type(Cases& cases) {
  add_wgmma_k_major<T, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256>(cases);
  if constexpr (sizeof(T) == 2) add_wgmma_mn_major<T, 24, 64, 256>(cases);
}

}  // namespace pagoda::primitives
