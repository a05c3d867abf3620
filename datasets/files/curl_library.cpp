#include <tessera/datasets/files/curl_library.hpp>

#include <tessera/framework/base/internal/loaded_library.hpp>

namespace tessera::detail {
namespace {

CurlLibrary load() {
  const LoadedLibrary library(
      {"libcurl.so.4"},
      {.component = "download",
       .rule = "downloads need libcurl 7.85 or newer",
       .fix = "install the package libcurl4, or put the files into a folder by hand"});
  CurlLibrary curl{};
  library.find("curl_global_init", curl.global_init);
  library.find("curl_easy_init", curl.init);
  library.find("curl_easy_cleanup", curl.cleanup);
  library.find("curl_easy_perform", curl.perform);
  library.find("curl_easy_setopt", curl.set_option);
  library.find("curl_easy_getinfo", curl.get_info);
  library.find("curl_easy_strerror", curl.error_text);
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) library.fail("it cannot be initialized");
  return curl;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary library = load();
  return library;
}

}  // namespace tessera::detail
