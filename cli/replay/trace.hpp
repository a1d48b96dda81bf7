// Reads a request trace: one JSON object a line with `timestamp` (ms), `input_length`,
// `output_length` (tokens) and `hash_ids` (one id for each 512-token block of the prompt, the last
// one possibly partial; equal leading ids mean an equal prefix). The format of the Mooncake traces.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pagoda::replay {

inline constexpr int64_t kTraceBlockTokens = 512;

// Limits of a valid line; a line beyond them is reported as malformed.
inline constexpr int64_t kMaxTimestampMs = 4'102'444'800'000;  // 2100-01-01 as a Unix time
inline constexpr int64_t kMaxRequestTokens = 1 << 24;          // prompt, and output
inline constexpr size_t kMaxLineBytes = 4U << 20;

struct TraceRequest {
  int64_t timestamp_ms = 0;
  int64_t input_length = 0;
  int64_t output_length = 0;
  std::vector<uint64_t> hash_ids;  // [ceil(input_length / 512)]
};

struct MalformedLine {
  int64_t line = 0;  // from 1
  std::string reason;
};

// A stream of requests. Malformed lines are returned as such, in order; blank lines are skipped.
class TraceReader {
 public:
  struct End {};
  using Item = std::variant<TraceRequest, MalformedLine, End>;

  // `input` must outlive the reader.
  explicit TraceReader(std::istream& input);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  [[nodiscard]] Item next();
  [[nodiscard]] int64_t line() const { return line_; }  // of the last item

 private:
  enum class LineState { kLine, kTooLong, kEnd };
  LineState read_line();
  Item parse_line();

  struct Parser;
  std::istream& input_;
  std::unique_ptr<Parser> parser_;
  std::string text_;
  int64_t line_ = 0;
};

// The first requests of a trace, in order of their arrival.
struct Trace {
  std::vector<TraceRequest> requests;
  std::vector<MalformedLine> malformed;  // among the lines that were read
};

// Reads until the end or until `max_requests` (0 = all). Strict: stops at the first malformed line,
// which is then the last one of `malformed`.
[[nodiscard]] Trace read_trace(std::istream& input, int64_t max_requests, bool is_strict);

}  // namespace pagoda::replay
