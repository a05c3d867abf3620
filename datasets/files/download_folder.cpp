#include <tessera/datasets/files/download.hpp>

#include <filesystem>

#include <tessera/datasets/files/resumable_file.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>

namespace tessera::detail {
namespace {

void fetch_all(const DownloadSource& source, const std::string& folder) {
  for (const SourceFile& file : source.files) {
    download({.url = source.url + "/" + file.name,
              .sha256 = file.sha256,
              .path = folder + "/" + file.name,
              .max_bytes = file.bytes,
              .ca_file = source.ca_file});
  }
}

}  // namespace

void download_folder(const DownloadSource& source, const std::string& folder) {
  const std::string part = folder + ".part";
  std::error_code error;
  std::filesystem::create_directories(part, error);
  // One process at a time: otherwise one might rename the folder that another still fills.
  const ResumableFile lock(folder + ".lock");
  if (exists(folder) && !std::filesystem::is_empty(folder, error)) {
    std::filesystem::remove(part, error);
    return;
  }
  try {
    fetch_all(source, part);
  } catch (...) {
    // Succeeds only if nothing was downloaded.
    std::filesystem::remove(part, error);
    throw;
  }
  std::filesystem::rename(part, folder, error);
  if (!error) return;
  throw FileError(folder, "the folder of the fetched files can be made", error.message(),
                  "check its path and permissions");
}

}  // namespace tessera::detail
