#include <tessera/datasets/files/curl_library.hpp>

#include <dlfcn.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

constexpr const char* file = "libcurl.so.4";

[[noreturn]] void fail_to_load(const std::string& reason) {
  throw ConfigError("download", "downloads need libcurl 7.85 or newer", reason,
                    "install the package libcurl4, or put the files into a folder by hand");
}

/// Looks up a function.
template <class Function>
void find(void* library, const char* name, Function& function) {
  void* const symbol = dlsym(library, name);
  if (!symbol) fail_to_load(str(file, " lacks ", name));
  function = reinterpret_cast<Function>(symbol);
}

CurlLibrary load() {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    fail_to_load(reason ? reason : str(file, " cannot be loaded"));
  }
  CurlLibrary curl{};
  find(library, "curl_global_init", curl.global_init);
  find(library, "curl_easy_init", curl.init);
  find(library, "curl_easy_cleanup", curl.cleanup);
  find(library, "curl_easy_perform", curl.perform);
  find(library, "curl_easy_setopt", curl.set_option);
  find(library, "curl_easy_getinfo", curl.get_info);
  find(library, "curl_easy_strerror", curl.error_text);
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail_to_load("it cannot be initialized");
  return curl;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary library = load();
  return library;
}

}  // namespace tessera::detail
