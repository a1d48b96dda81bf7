// The message of a value that has not the type of its argument.
#include "python/src/values.hpp"

#include "python/src/errors.hpp"

namespace pagoda_python {

void raise_value(const std::string& name, nb::handle value, const char* wanted) {
  constexpr size_t kLongest = 40;
  auto text = nb::cast<std::string>(nb::repr(value));
  if (text.size() > kLongest || text.find('\n') != std::string::npos) {
    text = "a " + nb::cast<std::string>(nb::str(value.type().attr("__name__")));
  }
  raise_invalid(name, text, std::string("must be ") + wanted);
}

}  // namespace pagoda_python
