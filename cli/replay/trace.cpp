// The trace reader: simdjson parses a line, everything it holds is checked here.
#include "cli/replay/trace.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <simdjson.h>
#include <utility>

namespace pagoda::replay {

namespace {

namespace dom = simdjson::dom;

// Stores a value in [low, high] in `*value` and returns an empty string, or returns the error.
std::string read_integer(dom::object object, const char* key, int64_t low, int64_t high,
                         int64_t* value) {
  dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) return fmt::format("no {}", key);
  if (element.is_uint64() && !element.is_int64()) {
    return fmt::format("{} is {}; the limit is {}", key, uint64_t{element}, high);
  }
  if (element.get(*value) != simdjson::SUCCESS) return fmt::format("{} is not an integer", key);
  if (*value < low || *value > high) {
    return fmt::format("{} is {}; it must be in {}..{}", key, *value, low, high);
  }
  return {};
}

std::string read_hash_ids(dom::object object, int64_t input_length, std::vector<uint64_t>* ids) {
  dom::element element;
  if (object.at_key("hash_ids").get(element) != simdjson::SUCCESS) return "no hash_ids";
  dom::array array;
  if (element.get(array) != simdjson::SUCCESS) return "hash_ids is not an array";
  for (const dom::element id : array) {
    uint64_t value = 0;
    if (id.get(value) != simdjson::SUCCESS) {
      return fmt::format("hash_ids[{}] is not a non-negative integer", ids->size());
    }
    ids->push_back(value);
  }
  const auto expected =
      static_cast<size_t>((input_length + kTraceBlockTokens - 1) / kTraceBlockTokens);
  if (ids->size() != expected) {
    return fmt::format("hash_ids has {} entries; input_length {} needs {}, one for each {} tokens",
                       ids->size(), input_length, expected, kTraceBlockTokens);
  }
  return {};
}

std::string read_request(dom::object object, TraceRequest* request) {
  std::string reason =
      read_integer(object, "timestamp", 0, kMaxTimestampMs, &request->timestamp_ms);
  if (!reason.empty()) return reason;
  reason = read_integer(object, "input_length", 1, kMaxRequestTokens, &request->input_length);
  if (!reason.empty()) return reason;
  reason = read_integer(object, "output_length", 1, kMaxRequestTokens, &request->output_length);
  if (!reason.empty()) return reason;
  return read_hash_ids(object, request->input_length, &request->hash_ids);
}

}  // namespace

struct TraceReader::Parser {
  dom::parser dom{kMaxLineBytes};
};

TraceReader::TraceReader(std::istream& input)
    : input_(input), parser_(std::make_unique<Parser>()) {}
TraceReader::~TraceReader() = default;

// Like std::getline, but with a limit on the length of a line.
TraceReader::LineState TraceReader::read_line() {
  text_.clear();
  std::streambuf* buffer = input_.rdbuf();
  constexpr auto kEof = std::char_traits<char>::eof();
  auto c = buffer->sbumpc();
  if (c == kEof) return LineState::kEnd;
  ++line_;
  bool is_too_long = false;
  for (; c != kEof && c != '\n'; c = buffer->sbumpc()) {
    is_too_long = is_too_long || text_.size() == kMaxLineBytes;
    if (!is_too_long) text_.push_back(std::char_traits<char>::to_char_type(c));
  }
  return is_too_long ? LineState::kTooLong : LineState::kLine;
}

TraceReader::Item TraceReader::parse_line() {
  text_.reserve(text_.size() + simdjson::SIMDJSON_PADDING);  // saves the parser a copy
  dom::element document;
  const auto error =
      parser_->dom.parse(text_.data(), text_.size(), /*realloc_if_needed=*/false).get(document);
  if (error != simdjson::SUCCESS) {
    return MalformedLine{line_, fmt::format("not JSON: {}", simdjson::error_message(error))};
  }
  dom::object object;
  if (document.get(object) != simdjson::SUCCESS) return MalformedLine{line_, "not a JSON object"};
  TraceRequest request;
  std::string reason = read_request(object, &request);
  if (!reason.empty()) return MalformedLine{line_, std::move(reason)};
  return request;
}

TraceReader::Item TraceReader::next() {
  for (;;) {
    const LineState state = read_line();
    if (state == LineState::kEnd) return End{};
    if (state == LineState::kTooLong) {
      return MalformedLine{line_, fmt::format("longer than {} bytes", kMaxLineBytes)};
    }
    if (line_ == 1 && text_.starts_with("\xEF\xBB\xBF")) text_.erase(0, 3);  // byte order mark
    if (text_.find_first_not_of(" \t\r") != std::string::npos) return parse_line();
  }
}

Trace read_trace(std::istream& input, int64_t max_requests, bool is_strict) {
  Trace trace;
  TraceReader reader(input);
  while (max_requests == 0 || std::ssize(trace.requests) < max_requests) {
    TraceReader::Item item = reader.next();
    if (std::holds_alternative<TraceReader::End>(item)) break;
    if (auto* malformed = std::get_if<MalformedLine>(&item)) {
      trace.malformed.push_back(std::move(*malformed));
      if (is_strict) break;
    } else {
      trace.requests.push_back(std::get<TraceRequest>(std::move(item)));
    }
  }
  std::stable_sort(
      trace.requests.begin(), trace.requests.end(),
      [](const TraceRequest& a, const TraceRequest& b) { return a.timestamp_ms < b.timestamp_ms; });
  return trace;
}

}  // namespace pagoda::replay
