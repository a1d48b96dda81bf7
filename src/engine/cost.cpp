// Visible pairs in closed form. A query at position q sees the keys of one interval,
//   [max(0, q - left, chunk_begin(q)), min(keys, q + right + 1, chunk_end(q))),
// and both ends never decrease with q: count = sum of the clamped ends - sum of the clamped begins.
#include "engine/cost.hpp"

#include <algorithm>

#include "core/int_math.hpp"

namespace pagoda::engine {
namespace {

constexpr int64_t kOpen = int64_t{1} << 33;  // greater than every position and length

// The intersection of all interval masks of an expression; the same for every sequence.
struct Interval {
  int64_t left = kOpen, right = kOpen;
  int64_t chunk = 0;  // 0 = none
};

Interval interval_of(std::span<const MaskNode> mask) {
  Interval interval;
  for (const MaskNode& node : mask) {
    if (node.kind == MaskKind::kOr) return {};
  }
  for (const MaskNode& node : mask) {
    if (node.kind == MaskKind::kCausal) interval.right = std::min<int64_t>(interval.right, 0);
    if (node.kind == MaskKind::kWindow && node.left >= 0) {
      interval.left = std::min(interval.left, node.left);
    }
    if (node.kind == MaskKind::kWindow && node.right >= 0) {
      interval.right = std::min(interval.right, node.right);
    }
    if (node.kind == MaskKind::kChunked) {
      interval.chunk = interval.chunk == 0 ? node.chunk : std::min(interval.chunk, node.chunk);
    }
  }
  return interval;
}

// Keys of sequence b: the smallest of its cache length and its padding masks' lengths.
int64_t keys_of(const core::Problem& p, bool has_padding, int32_t b) {
  int64_t keys = p.seqlen_kv(b);
  if (!has_padding) return keys;
  for (const MaskNode& node : p.mask) {
    if (node.kind == MaskKind::kPadding) {
      keys =
          std::min<int64_t>(keys, core::host_elements(node.valid_lengths)[static_cast<size_t>(b)]);
    }
  }
  return keys;
}

// first + (first + 1) + ... + (first + count - 1); needs 0 <= first, first + count <= 2^32.
uint64_t progression(int64_t first, int64_t count) {
  return static_cast<uint64_t>(count) * static_cast<uint64_t>(2 * first + count - 1) / 2;
}

// The sum of clamp(q + shift, 0, keys) over q in [begin, end).
uint64_t sum_shifted(int64_t begin, int64_t end, int64_t shift, int64_t keys) {
  const int64_t from = std::clamp(-shift, begin, end);       // first q with a positive term
  const int64_t full = std::clamp(keys - shift, from, end);  // first q that sees all keys
  return progression(std::max<int64_t>(from + shift, 0), full - from) +
         static_cast<uint64_t>(end - full) * static_cast<uint64_t>(keys);
}

// One end of a chunked interval at q = chunk * m + r: chunk * m + clamp(r + shift, 0, chunk).
int64_t chunk_edge(int64_t q, int64_t shift, int64_t chunk) {
  const int64_t m = core::floor_div(q, chunk);
  return chunk * m + std::clamp<int64_t>(q - chunk * m + shift, 0, chunk);
}

// The sum of chunk_edge over q in [0, end), which must not pass the first edge above 2^32.
uint64_t sum_chunked_from_zero(int64_t end, int64_t shift, int64_t chunk) {
  const auto within = [&](int64_t count) {
    return sum_shifted(0, count, shift, chunk);  // the sum over r in [0, count)
  };
  const int64_t chunks = end / chunk;
  return static_cast<uint64_t>(chunk) * static_cast<uint64_t>(chunk) * progression(0, chunks) +
         static_cast<uint64_t>(chunks) * within(chunk) +
         static_cast<uint64_t>(end % chunk) * static_cast<uint64_t>(chunk * chunks) +
         within(end % chunk);
}

// The sum of clamp(chunk_edge(q), 0, keys) over q in [begin, end); keys > 0.
uint64_t sum_chunked(int64_t begin, int64_t end, int64_t shift, int64_t chunk, int64_t keys) {
  const int64_t from = std::clamp<int64_t>(0, begin, end);  // below position 0 every edge is <= 0
  // The first q whose edge reaches `keys`, in the chunk of the last key.
  const int64_t m = core::floor_div(keys - 1, chunk);
  const int64_t need = keys - chunk * m;  // 1..chunk
  const int64_t q_full = chunk * m + std::clamp<int64_t>(need - shift, 0, chunk);
  const int64_t full = std::clamp(q_full, from, end);
  return (full == from ? 0
                       : sum_chunked_from_zero(full, shift, chunk) -
                             sum_chunked_from_zero(from, shift, chunk)) +
         static_cast<uint64_t>(end - full) * static_cast<uint64_t>(keys);
}

struct Count {
  uint64_t pairs = 0;
  int64_t keys = 0;  // keys that some query sees
};

Count count(const Interval& interval, int64_t begin, int64_t rows, int64_t keys) {
  if (rows == 0 || keys == 0) return {};
  const int64_t end = begin + rows;
  if (interval.chunk == 0) {
    const uint64_t pairs = sum_shifted(begin, end, interval.right + 1, keys) -
                           sum_shifted(begin, end, -interval.left, keys);
    const int64_t first = std::clamp<int64_t>(begin - interval.left, 0, keys);
    return {pairs, std::clamp<int64_t>(end + interval.right, 0, keys) - first};
  }
  const int64_t c = interval.chunk;
  const int64_t left = std::min(interval.left, c), right = std::min(interval.right, c);
  const uint64_t pairs =
      sum_chunked(begin, end, right + 1, c, keys) - sum_chunked(begin, end, -left, c, keys);
  const int64_t first = std::clamp<int64_t>(chunk_edge(begin, -left, c), 0, keys);
  return {pairs, std::clamp<int64_t>(chunk_edge(end - 1, right + 1, c), 0, keys) - first};
}

// The sum over all sequences.
struct Total {
  double pairs = 0, keys = 0;

