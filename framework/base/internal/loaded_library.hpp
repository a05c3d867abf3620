#pragma once

#include <string>
#include <vector>

namespace tessera::detail {

/// A shared library that is loaded when it is needed, not linked: few programs need it, or the
/// machine may lack it. It is never closed.
class LoadedLibrary {
 public:
  /// Texts of the error for a missing library or function.
  struct Texts {
    std::string component;
    std::string rule;
    std::string fix;
  };
  /// Loads the first of `names` that can be loaded; a copy already in the process takes precedence
  /// over another file of that name. Throws ConfigError if none can be loaded.
  LoadedLibrary(const std::vector<std::string>& names, Texts texts);

  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address(name));
  }
  /// Throws ConfigError with this text after "Received".
  [[noreturn]] void fail(const std::string& received) const;
  const std::string& name() const { return name_; }

 private:
  void* address(const char* name) const;

  Texts texts_;
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace tessera::detail
