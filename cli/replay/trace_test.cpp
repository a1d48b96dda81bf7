// The trace reader: what it accepts, what it reports, and that it loses nothing.
#include "cli/replay/trace.hpp"

#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace pagoda::replay {
namespace {

constexpr const char* kGood =
    R"({"timestamp": 27, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]})";

Trace read(const std::string& text, int64_t max_requests = 0, bool is_strict = false) {
  std::istringstream input(text);
  return read_trace(input, max_requests, is_strict);
}

std::string reason_for(const std::string& line) {
  const Trace trace = read(line + "\n");
  EXPECT_TRUE(trace.requests.empty()) << line;
  return trace.malformed.size() == 1 ? trace.malformed[0].reason : "accepted or reported twice";
}

TEST(Trace, reads_every_field) {
  const Trace trace = read(kGood);  // no newline at the end of the file
  ASSERT_EQ(trace.requests.size(), 1U);
  EXPECT_EQ(trace.requests[0].timestamp_ms, 27);
  EXPECT_EQ(trace.requests[0].input_length, 600);
  EXPECT_EQ(trace.requests[0].output_length, 52);
  EXPECT_EQ(trace.requests[0].hash_ids, (std::vector<uint64_t>{46, 47}));
  EXPECT_TRUE(trace.malformed.empty());
}

TEST(Trace, accepts_other_keys_in_any_order_crlf_blank_lines_and_a_byte_order_mark) {
  const Trace trace = read(std::string("\xEF\xBB\xBF") + kGood + "\r\n\n  \t\r\n" +
                           R"({"hash_ids":[18446744073709551615],"model":{"a":[1]},)" +
                           R"("output_length":1,"input_length":512,"timestamp":0})" + "\r\n");
  EXPECT_TRUE(trace.malformed.empty());
  ASSERT_EQ(trace.requests.size(), 2U);
  EXPECT_EQ(trace.requests[0].timestamp_ms, 0);  // sorted by arrival
  EXPECT_EQ(trace.requests[0].hash_ids[0], UINT64_MAX);
}

TEST(Trace, malformed_lines_keep_their_number_and_lose_nothing_else) {
  const std::string text =
      std::string(kGood) + "\n{\"timestamp\": 1,\n\n" + kGood + "\n[]\n" + kGood;
  const Trace trace = read(text);
  EXPECT_EQ(trace.requests.size(), 3U);
  ASSERT_EQ(trace.malformed.size(), 2U);
  EXPECT_EQ(trace.malformed[0].line, 2);
  EXPECT_EQ(trace.malformed[1].line, 5);
  EXPECT_EQ(trace.malformed[1].reason, "not a JSON object");
}

TEST(Trace, strict_stops_at_the_first_malformed_line) {
  const Trace trace = read(std::string(kGood) + "\nnull\n" + kGood, 0, true);
  EXPECT_EQ(trace.requests.size(), 1U);
  ASSERT_EQ(trace.malformed.size(), 1U);
  EXPECT_EQ(trace.malformed[0].line, 2);
}

TEST(Trace, stops_after_the_requests_that_were_asked_for) {
  const Trace trace = read(std::string(kGood) + "\nbad\n" + kGood + "\nbad\n" + kGood, 2);
  EXPECT_EQ(trace.requests.size(), 2U);
  EXPECT_EQ(trace.malformed.size(), 1U);
}

TEST(Trace, reasons_name_the_field_and_its_value) {
  const std::string head = R"({"timestamp": 0, "input_length": )";
  EXPECT_EQ(reason_for(R"({"input_length": 1, "output_length": 1, "hash_ids": [1]})"),
            "no timestamp");
  EXPECT_EQ(reason_for(head + R"(0, "output_length": 1, "hash_ids": []})"),
            "input_length is 0; it must be in 1..16777216");
  EXPECT_EQ(reason_for(head + R"(-5, "output_length": 1, "hash_ids": []})"),
            "input_length is -5; it must be in 1..16777216");
  EXPECT_EQ(reason_for(head + R"(1.5, "output_length": 1, "hash_ids": [1]})"),
            "input_length is not an integer");
  EXPECT_EQ(reason_for(head + R"("1", "output_length": 1, "hash_ids": [1]})"),
            "input_length is not an integer");
  EXPECT_EQ(reason_for(head + R"(18446744073709551615, "output_length": 1, "hash_ids": [1]})"),
            "input_length is 18446744073709551615; the limit is 16777216");
  EXPECT_EQ(reason_for(head + R"(1, "output_length": 20000000, "hash_ids": [1]})"),
            "output_length is 20000000; it must be in 1..16777216");
  EXPECT_EQ(reason_for(head + R"(1, "output_length": 1})"), "no hash_ids");
  EXPECT_EQ(reason_for(head + R"(1, "output_length": 1, "hash_ids": 3})"),
            "hash_ids is not an array");
  EXPECT_EQ(reason_for(head + R"(600, "output_length": 1, "hash_ids": [1, -2]})"),
            "hash_ids[1] is not a non-negative integer");
  EXPECT_EQ(reason_for(head + R"(513, "output_length": 1, "hash_ids": [1]})"),
            "hash_ids has 1 entries; input_length 513 needs 2, one for each 512 tokens");
  EXPECT_TRUE(reason_for(head + "1").starts_with("not JSON: "));
  EXPECT_TRUE(reason_for(std::string(kGood) + " x").starts_with("not JSON: "));
}

TEST(Trace, a_line_without_an_end_is_reported_and_the_next_one_still_read) {
  const std::string huge(kMaxLineBytes + 10, '[');
  const Trace trace = read(huge + "\n" + kGood + "\n");
  EXPECT_EQ(trace.requests.size(), 1U);
  ASSERT_EQ(trace.malformed.size(), 1U);
  EXPECT_EQ(trace.malformed[0].reason, "longer than 4194304 bytes");
}

TEST(Trace, deep_nesting_is_rejected_not_a_crash) {
  const std::string deep = R"({"timestamp": )" + std::string(100000, '[');
  EXPECT_TRUE(reason_for(deep).starts_with("not JSON: "));
}

}  // namespace
}  // namespace pagoda::replay
