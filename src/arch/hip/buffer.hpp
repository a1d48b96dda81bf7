// AMD implementation of arch/buffer.hpp.
//
// AMD Instinct MI300 ISA, "Vector Memory Buffer Instructions": a raw buffer (stride 0) is out of
// range where offset >= num_records.
#pragma once

#include <cstdint>

#include "arch/global_ptr.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace hip {

struct BufferResource {
  __amdgpu_buffer_rsrc_t resource;
};

// The resource is in scalar registers: without readfirstlane clang would loop over its values.
PAGODA_DEVICE BufferResource make_buffer(GlobalPtr<const char> base, uint32_t bytes,
                                         Where = Where::current()) {
  constexpr int kFlags = 0x00027000;  // 32-bit data format; word 3
  const uint64_t address = base.address();
  const auto low = static_cast<uint32_t>(
      __builtin_amdgcn_readfirstlane(static_cast<int>(static_cast<uint32_t>(address))));
  const auto high = static_cast<uint32_t>(
      __builtin_amdgcn_readfirstlane(static_cast<int>(static_cast<uint32_t>(address >> 32U))));
  const int size = __builtin_amdgcn_readfirstlane(static_cast<int>(bytes));
  void* const uniform = reinterpret_cast<void*>(static_cast<uint64_t>(high) << 32U | low);
  return {__builtin_amdgcn_make_buffer_rsrc(uniform, 0, size, kFlags)};
}

PAGODA_DEVICE Words<4> load_buffer(const BufferResource& buffer, uint32_t offset,
                                   Where = Where::current()) {
  using Vector = uint32_t __attribute__((ext_vector_type(4)));
  const Vector words = __builtin_amdgcn_raw_buffer_load_b128(buffer.resource, offset, 0, 0);
  return {{words.x, words.y, words.z, words.w}};
}

}  // namespace hip
}  // namespace pagoda::arch
