// The 32-bit instruction descriptor of tcgen05.mma: types, majorness and shape of one instruction.
// Encodes, decodes, and validates against the shapes of each kind. PTX ISA, "Instruction
// descriptor"; shapes as CUTLASS 4.7.0 asserts them. No Blackwell chip has run it yet.
#pragma once

#include <cstdint>

#include "arch/layout/smem_descriptor.hpp"
#include "core/target.hpp"

namespace pagoda::arch {

enum class MmaKind : uint8_t { kF16, kTF32, kF8F6F4, kI8, kMxF8F6F4, kMxF4, kMxF4NvF4 };
enum class MmaType : uint8_t { kF16, kBF16, kTF32, kE4M3, kE5M2, kE2M3, kE3M2, kE2M1, kU8, kS8 };
enum class AccumulatorType : uint8_t { kF16, kF32, kS32 };  // the codes of bits 4-5
enum class ScaleType : uint8_t { kUE4M3, kUE8M0 };          // the codes of bit 23

// How the instruction is issued; not part of the descriptor.
struct MmaForm {
  MmaKind kind = MmaKind::kF16;
  int32_t cta_group = 1;
  bool is_ws = false;         // .ws: weight stationary, M may be 32
  bool is_a_in_tmem = false;  // "TS"
};

struct InstructionDescriptor {
  uint32_t bits = 0;
  friend bool operator==(const InstructionDescriptor&, const InstructionDescriptor&) = default;
};

struct InstructionDescriptorFields {
  MmaKind kind = MmaKind::kF16;  // decides what the type codes mean
  MmaType a_type = MmaType::kF16, b_type = MmaType::kF16;
  AccumulatorType d_type = AccumulatorType::kF32;  // block-scaled kinds have no other
  Major a_major = Major::kK, b_major = Major::kK;
  int32_t m = 128, n = 128;
  bool is_a_negated = false, is_b_negated = false;
  bool is_saturated = false;  // kI8
  bool is_sparse = false;
  uint32_t sparsity_selector = 0;            // 0 .. 3; block-scaled kinds: 0
  uint32_t max_shift = 0;                    // .ws only: 0 none, 1 = 8, 2 = 16, 3 = 32
  ScaleType scale_type = ScaleType::kUE4M3;  // block-scaled kinds only, as the next three
  uint32_t a_scale_id = 0, b_scale_id = 0;   // byte of the 32-bit TMEM word
  bool has_k96 = false;                      // fp4 kinds
  friend bool operator==(const InstructionDescriptorFields&,
                         const InstructionDescriptorFields&) = default;
};

PAGODA_HOST_DEVICE constexpr bool is_block_scaled(MmaKind kind) {
  return kind >= MmaKind::kMxF8F6F4;
}

// Bits 7-9 and 10-12; kNoTypeCode where the kind has no such type.
inline constexpr uint32_t kNoTypeCode = ~0U;
PAGODA_HOST_DEVICE constexpr uint32_t type_code(MmaKind kind, MmaType type) {
  const auto after = [type](MmaType first, MmaType last) {
    return type >= first && type <= last
               ? static_cast<uint32_t>(type) - static_cast<uint32_t>(first)
               : kNoTypeCode;
  };
  switch (kind) {
    case MmaKind::kF16: return after(MmaType::kF16, MmaType::kBF16);
    case MmaKind::kTF32: return type == MmaType::kTF32 ? 2 : kNoTypeCode;
    case MmaKind::kI8: return after(MmaType::kU8, MmaType::kS8);
    case MmaKind::kF8F6F4:
    case MmaKind::kMxF8F6F4: return after(MmaType::kE4M3, MmaType::kE2M1);
    default: return type == MmaType::kE2M1 ? 1 : kNoTypeCode;
  }
}

PAGODA_HOST_DEVICE constexpr int32_t type_bits(MmaType type) {
  switch (type) {
    case MmaType::kTF32: return 32;
    case MmaType::kF16:
    case MmaType::kBF16: return 16;
    case MmaType::kE2M3:
    case MmaType::kE3M2: return 6;
    case MmaType::kE2M1: return 4;
    default: return 8;
  }
}

PAGODA_HOST_DEVICE constexpr InstructionDescriptor encode(
    const InstructionDescriptorFields& fields) {
  const auto field = [](auto value, int first) { return static_cast<uint32_t>(value) << first; };
  uint32_t bits = field(fields.sparsity_selector, 0) | field(fields.is_sparse, 2) |
                  field(type_code(fields.kind, fields.a_type) & 7U, 7) |
                  field(type_code(fields.kind, fields.b_type) & 7U, 10) |
                  field(fields.is_a_negated, 13) | field(fields.is_b_negated, 14) |
                  field(fields.a_major, 15) | field(fields.b_major, 16) | field(fields.n >> 3, 17) |
                  field(fields.m >> 4, 24);
  if (is_block_scaled(fields.kind)) {
    bits |= field(fields.b_scale_id, 4) | field(fields.scale_type, 23) |
            field(fields.a_scale_id, 29) | field(fields.has_k96, 31);
  } else {
    bits |= field(fields.is_saturated, 3) | field(fields.d_type, 4) | field(fields.max_shift, 30);
  }
  return {bits};
}

// The fields of a descriptor that `validate` accepts.
PAGODA_HOST_DEVICE constexpr InstructionDescriptorFields decode(InstructionDescriptor descriptor,
                                                                MmaKind kind) {
  const auto get = [descriptor](int first, int count) {
    return descriptor.bits >> first & ((1U << count) - 1);
  };
  InstructionDescriptorFields fields{.kind = kind};
  for (uint32_t t = 0; t <= static_cast<uint32_t>(MmaType::kS8); ++t) {
    const auto type = static_cast<MmaType>(t);
    if (type_code(kind, type) == get(7, 3)) fields.a_type = type;
    if (type_code(kind, type) == get(10, 3)) fields.b_type = type;
  }
  fields.sparsity_selector = get(0, 2);
  fields.is_sparse = get(2, 1) != 0;
  fields.is_a_negated = get(13, 1) != 0;
  fields.is_b_negated = get(14, 1) != 0;
  fields.a_major = static_cast<Major>(get(15, 1));
  fields.b_major = static_cast<Major>(get(16, 1));
  fields.n = static_cast<int32_t>(get(17, 6) << 3);
  fields.m = static_cast<int32_t>(get(24, 5) << 4);
  if (is_block_scaled(kind)) {
    fields.b_scale_id = get(4, 2);
    fields.scale_type = static_cast<ScaleType>(get(23, 1));
    fields.m = static_cast<int32_t>(get(27, 2) << 7);
    fields.a_scale_id = get(29, 2);
    fields.has_k96 = get(31, 1) != 0;
  } else {
    fields.is_saturated = get(3, 1) != 0;
    fields.d_type = static_cast<AccumulatorType>(get(4, 2));
    fields.max_shift = get(30, 2);
  }
  return fields;
}

// The reason why a form has no instruction of this M and N, or nullptr.
PAGODA_HOST_DEVICE constexpr const char* validate_shape(const MmaForm& form, int32_t m, int32_t n) {
  const auto n_is_multiple_of = [n](int32_t step) {
    return n >= step && n <= 256 && n % step == 0;
  };
  if (form.cta_group != 1 && form.cta_group != 2) return "cta_group is neither 1 nor 2";
  const bool is_pair = form.cta_group == 2;
  if (form.is_ws) {
    if (is_pair) return ".ws has no two-CTA form";
    if (is_block_scaled(form.kind)) return ".ws has no block-scaled kinds";
    if (m != 32 && m != 64 && m != 128) return ".ws: M must be 32, 64 or 128";
    return n == 64 || n == 128 || n == 256 ? nullptr : ".ws: N must be 64, 128 or 256";
  }
  if (is_block_scaled(form.kind)) {
    const bool has_pair_m128 = form.kind != MmaKind::kMxF8F6F4;
    if (!is_pair && m != 128) return "block-scaled, one CTA: M must be 128";
    if (is_pair && m != 256 && !(m == 128 && has_pair_m128)) {
      return "block-scaled, two CTAs: M must be 256 (fp4: or 128)";
    }
    if (!is_pair) return n_is_multiple_of(8) ? nullptr : "block-scaled: N must be 8, 16 .. 256";
    return n_is_multiple_of(16) ? nullptr : "block-scaled, two CTAs: N must be 16, 32 .. 256";
  }
  if (is_pair) {
    if (m != 128 && m != 256) return "two CTAs: M must be 128 or 256";
    if (form.is_a_in_tmem || form.kind == MmaKind::kI8) {
      return n_is_multiple_of(32) ? nullptr
                                  : "two CTAs, A in TMEM or kind i8: N must be 32, 64 .. 256";
    }
    return n_is_multiple_of(16) ? nullptr : "two CTAs: N must be 16, 32 .. 256";
  }
  if (m != 64 && m != 128) return "one CTA: M must be 64 or 128";
  if (m == 128) return n_is_multiple_of(16) ? nullptr : "M 128: N must be 16, 32 .. 256";
  if (form.kind == MmaKind::kI8) {
    return n == 8 || n == 24 || n_is_multiple_of(16)
               ? nullptr
               : "kind i8, M 64: N must be 8, 16, 24, 32, 48 .. 256";
  }
  return n_is_multiple_of(8) ? nullptr : "M 64: N must be 8, 16 .. 256";
}

// The reason why the types of A, B and D do not combine, or nullptr.
PAGODA_HOST_DEVICE constexpr const char* validate_types(const InstructionDescriptorFields& fields) {
  const bool is_half = fields.d_type == AccumulatorType::kF16;
  switch (fields.kind) {
    case MmaKind::kI8:
      if (fields.d_type != AccumulatorType::kS32) return "kind i8: D must be s32";
      if (fields.is_a_negated || fields.is_b_negated) return "kind i8 can't negate A or B";
      return nullptr;
    case MmaKind::kTF32:
      return fields.d_type == AccumulatorType::kF32 ? nullptr : "kind tf32: D must be f32";
    case MmaKind::kF16:
      if (is_half && (fields.a_type != MmaType::kF16 || fields.b_type != MmaType::kF16)) {
        return "kind f16: D of f16 needs A and B of f16";
      }
      break;
    default: break;
  }
  return is_half || fields.d_type == AccumulatorType::kF32 ? nullptr : "D must be f16 or f32";
}

PAGODA_HOST_DEVICE constexpr const char* validate(InstructionDescriptor descriptor,
                                                  const MmaForm& form) {
  const uint32_t bits = descriptor.bits;
  const InstructionDescriptorFields fields = decode(descriptor, form.kind);
  if ((bits >> 6 & 1U) != 0) return "bit 6 of the instruction descriptor must be 0";
  if (type_code(form.kind, fields.a_type) != (bits >> 7 & 7U)) return "no type of A has this code";
  if (type_code(form.kind, fields.b_type) != (bits >> 10 & 7U)) return "no type of B has this code";
  if (fields.is_sparse || fields.sparsity_selector != 0) return "sparse A is unsupported";
  if ((fields.a_major == Major::kMN && type_bits(fields.a_type) < 8) ||
      (fields.b_major == Major::kMN && type_bits(fields.b_type) < 8)) {
    return "operands of 4 and 6 bits must be K-major";
  }
  if (form.is_a_in_tmem && fields.a_major != Major::kK) return "A in TMEM must be K-major";
  if (is_block_scaled(form.kind)) {
    const bool is_fp4 = form.kind != MmaKind::kMxF8F6F4;
    if ((bits & 1U << 3) != 0 || (bits & 7U << 24) != 0) {
      return "bits 3 and 24-26 of a block-scaled descriptor must be 0 (M is 128 or 256)";
    }
    if (fields.has_k96) return "K of 96 (bit 31) is unsupported";
    if (fields.scale_type != ScaleType::kUE8M0 && form.kind != MmaKind::kMxF4NvF4) {
      return "only mxf4nvf4 takes scales of UE4M3";
    }
    if (is_fp4 && (fields.a_scale_id % 2 != 0 || fields.b_scale_id % 2 != 0)) {
      return "fp4 kinds: a scale id must be 0 or 2";
    }
  } else {
    if ((bits & 1U << 23) != 0 || (bits & 1U << 29) != 0) {
      return "bits 23 and 29 of the instruction descriptor must be 0";
    }
    if (fields.is_saturated && form.kind != MmaKind::kI8) return "only kind i8 saturates";
    if (fields.max_shift != 0 && !form.is_ws) return "a maximum shift needs .ws";
    if (const char* reason = validate_types(fields); reason != nullptr) return reason;
  }
  return validate_shape(form, fields.m, fields.n);
}

}  // namespace pagoda::arch
