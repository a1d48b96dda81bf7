// Compares the results of a case with the expected rows.
//
// Roundings of different rows are independent, so a case's limits are much tighter than a row's:
//
//   rms    mean over rows of (rms error / spread)^2 <= 1.5 + 12 / sqrt(rows)
//   gain   the mean of (got - o) . o / |o|^2, rows weighted by their inverse variance,
//          is 0 within 6 standard deviations and what rows have in common (row.hpp)
//
// The gain detects a wrong factor when P has few bits: one row of e4m3 probabilities can't show a
// factor of 1.02, but the factor is the same in all rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "testing/oracle/row.hpp"

namespace pagoda::oracle {

// The worst error of each kind divided by its limit; above 1 = wrong.
struct Shares {
  double element = 0;
  double row_rms = 0;
  double lse = 0, row_max = 0;
  double case_rms = 0;
  double gain = 0;
  [[nodiscard]] double worst() const;
};

// Identifies a row in messages: "sequence 1, row 3, head 0".
struct RowLabel {
  int32_t sequence = 0;
  int64_t row = 0;
  int32_t head = 0;
};

class Comparison {
 public:
  // The outputs of a kernel. lse, row_max: nullptr = not requested.
  void add(const ExpectedRow& expected, const RowLabel& label, std::span<const float> out,
           const float* lse = nullptr, const float* row_max = nullptr);
  // After the last row: the limits of the case.
  void finish();

  [[nodiscard]] const Shares& shares() const { return shares_; }
  // The largest error of O relative to the largest value of its row.
  [[nodiscard]] double max_relative_error() const { return max_relative_error_; }
  [[nodiscard]] uint64_t checked() const { return checked_; }        // numbers
  [[nodiscard]] uint64_t mismatches() const { return mismatches_; }  // exceeded limits
  // The first mismatch; empty = agreement.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  void judge(double& worst, double error, double limit, const char* what, const RowLabel* label,
             double got, double want, int32_t element = -1);
  void add_row(const ExpectedRow& expected, const RowLabel& label, std::span<const float> out);

  Shares shares_;
  double max_relative_error_ = 0;
  uint64_t checked_ = 0, mismatches_ = 0;
  std::string message_;
  double squares_ = 0;  // sum of (rms error / spread)^2
  double rows_ = 0;     // with a spread
  double gain_ = 0, gain_weight_ = 0, gain_floor_ = 0;
};

}  // namespace pagoda::oracle
