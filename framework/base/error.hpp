#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tessera {

namespace detail {

/// Text of all arguments, one after the other, as operator<< writes them.
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

}  // namespace detail

/// Base of every error Tessera throws at its user. The text is one line in four parts:
/// `[where] expected. Received: received. To fix: action.`; empty parts are left out.
/// `where` names a place the user knows: a layer, weight path, op, rule, file or flag.
class Error : public std::runtime_error {
 public:
  Error(const std::string& where, const std::string& expected, const std::string& received,
        const std::string& fix);
  /// A whole line, as another error wrote it.
  explicit Error(const std::string& line) : std::runtime_error(line) {}
};

/// A global shape, rank or extent does not fit.
class ShapeError : public Error {
  using Error::Error;
};
/// A layout, layout rule or block structure does not fit its tensor or mesh.
class LayoutError : public Error {
  using Error::Error;
};
/// A mesh does not fit its devices, or two meshes meet in one op.
class MeshError : public Error {
  using Error::Error;
};
/// An option, flag, configuration file or dtype is wrong.
class ConfigError : public Error {
  using Error::Error;
};
/// The call is right but not now: unbuilt, unread, incomplete here, changed since.
class StateError : public Error {
  using Error::Error;
};
/// A collective failed or was aborted.
class CommError : public Error {
  using Error::Error;
};
/// A file is missing, unreadable, corrupt or cannot be written.
class FileError : public Error {
  using Error::Error;
};
/// A signal ended the work, after what a later run needs was saved.
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

/// In a catch clause: throws the caught error again, its class kept, with `place` before what its
/// brackets name: "[matmul] …" becomes "[Dense hidden, matmul] …". An error that names the place
/// already, and any that is not Tessera's, stays as it is.
[[noreturn]] void rethrow_at(const std::string& place);

}  // namespace detail

}  // namespace tessera
