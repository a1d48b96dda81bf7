// Status and Result<T>: what every fallible call of Pagoda returns. No exception crosses the API.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace pagoda {

enum class StatusCode : int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // a field of the call is invalid: the message names field, value and limit
  kUnsupported = 2,      // a valid call that no kernel of the chosen back end serves here
  kNotFound = 3,         // no back end, kernel or file has that name
  kOutOfMemory = 4,      // an allocation failed
  kInternal = 5,         // a defect of Pagoda itself
  // The stream is captured and the library keeps no workspace for it: run the call once before the
  // capture, or pass a workspace to run(plan, attention, workspace, stream).
  kStreamCapturing = 6,
};

// The outcome of a call. `field` names the invalid argument as the API spells it
// ("cu_seqlens_q[3]", "kv.page_size"); it is empty if the call succeeded.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string field, std::string message)
      : code_(code), field_(std::move(field)), message_(std::move(message)) {}

  // The message about an invalid argument: "FIELD is VALUE; LIMIT".
  static Status invalid(std::string field, const std::string& value, const std::string& limit) {
    std::string message = field + " is " + value + "; " + limit;
    return {StatusCode::kInvalidArgument, std::move(field), std::move(message)};
  }
  static Status unsupported(std::string field, std::string message) {
    return {StatusCode::kUnsupported, std::move(field), std::move(message)};
  }

  [[nodiscard]] bool ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] StatusCode code() const { return code_; }
  [[nodiscard]] const std::string& field() const { return field_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string field_;
  std::string message_;
};

// A value, or the Status of the call that failed to make it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] Status status() const { return ok() ? Status{} : std::get<1>(state_); }

  // Precondition: ok(). std::bad_variant_access otherwise.
  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace pagoda
