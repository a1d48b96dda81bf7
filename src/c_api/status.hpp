// guarded_call(): the frame of every C function that can fail.
#pragma once

#include <cstddef>

#include "engine/guard.hpp"
#include "pagoda/pagoda.h"
#include "pagoda/status.hpp"

namespace pagoda::c_api {

inline constexpr size_t kMessageOffset = offsetof(pagoda_status, message);

// Whether `status` is null, or large enough for every field.
[[nodiscard]] bool is_writable(const pagoda_status* status);

// Writes `from`, in the words of pagoda.h, to an is_writable() status and returns its code.
pagoda_status_code write_status(const Status& from, pagoda_status* status) noexcept;

// Runs body(), which returns a Status.
template <typename Body>
pagoda_status_code guarded_call(pagoda_status* status, Body&& body) noexcept {
  if (!is_writable(status)) return PAGODA_INVALID_ARGUMENT;
  return write_status(engine::guarded(body), status);
}

}  // namespace pagoda::c_api
