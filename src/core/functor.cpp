// The check of a functor's reads: none, but on threads that emulate a launch.
#include "core/functor.hpp"

namespace pagoda {
namespace {

thread_local core::FunctorReadScope::Check check_read = nullptr;

}  // namespace

namespace detail {
void check_functor_read(const void* address, size_t bytes) {
  if (check_read != nullptr) check_read(address, bytes);
}
}  // namespace detail

namespace core {
FunctorReadScope::FunctorReadScope(Check check) : before_(check_read) { check_read = check; }
FunctorReadScope::~FunctorReadScope() { check_read = before_; }
}  // namespace core

}  // namespace pagoda
