#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// What to fetch, where to put it and how long to wait.
struct DownloadOptions {
  /// An https address; redirects are followed to https only.
  std::string url;
  /// SHA-256 of the file, 64 hexadecimal digits: nothing else is ever put at `path`.
  std::string sha256;
  /// Where the file goes. Its folder is made if missing; `path`.part holds what came so far.
  std::string path;
  /// A longer file is refused.
  uint64_t max_bytes = uint64_t{1} << 30;
  /// Longest wait for a connection, look-up of the name included.
  double connect_seconds = 5;
  /// Longest time below 1000 bytes a second.
  double stall_seconds = 20;
  /// PEM file of the certificates to trust; empty: those of the system.
  std::string ca_file = {};
  /// Whether to show the progress in a line of the standard error, where that is a terminal.
  bool progress = true;
};

namespace detail {

/// Fetches a file over https and puts it at its path, whole and with the right SHA-256, or not at
/// all. A file that is there already with that SHA-256 is left as it is; an interrupted transfer
/// goes on where it stopped; of several processes at once one fetches and the others wait for it.
/// Throws FileError in one line with the reason (no network, HTTP status, stalled, too large, wrong
/// hash); ConfigError for an address that is not https or a hash that is none, and without libcurl.
void download(const DownloadOptions& options);

/// A file of a DownloadSource.
struct SourceFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256 = {};
};

}  // namespace detail

/// Files that belong together and the https folder that has them.
struct DownloadSource {
  std::string url;
  std::vector<detail::SourceFile> files;
  /// File of trusted certificates, as in DownloadOptions.
  std::string ca_file = {};
};

namespace detail {

/// Fetches all files of a source into a folder, which appears with all of them or not at all; one
/// that has anything in it already is left as it is. What came of an interrupted call lies in
/// `folder`.part, and the next one goes on with it. Throws as download() does.
void download_folder(const DownloadSource& source, const std::string& folder);

}  // namespace detail

}  // namespace tessera
