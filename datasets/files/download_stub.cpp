// Replaces download.cpp and its companions if libcurl is missing.
#include <tessera/datasets/files/download.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

namespace {

[[noreturn]] void refuse(const std::string& url, const std::string& path) {
  throw ConfigError(
      url, "downloads need libcurl", "a build without it",
      "put the files at " + path + ", or install libcurl4-openssl-dev and build again");
}

}  // namespace

void detail::download(const DownloadOptions& options) { refuse(options.url, options.path); }

void detail::download_folder(const DownloadSource& source, const std::string& folder) {
  refuse(source.url, folder);
}

}  // namespace tessera
