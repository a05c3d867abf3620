#include "apps/python/errors.hpp"

#include <exception>
#include <string>

#include <c10/util/Exception.h>
#include <nanobind/nanobind.h>

#include <tessera/framework/base/error.hpp>

namespace nb = nanobind;

namespace tessera::python {
namespace {

/// Raises an error. Names of files in its text may have bytes that are not UTF-8.
void raise(const nb::handle& kind, const std::string& line) {
  const nb::object text =
      nb::steal(PyUnicode_DecodeUTF8(line.data(), static_cast<Py_ssize_t>(line.size()), "replace"));
  PyErr_SetObject(kind.ptr(), text.ptr());
}

void raise(const char* name, const Error& error) {
  raise(nb::module_::import_("tessera.errors").attr(name), error.what());
}

/// Throws on for an error of another library, which nanobind translates.
void translate(const std::exception_ptr& error, void* /*unused*/) {
  try {
    std::rethrow_exception(error);
  } catch (const ShapeError& thrown) {
    raise("ShapeError", thrown);
  } catch (const LayoutError& thrown) {
    raise("LayoutError", thrown);
  } catch (const MeshError& thrown) {
    raise("MeshError", thrown);
  } catch (const ConfigError& thrown) {
    raise("ConfigError", thrown);
  } catch (const StateError& thrown) {
    raise("StateError", thrown);
  } catch (const CommError& thrown) {
    raise("CommError", thrown);
  } catch (const FileError& thrown) {
    raise("FileError", thrown);
  } catch (const Interrupted& thrown) {
    raise("Interrupted", thrown);
  } catch (const Error& thrown) {
    raise("Error", thrown);
  } catch (const c10::Error& thrown) {
    const std::string text = thrown.what_without_backtrace();
    raise(PyExc_RuntimeError, text.substr(0, text.find('\n')));
  }
}

}  // namespace

void translate_errors() { nb::register_exception_translator(translate); }

}  // namespace tessera::python
