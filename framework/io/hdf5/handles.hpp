#pragma once

#include <hdf5.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tessera::detail::hdf5 {

/// A short description of why a file is refused, for the user.
class Refusal : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Refusal with what failed and the library's innermost error.
[[noreturn]] void fail(const std::string& what);

/// Returns a result of the library. Throws Refusal if it is negative.
template <class T>
T checked(T result, const std::string& what) {
  if (result < 0) fail(what);
  return result;
}

/// Owns an HDF5 object.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close, const std::string& what) : id_(checked(id, what)), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;

  operator hid_t() const { return id_; }  // NOLINT: reads as the library's own

 private:
  hid_t id_;
  Close close_;
};

}  // namespace tessera::detail::hdf5
