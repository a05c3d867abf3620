#pragma once

#include <string>
#include <vector>

namespace tessera::detail {

/// The folder of libtorch's libraries, with a slash.
std::string torch_folder();

/// A shared library that is loaded while the program runs, where there are GPUs.
class LoadedLibrary {
 public:
  /// What is said where it, or one of its functions, is missing.
  struct Texts {
    const char* component;
    const char* rule;
    const char* fix;
  };
  /// The first of the names that can be loaded; a copy that the process has loaded goes before
  /// another file of that name. Throws ConfigError where there is none.
  LoadedLibrary(const std::vector<std::string>& names, const Texts& texts);

  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address(name));
  }
  /// Throws ConfigError with what was received.
  [[noreturn]] void fail(const std::string& received) const;
  const std::string& name() const { return name_; }

 private:
  void* address(const char* name) const;

  Texts texts_;
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace tessera::detail
