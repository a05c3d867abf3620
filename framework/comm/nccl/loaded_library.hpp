#pragma once

#include <string>
#include <vector>

namespace tessera::detail {

/// Returns the folder of libtorch's libraries, with a trailing slash.
std::string torch_folder();

/// A shared library loaded at run time, if there are GPUs.
class LoadedLibrary {
 public:
  /// Texts of the error for a missing library or function.
  struct Texts {
    const char* component;
    const char* rule;
    const char* fix;
  };
  /// Loads the first of `names` that can be loaded; a copy already in the process takes precedence
  /// over another file of that name. Throws ConfigError if none can be loaded.
  LoadedLibrary(const std::vector<std::string>& names, const Texts& texts);

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
