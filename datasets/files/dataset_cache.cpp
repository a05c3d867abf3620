#include <tessera/datasets/files/dataset_cache.hpp>

#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string data_cache(const std::string& name) {
  const std::string cache = environment("XDG_CACHE_HOME");
  if (!cache.empty()) return cache + "/tessera/" + name;
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/tessera/" + name;
}

std::vector<std::string> data_folders(const std::string& name) {
  std::vector<std::string> folders{environment("TESSERA_DATA"), data_cache(name)};
  std::erase(folders, "");
  return folders;
}

bool offline() {
  const std::string value = environment("TESSERA_OFFLINE");
  return !value.empty() && value != "0";
}

std::string try_download(const DownloadSource& source, const std::string& folder) {
  static std::mutex mutex;
  static std::map<std::string, std::string> failures;
  const std::lock_guard lock(mutex);
  std::string& failure = failures[folder];
  if (!failure.empty()) return failure;
  try {
    download_folder(source, folder);
  } catch (const Error& error) {
    failure = error.what();
  }
  return failure;
}

void allow_synthetic(const std::string& name, const std::optional<bool>& synthetic,
                     const std::string& announcement) {
  if (synthetic && *synthetic) return;
  if (synthetic) {
    throw FileError(name, "the files of the data set are there", announcement,
                    "put them there, or leave out .synthetic = false");
  }
  static std::mutex mutex;
  static std::set<std::string> warned;
  const std::lock_guard lock(mutex);
  if (warned.insert(announcement).second) std::cerr << "Warning: " << announcement << '\n';
}

}  // namespace tessera::detail
