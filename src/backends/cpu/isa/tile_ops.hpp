// TileOps: the tile operations of one instruction set. Plain data and functions only: the units
// that fill this table are compiled for instructions that the host may lack, so they share no
// inline function or template with the rest of the library (the linker could keep their copy).
//
// Panels. Both operands that the inner products run along are stored in panels of 16 columns of
// 32-bit words; a word is one float, or a pair of bf16 along the contraction (VNNI order):
//   K panels  [key / 16][depth word][16 keys]     word = d, or (2d, 2d + 1)
//   V panels  [column / 16][key word][16 columns]  word = key, or (2 key, 2 key + 1)
// A unit may permute the columns of V within its column_align; its store() undoes it.
#pragma once

#include <cstdint>

namespace pagoda::cpu {

inline constexpr int kPanel = 16;     // columns of a panel = keys of a block
inline constexpr int kRowGroup = 32;  // query rows whose scores stay in L1
inline constexpr int kMaxTileKeys = 512;

// The same numbers as pagoda::DType; the isa units see no other header of ours.
enum : int { kElementF32 = 0, kElementF16 = 1, kElementBF16 = 2, kElementF8E4M3 = 3 };

struct PanelSource {
  const void* const* rows;  // [count] pointers to the first element of each key's row
  int count;                // keys
  int element;              // kElement...
  int width;                // elements of a row
  int ahead;                // prefetch row i + ahead when row i is used; 0 = never
  int known;                // entries of `rows`; those past `count` are prefetched only
};

// c[rows][ldc] (+)= a[rows][lda] * panels, in whole panels: c has num_panels * 16 columns and is
// written for up to a multiple of 16 rows. lda, contraction and panel_words count 32-bit words.
struct Gemm {
  float* c;
  int ldc;
  const void* a;
  int lda;
  const void* panels;
  int64_t panel_words;
  int rows;
  int num_panels;
  int contraction;
  bool accumulate;
};

// Scores of a few rows from the rows of K, without packing: scores[rows][ld], written up to a
// multiple of 32 keys (undefined past the last key).
struct DirectScores {
  float* scores;
  int ld;
  const void* q;        // [rows], written by pack_q
  int ldq;              // 32-bit words
  const void* q_panel;  // the same rows, written by pack_k
  int rows;
  const PanelSource* k;
  void* scratch;  // 32 rows of Q's width
};

// o[rows][ldo] (+)= probs * V, from the rows of V without packing.
struct DirectOutput {
  float* o;
  int ldo;
  const void* probs;  // [rows], of v->count keys and zeros up to a multiple of 32
  int ldp;            // 32-bit words
  int rows;
  const PanelSource* v;
  bool accumulate;
};

struct ScoreTile {
  float* scores;  // [rows][ld], overwritten with the probabilities for fp32
  void* probs;    // [rows][ld] of the compute type (fp32: == scores)
  int ld;
  int rows;
  int keys;           // columns of the tile that hold scores, a multiple of 32
  const int32_t* lo;  // [rows] the visible columns of row r are [lo[r], hi[r])
  const int32_t* hi;
  float scale_log2;         // score * scale_log2 = exponent of 2; > 0
  bool has_minus_infinity;  // scores may hold -inf inside [lo, hi)
  float* m;                 // [rows] running maximum, exponent of 2; -inf before the first key
  float* l;                 // [rows] running sum of 2^(exponent - m)
  float* o;                 // [rows][ldo] accumulators, rescaled when m grows
  int ldo;
  int columns;    // of o
  bool is_first;  // o is uninitialised
};

struct ScoreMods {
  float scale;        // natural units
  float softcap;      // 0 = off
  float alibi_slope;  // per row: added slope * (key - query)
  float first_delta;  // key of column 0 minus the query's position
};

struct TileOps {
  bool is_bf16;     // the compute type: bf16 pairs or fp32
  int depth_align;  // head_dim_qk is padded with zeros to a multiple of this (elements)

  int column_align;  // head_dim_vo likewise

  // Before the first tile of a work item and after the last one.
  void (*begin)();
  void (*end)();

  // dst[width padded to depth_align with zeros] of the compute type.
  void (*pack_q)(void* dst, const void* row, int element, int width, int padded_width);
  // Rows past `count`, up to a multiple of 32, become zeros.
  void (*pack_k)(void* panels, const PanelSource* source, int padded_width, void* scratch);
  void (*pack_v)(void* panels, const PanelSource* source, int64_t panel_words);

  // `side`, if not null, is an independent softmax to interleave with the product.
  void (*gemm)(const Gemm* product, const ScoreTile* side);

  // Packing pays only if a panel is read several times: up to this many query rows (at most 16), K
  // and V are read in place.
  int direct_k_rows;
  int direct_v_rows;
  void (*direct_scores)(const DirectScores* scores);
  void (*direct_output)(const DirectOutput* output);

  // Online softmax of one tile: scores -> probabilities, m, l and the rescaled o.
  void (*softmax)(const ScoreTile* tile);
  // In place: scores[n] -> scale, softcap, ALiBi in natural units.
  void (*modify)(float* scores, int n, const ScoreMods* mods);
  // acc[n] = acc * a + src * b: merges partial results.
  void (*blend)(float* acc, const float* src, int n, float a, float b);
  // dst[n] = src * factor in the output's type; src is a row of o, in the order of V's panels.
  void (*store)(void* dst, int element, const float* src, int n, float factor);
};

extern const TileOps kTileOpsScalarF32;
#if defined(__x86_64__)
extern const TileOps kTileOpsAvx2F32;
extern const TileOps kTileOpsAvx512F32;
extern const TileOps kTileOpsAvx512Bf16;
extern const TileOps kTileOpsAmxBf16;
#endif

}  // namespace pagoda::cpu
