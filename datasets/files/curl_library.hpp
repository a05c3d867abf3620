#pragma once

#include <curl/curl.h>

namespace tessera::detail {

/// The functions of libcurl that downloads call (`init` is curl_easy_init, and so on). The library
/// is loaded, not linked: it brings 30 others along, which only downloads need.
struct CurlLibrary {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_easy_perform) perform;
  CURLcode (*set_option)(CURL* curl, CURLoption option, ...);
  CURLcode (*get_info)(CURL* curl, CURLINFO info, ...);
  decltype(&::curl_easy_strerror) error_text;
};

/// Returns libcurl, loaded and initialized by the first call. Throws ConfigError if it cannot be.
const CurlLibrary& curl_library();

}  // namespace tessera::detail
