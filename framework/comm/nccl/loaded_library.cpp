#include <tessera/framework/comm/nccl/loaded_library.hpp>

#include <dlfcn.h>

#include <ATen/Context.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::string torch_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) == 0) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

LoadedLibrary::LoadedLibrary(const std::vector<std::string>& names, const Texts& texts)
    : texts_(texts) {
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
