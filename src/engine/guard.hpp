// guarded(): turns exceptions (allocation failures, a functor of the caller that throws) into a
// Status, because no exception crosses the API.
#pragma once

#include <exception>
#include <new>

#include "pagoda/status.hpp"

namespace pagoda::engine {

// body() returns Status or Result<T>.
template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, "", "an allocation failed");
  } catch (const std::exception& e) {
    return Status(StatusCode::kInternal, "", std::string("an exception was thrown: ") + e.what());
  } catch (...) {
    return Status(StatusCode::kInternal, "", "an unknown exception was thrown");
  }
}

}  // namespace pagoda::engine
