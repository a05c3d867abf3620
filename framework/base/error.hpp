#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tessera {

namespace detail {

/// Concatenates all arguments as operator<< writes them. Throws std::bad_alloc.
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  // Without it, the text would end where memory does.
  out.exceptions(std::ios::badbit);
  (out << ... << args);
  return out.str();
}

}  // namespace detail

/// Base class of all errors that Tessera throws. The text is one line in four parts:
/// `[where] expected. Received: received. To fix: action.`; empty parts are left out.
/// `where` names something the user knows: a layer, weight path, op, rule, file or flag.
class Error : public std::runtime_error {
 public:
  Error(const std::string& where, const std::string& expected, const std::string& received,
        const std::string& fix);
  /// Takes the complete line of another error.
  explicit Error(const std::string& line) : std::runtime_error(line) {}
};

/// A global shape, rank or extent does not fit.
class ShapeError : public Error {
  using Error::Error;
};
/// A layout, layout rule or block does not fit its tensor or mesh.
class LayoutError : public Error {
  using Error::Error;
};
/// A mesh does not fit its devices, or one op has operands on two meshes.
class MeshError : public Error {
  using Error::Error;
};
/// An option, flag, configuration file or dtype is wrong.
class ConfigError : public Error {
  using Error::Error;
};
/// The call is invalid in the object's present state: unbuilt, unread, incomplete, or changed.
class StateError : public Error {
  using Error::Error;
};
/// A collective failed or was aborted.
class CommError : public Error {
  using Error::Error;
};
/// A file is missing, unreadable, corrupt or not writable.
class FileError : public Error {
  using Error::Error;
};
/// A signal ended the work, after everything needed to resume was saved.
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& where, const std::string& received,
              const std::string& fix)
      : Error(where, "", received, fix), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

namespace detail {

/// Rethrows the caught error as its class, with `where` prepended to the brackets of its text:
/// "[matmul] …" becomes "[Dense hidden, matmul] …". Errors that already name `where`, and errors of
/// other libraries, are rethrown unchanged. Call it in a catch clause.
[[noreturn]] void rethrow_at(const std::string& where);

}  // namespace detail

}  // namespace tessera
