// One function per instruction set and ceiling. The caller checks that the machine has the
// instructions. Plain functions: the translation units behind them include nothing that the linker
// could share with code for older machines.
#pragma once

#include <cstdint>

namespace pagoda::bench {

// Multiply-adds on registers only, `rounds` times; returns the floating-point operations done.
int64_t fp32_rounds_scalar(int64_t rounds);
int64_t fp32_rounds_avx2(int64_t rounds);
int64_t fp32_rounds_avx512(int64_t rounds);
int64_t bf16_rounds_avx512_bf16(int64_t rounds);  // vdpbf16ps
int64_t bf16_rounds_amx(int64_t rounds);          // tdpbf16ps; needs the tile permission

// exp() of fp32 vectors, the way a fast softmax does it (range reduction, a polynomial of degree
// 5); returns the exponentials done.
int64_t exp_rounds_avx2(int64_t rounds);
int64_t exp_rounds_avx512(int64_t rounds);

// Reads `bytes` (a multiple of 1024) once, front to back; the result depends on every byte.
uint64_t read_scalar(const void* data, int64_t bytes);
uint64_t read_avx2(const void* data, int64_t bytes);
uint64_t read_avx512(const void* data, int64_t bytes);

// `rounds` * 16 dependent one-cycle additions, to measure the clock.
void count_cycles_scalar(int64_t rounds);

}  // namespace pagoda::bench
