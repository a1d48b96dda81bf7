// Element types of tensors.
#pragma once

#include <cstdint>

namespace pagoda {

enum class DType : uint8_t {
  kF32,
  kF16,     // IEEE binary16
  kBF16,    // the upper half of a binary32
  kF8E4M3,  // OCP e4m3 "fn": no infinity, largest value 448, NaN = 0x7f / 0xff
};

[[nodiscard]] constexpr int64_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 4;
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kF8E4M3: return 1;
  }
  return 0;
}

[[nodiscard]] constexpr const char* name(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "fp32";
    case DType::kF16: return "fp16";
    case DType::kBF16: return "bf16";
    case DType::kF8E4M3: return "fp8_e4m3";
  }
  return "?";
}

}  // namespace pagoda
