#include <tessera/framework/base/internal/loaded_library.hpp>

#include <dlfcn.h>

#include <utility>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

LoadedLibrary::LoadedLibrary(const std::vector<std::string>& names, Texts texts)
    : texts_(std::move(texts)) {
  std::string why;
  for (const std::string& name : names) {
    name_ = name;
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (!handle_) handle_ = dlopen(name.c_str(), RTLD_NOW);
    if (handle_) return;
    const char* reason = dlerror();
    why = reason ? reason : "no reason given";
  }
  fail(str(name_, " cannot be loaded: ", why));
}

void* LoadedLibrary::address(const char* name) const {
  void* const symbol = dlsym(handle_, name);
  if (!symbol) fail(str(name_, " lacks ", name));
  return symbol;
}

void LoadedLibrary::fail(const std::string& received) const {
  throw ConfigError(texts_.component, texts_.rule, received, texts_.fix);
}

}  // namespace tessera::detail