  void add(const Count& n, int64_t times = 1) {
    pairs += static_cast<double>(n.pairs) * static_cast<double>(times);
    keys += static_cast<double>(n.keys) * static_cast<double>(times);
  }
};

Total count_lengths(const core::Problem& p, const Interval& interval) {
  bool has_padding = false, has_or = false;
  for (const MaskNode& node : p.mask) {
    has_padding = has_padding || node.kind == MaskKind::kPadding;
    has_or = has_or || node.kind == MaskKind::kOr;
  }
  Total total;
  for (int32_t b = 0; b < p.batch; ++b) {
    total.add(
        count(interval, p.q_position(b), p.seqlen_q(b), keys_of(p, has_padding && !has_or, b)));
  }
  return total;
}

// Ragged: as many sequences of the maximal length as total_q allows, then one with the remaining
// rows.
Total count_bounds(const core::Problem& p, const Interval& interval) {
  const int64_t rows = p.max_seqlen_q_bound, keys = p.max_seqlen_kv_bound;
  const auto of_rows = [&](int64_t n) { return count(interval, keys - n, n, keys); };
  Total total;
  if (rows == 0) return total;
  const int64_t full = p.is_ragged ? std::min<int64_t>(p.batch, p.total_q / rows) : p.batch;
  total.add(of_rows(rows), full);
  if (full < p.batch) total.add(of_rows(std::min(rows, p.total_q - full * rows)));
  if (p.kv_kind == core::KVKind::kRagged) {
    total.keys = std::min(total.keys, static_cast<double>(p.total_kv));
  }
  return total;
}

}  // namespace

Cost cost(const core::Problem& problem) {
  const core::Problem& p = problem;
  const Interval interval = interval_of(p.mask);
  const auto [pairs, keys] =
      p.has_host_lengths ? count_lengths(p, interval) : count_bounds(p, interval);
  const double key_bytes =
      static_cast<double>(p.head_dim_qk) * static_cast<double>(size_bytes(p.k.dtype)) +
      static_cast<double>(p.head_dim_vo) * static_cast<double>(size_bytes(p.v.dtype));
  return {.flops = 2.0 * pairs * p.num_q_heads * (p.head_dim_qk + p.head_dim_vo),
          .kv_bytes = keys * p.num_kv_heads * key_bytes};
}

}  // namespace pagoda::engine
