// Random rows, the same ones for the same seed and the same steps.
#include "cli/replay/row_sampler.hpp"

#include <cmath>

namespace pagoda::replay {

RowSampler::RowSampler(double rate, int32_t num_layers, int32_t num_q_heads, uint64_t seed)
    : rate_(rate),
      num_layers_(num_layers),
      num_q_heads_(num_q_heads),
      state_(mix(seed, 0x726f7773U)) {}

uint64_t RowSampler::below(uint64_t limit) {
  state_ = mix(state_);
  return (state_ >> 11) % limit;
}

int64_t RowSampler::draw_count(Phase phase) {
  const double uniform = static_cast<double>(below(uint64_t{1} << 32)) * 0x1p-32;
  const auto count = static_cast<int64_t>(std::floor(rate_ + uniform));
  bool& was_seen = was_seen_[static_cast<size_t>(phase)];
  const bool is_first = !was_seen;
  was_seen = true;
  return count == 0 && is_first ? 1 : count;
}

SampledRow RowSampler::draw(const Step& step, size_t chunk, int64_t first_batch_row) {
  const Chunk& from = step.chunks[chunk];
  const auto row = static_cast<int64_t>(below(static_cast<uint64_t>(from.tokens)));
  const auto layer = static_cast<int32_t>(below(static_cast<uint64_t>(num_layers_)));
  const auto head = static_cast<int32_t>(below(static_cast<uint64_t>(num_q_heads_)));
  return {.row = {.position = from.start + row, .layer = layer, .q_head = head},
          .sequence = from.sequence,
          .batch_row = first_batch_row + row,
          .phase = from.phase};
}

std::vector<SampledRow> RowSampler::choose(const Step& step) {
  std::vector<SampledRow> rows;
  if (rate_ <= 0) return rows;
  std::vector<int64_t> first_row;
  std::array<std::vector<size_t>, kNumPhases> chunks_of;
  int64_t offset = 0;
  for (size_t i = 0; i < step.chunks.size(); ++i) {
    first_row.push_back(offset);
    offset += step.chunks[i].tokens;
    chunks_of[static_cast<size_t>(step.chunks[i].phase)].push_back(i);
  }
  for (const Phase phase : {Phase::kPrefill, Phase::kRecompute, Phase::kDecode}) {
    const std::vector<size_t>& chunks = chunks_of[static_cast<size_t>(phase)];
    if (chunks.empty()) continue;
    for (int64_t count = draw_count(phase); count > 0; --count) {
      const size_t chunk = chunks[below(chunks.size())];
      rows.push_back(draw(step, chunk, first_row[chunk]));
    }
  }
  for (const size_t chunk : chunks_of[static_cast<size_t>(Phase::kReused)]) {
    rows.push_back(draw(step, chunk, first_row[chunk]));
  }
  return rows;
}

}  // namespace pagoda::replay
