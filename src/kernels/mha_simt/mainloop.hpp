// Mainloop: the KV tiles of one warp. A lane has rows_per_lane() rows of the work tile, which it
// shares with the 15 other lanes of its row group: of S it has keys c and c + 16, of O columns 4 c
// .. 4 c + 3 of every 64, where c = lane % 16.
#pragma once

#include <cmath>
#include <cstdint>

#include "arch/fault.hpp"
#include "arch/math.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row.hpp"
#include "kernels/common/split_rows.hpp"
#include "kernels/mha_simt/kv_tile.hpp"
#include "softmax/online.hpp"

namespace pagoda::mha_simt {

using Rule = softmax::RescaleLazily;
using Row = kernels::Row<Rule>;
using Online = softmax::OnlineRow<Rule>;
using kernels::FloatQuad;

// Row `index` of the work tile.
PAGODA_DEVICE Row make_row(const kernels::AttentionParams& params, const kernels::Work& work,
                           int index) {
  return kernels::tile_row<Rule, kernels::RowMap::kPacked>(params, work, index);
}

PAGODA_DEVICE FloatQuad load_quad(arch::SharedPtr<float> from) {
  return arch::load(from.as<const FloatQuad>());
}

template <class Config>
class Mainloop {
 public:
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kRows = tile.rows_per_lane();
  static constexpr int kKeys = TileConfig::BN / TileConfig::kRowLanes;  // of a lane in S
  static constexpr int kStride = Storage<Config>::kRowStride;
  static constexpr int kPStride = Storage<Config>::kPStride;
  static constexpr int kChunks = tile.chunks_vo();
  static constexpr int kVKeys = tile.v_keys();

  // The rows of a lane: its own part of the row sums, the whole row's maxima; its columns of O.
  using OnlineRows = Online[kRows];
  using Output = float[kChunks][kRows][4];

  PAGODA_DEVICE Mainloop(const kernels::AttentionParams& params, const kernels::Work& work,
                         Storage<Config>& storage)
      : params_(params),
        work_(work),
        q_(storage.rows.data()),
        warp_(arch::thread_idx() / tile.warp_size),
        p_(storage.p.at(warp_ * tile.BM * kPStride)),
        column_(arch::lane_idx() % TileConfig::kRowLanes),
        first_row_(arch::lane_idx() / TileConfig::kRowLanes * kRows),
        kv_(storage, warp_) {}

  // Work tile row of the lane's row 0.
  [[nodiscard]] PAGODA_DEVICE int first_row() const { return first_row_; }

  PAGODA_DEVICE void run(OnlineRows& online, Output& o) {
    const operand::SequenceRows rows = params_.sequences.keys.sequence(work_.sequence);
    // Lanes whose rows hold no query only copy.
    const bool has_rows = first_row_ < work_.valid_tokens * work_.num_heads;
    PAGODA_NO_UNROLL
    for (int32_t index = warp_; index < work_.walk.num_tiles; index += TileConfig::kWarps) {
      const int32_t first_key = work_.walk.column(index);
      kv_.find_rows(params_, work_, rows, first_key, work_.walk.valid_keys(index));
      float s[kRows][kKeys];
      multiply_q_k(has_rows, s);
      apply_score_mods(first_key, s);
      if (index >= work_.walk.unmasked_end || index < work_.walk.unmasked_begin) {
        apply_mask(first_key, s);
      }
      update_softmax(s, online, o);
      multiply_p_v(has_rows, o);
    }
  }

