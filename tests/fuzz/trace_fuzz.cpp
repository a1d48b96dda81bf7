// libFuzzer target over the trace reader: any bytes as a trace file. Beyond crashes, it checks what
// the reader promises: line numbers rise, every request is within its limits, and reading up to a
// limit or strictly gives a prefix of reading all.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "cli/replay/content.hpp"
#include "cli/replay/trace.hpp"

namespace {

using pagoda::replay::MalformedLine;
using pagoda::replay::Trace;
using pagoda::replay::TraceReader;
using pagoda::replay::TraceRequest;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_request(const TraceRequest& request) {
  using namespace pagoda::replay;
  require(request.timestamp_ms >= 0 && request.timestamp_ms <= kMaxTimestampMs);
  require(request.input_length >= 1 && request.input_length <= kMaxRequestTokens);
  require(request.output_length >= 1 && request.output_length <= kMaxRequestTokens);
  const auto blocks = std::ssize(request.hash_ids);
  require(blocks * kTraceBlockTokens >= request.input_length &&
          (blocks - 1) * kTraceBlockTokens < request.input_length);
  const RequestContent content(request, 0);
  require(std::ssize(content.page_keys(64)) == request.input_length / kTraceBlockTokens * 8);
}

struct Counts {
  int64_t requests = 0;
  int64_t malformed = 0;
  int64_t first_malformed_line = 0;
};

// Item by item, as the reader gives them.
Counts read_items(const std::string& text) {
  std::istringstream input(text);
  TraceReader reader(input);
  Counts counts;
  int64_t last_line = 0;
  for (;;) {
    const TraceReader::Item item = reader.next();
    if (std::holds_alternative<TraceReader::End>(item)) return counts;
    require(reader.line() > last_line);
    last_line = reader.line();
    if (const auto* malformed = std::get_if<MalformedLine>(&item)) {
      require(malformed->line == last_line && !malformed->reason.empty());
      if (counts.malformed++ == 0) counts.first_malformed_line = last_line;
    } else {
      check_request(std::get<TraceRequest>(item));
      ++counts.requests;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Counts counts = read_items(text);

  const auto read = [&](int64_t limit, bool is_strict) {
    std::istringstream input(text);
    return pagoda::replay::read_trace(input, limit, is_strict);
  };
  const Trace all = read(0, false);
  require(std::ssize(all.requests) == counts.requests);
  require(std::ssize(all.malformed) == counts.malformed);
  for (size_t i = 1; i < all.requests.size(); ++i) {
    require(all.requests[i - 1].timestamp_ms <= all.requests[i].timestamp_ms);
  }
  require(std::ssize(read(1, false).requests) == (counts.requests > 0 ? 1 : 0));
  const Trace strict = read(0, true);
  require(strict.malformed.empty() == (counts.malformed == 0));
  if (counts.malformed > 0) {
    require(strict.malformed.size() == 1 &&
            strict.malformed[0].line == counts.first_malformed_line);
  }
  return 0;
}
