// Exceptions are Python classes (pagoda/errors.py), which gives them Python bases and attributes.
#include "python/src/errors.hpp"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace pagoda_python {

void raise_status(pagoda_status_code code, const char* field, const char* message) {
  const nb::object error =
      nb::module_::import_("pagoda.errors").attr("from_status")(code, field, message);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void raise_invalid(const std::string& field, const std::string& value, const std::string& limit) {
  raise_status(PAGODA_INVALID_ARGUMENT, field.c_str(),
               (field + " is " + value + "; " + limit).c_str());
}

}  // namespace pagoda_python