 private:
  PAGODA_DEVICE void multiply_q_k(bool has_rows, float (&s)[kRows][kKeys]) {
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      PAGODA_UNROLL
      for (int k = 0; k < kKeys; ++k) s[i][k] = 0;
    }
    // The first syncwarp comes between the last reads of P and its next stores; the last one of V
    // between those of the offsets.
    PAGODA_NO_UNROLL
    for (int32_t first = 0; first < params_.dim_qk; first += TileConfig::kChunk) {
      arch::syncwarp();  // offsets are stored, and all lanes have read the chunk before
      kv_.stage_k(params_, first);
      arch::syncwarp();  // the chunk is stored
      if (!has_rows) continue;
      PAGODA_NO_UNROLL
      for (int d = 0; d < TileConfig::kChunk; d += 8) {
        add_q_k(first, d, s);
        add_q_k(first, d + 4, s);
      }
    }
  }
  // Adds the products of four elements.
  PAGODA_DEVICE void add_q_k(int32_t first, int d, float (&s)[kRows][kKeys]) const {
    FloatQuad k[kKeys];
    PAGODA_UNROLL
    for (int j = 0; j < kKeys; ++j) {
      k[j] = load_quad(kv_.k(column_ + j * TileConfig::kRowLanes, d));
    }
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const FloatQuad q = load_quad(q_ + ((first_row_ + i) * kStride + first + d));
      PAGODA_UNROLL
      for (int j = 0; j < kKeys; ++j) {
        PAGODA_UNROLL
        for (int e = 0; e < 4; ++e) s[i][j] += q.value[e] * k[j].value[e];
      }
    }
  }

  // From products to scores in log2 units.
  PAGODA_DEVICE void apply_score_mods(int32_t first_key, float (&s)[kRows][kKeys]) const {
    const float k_scale = arch::mutable_factor("K scale x 1.02", kernels::k_scale(params_, work_));
    const bool has_biases = params_.alibi_slopes != nullptr || params_.mask.has_bias();
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      float scale = k_scale;
      if (has_biases || params_.q_scales.values != nullptr) {
        const Row row = make_row(params_, work_, first_row_ + i);
        if (!row.is_valid) continue;
        scale *= params_.q_scales.of(work_.sequence, row.q_head / params_.q_scale_group);
        PAGODA_UNROLL
        for (int j = 0; j < kKeys; ++j) s[i][j] = params_.score_map(s[i][j] * scale);
        kernels::add_biases<kKeys>(
            params_, work_.rows, row, [&](int j) -> float& { return s[i][j]; },
            [&](int j) { return first_key + column_ + j * TileConfig::kRowLanes; });
      } else {
        PAGODA_UNROLL
        for (int j = 0; j < kKeys; ++j) s[i][j] = params_.score_map(s[i][j] * scale);
      }
    }
  }

  // Scores of masked keys become -infinity. Each of the lanes that share rows evaluates the 32 bits
  // of one row, and shuffles share them.
  PAGODA_DEVICE void apply_mask(int32_t first_key, float (&s)[kRows][kKeys]) const {
    static_assert(kRows <= TileConfig::kRowLanes && TileConfig::BN == 32);
    uint32_t own = 0;
    const Row row = make_row(params_, work_, first_row_ + column_ % kRows);
    if (row.is_valid && row.keys.keep32(first_key) != 0) {
      own = params_.mask.row(work_.rows, row.token).keep32(first_key);
    }
    own = arch::mutable_value("one key dropped", own, own & own >> 1U);
    own = arch::mutable_value("one hidden key kept", own, own | own << 1U);
    const int lane = arch::lane_idx();
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const uint32_t keep = arch::shuffle(own, lane - column_ + i) >> column_;
      PAGODA_UNROLL
      for (int j = 0; j < kKeys; ++j) {
        if ((keep >> (j * TileConfig::kRowLanes) & 1U) == 0) s[i][j] = softmax::kMinusInfinity;
      }
    }
  }

  // Moves the pivots, and stores P = exp2(S - pivot) for the lanes of the row group.
  PAGODA_DEVICE void update_softmax(const float (&s)[kRows][kKeys], OnlineRows& online, Output& o) {
    float largest[kRows];
    bool wants = false;
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      largest[i] = s[i][0];
      PAGODA_UNROLL
      for (int j = 1; j < kKeys; ++j) largest[i] = fmaxf(largest[i], s[i][j]);
      PAGODA_UNROLL
      for (int step = 1; step < TileConfig::kRowLanes; step *= 2) {
        largest[i] = fmaxf(largest[i], arch::shuffle_xor(largest[i], step));
      }
      wants = wants || online[i].wants_rescale(largest[i]);
    }
    const bool rescales = arch::any(wants);
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      float factor = online[i].begin_tile(largest[i], rescales);
      online[i].add(arch::mutable_value("row sum not rescaled", 0.0F,
                                        online[i].sums().sum * (1 / factor - 1)));
      factor = arch::mutable_value("O not rescaled", factor, 1.0F);
      if (rescales) {
        PAGODA_UNROLL
        for (int chunk = 0; chunk < kChunks; ++chunk) {
          PAGODA_UNROLL
          for (int e = 0; e < 4; ++e) o[chunk][i][e] *= factor;
        }
      }
      const float offset = online[i].offset();
      PAGODA_UNROLL
      for (int j = 0; j < kKeys; ++j) {
        const float p = arch::exp2_approx(s[i][j] + offset);
        online[i].add(p);
        arch::store(p_ + ((first_row_ + i) * kPStride + column_ + j * TileConfig::kRowLanes), p);
      }
    }
  }

  PAGODA_DEVICE void multiply_p_v(bool has_rows, Output& o) {
    PAGODA_NO_UNROLL
    for (int first = 0; first < kv_.num_keys(); first += kVKeys) {
      arch::syncwarp();  // P is stored, and all lanes have read the keys before
      kv_.stage_v(params_, first);
      arch::syncwarp();  // the keys are stored
      if (!has_rows) continue;
      PAGODA_NO_UNROLL
      for (int key = 0; key < kVKeys; key += 4) add_p_v(first, key, o);
    }
  }
  // Adds the products of four keys.
  PAGODA_DEVICE void add_p_v(int first, int key, Output& o) const {
    FloatQuad p[kRows];
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      p[i] = load_quad(p_ + ((first_row_ + i) * kPStride + first + key));
    }
    PAGODA_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk * TileConfig::kChunk >= params_.dim_vo) continue;
      FloatQuad v[4];
      PAGODA_UNROLL
      for (int j = 0; j < 4; ++j) {
        v[j] = load_quad(kv_.v(key + j, chunk * TileConfig::kChunk + 4 * column_));
      }
      PAGODA_UNROLL
      for (int i = 0; i < kRows; ++i) {
        PAGODA_UNROLL
        for (int j = 0; j < 4; ++j) {
          PAGODA_UNROLL
          for (int e = 0; e < 4; ++e) o[chunk][i][e] += p[i].value[j] * v[j].value[e];
        }
      }
    }
  }

  const kernels::AttentionParams& params_;
  const kernels::Work& work_;
  arch::SharedPtr<float> q_;
  int warp_;
  arch::SharedPtr<float> p_;
  int column_, first_row_;
  KVTile<Config> kv_;
};

}  // namespace pagoda::mha_simt
