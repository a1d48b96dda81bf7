// A pagoda_status as the Python exception of its code.
#pragma once

#include <string>

#include "pagoda/pagoda.h"

namespace pagoda_python {

// Raises pagoda.errors' exception for `code`, which carries field, value and limit of the message.
[[noreturn]] void raise_status(pagoda_status_code code, const char* field, const char* message);

// Raises unless `status` is PAGODA_OK.
inline void check(const pagoda_status& status) {
  if (status.code != PAGODA_OK) raise_status(status.code, status.field, status.message);
}

// InvalidArgument "FIELD is VALUE; LIMIT".
[[noreturn]] void raise_invalid(const std::string& field, const std::string& value,
                                const std::string& limit);

// A status to pass to a call of pagoda.h.
inline pagoda_status empty_status() {
  pagoda_status status;
  status.struct_size = sizeof(status);
  status.code = PAGODA_OK;
  return status;
}

}  // namespace pagoda_python
