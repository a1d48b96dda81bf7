// make_only_work: the work tile of a CTA that decodes one sequence of one token.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "kernels/common/stream_k.hpp"

namespace pagoda::kernels::kv_buffer {

// The work tile of a CTA where the batch is one sequence of one token: CTA i has split
// i % ctas_per_kv_head of KV head i / ctas_per_kv_head. One thread makes it. False: there is none.
template <class Config>
PAGODA_DEVICE bool make_only_work(const AttentionParams& params, Work& work) {
  const Sequences& sequences = params.sequences;
  const auto num_keys = static_cast<int32_t>(sequences.keys.num_keys(0));
  if (sequences.num_rows(0) == 0) return false;
  const int32_t valid_rows =
      sequences.valid_rows != nullptr ? arch::load_read_only(sequences.valid_rows) : 1;
  const int32_t q_position = sequences.q_positions != nullptr
                                 ? arch::load_read_only(sequences.q_positions)
                                 : num_keys - valid_rows;
  const auto cta = static_cast<int32_t>(arch::block_idx().x);
  const int32_t ctas = params.ctas_per_kv_head;
  work.kv_head = arch::quotient(cta, ctas);
  const int32_t first_cta = work.kv_head * ctas;
  work.split = cta - first_cta;

  work.first_head = work.kv_head * params.group;
  work.num_heads = params.group;
  work.num_tokens = 1;
  work.valid_tokens = valid_rows > 0 ? 1 : 0;
  work.memory_row = sequences.first_row(0);
  work.rows = mask::RowTile{0, num_keys, q_position, 0, work.valid_tokens};
  if (valid_rows > 0) work.walk = kv_tiles_of<Config>(params, work.rows);
  const mask::KVTileRange walk = work.walk;
  const int32_t tiles = walk.num_tiles > 0 ? walk.num_tiles : 1;  // O is written in any case
  const int32_t per_cta = arch::quotient(tiles - 1, ctas) + 1;
  const int32_t begin = work.split * per_cta;
  if (begin >= tiles) return false;
  if (walk.num_tiles > 0) {
    const int32_t past = walk.column(begin + per_cta);
    work.walk = walk.part(walk.column(begin), past < walk.end_column ? past : walk.end_column);
  }
  work.num_splits = per_cta == 1 ? tiles : arch::quotient(tiles - 1, per_cta) + 1;
  work.first_slot = 2 * first_cta;
  work.next_slot = work.first_slot + 2;
  work.slot_step = 2;
  return true;
}

}  // namespace pagoda::kernels::kv_buffer
