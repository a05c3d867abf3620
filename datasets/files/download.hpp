#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// The options of download().
struct DownloadOptions {
  /// An https URL; only redirects to https are followed.
  std::string url;
  /// SHA-256 of the file, 64 hexadecimal digits; a file with another hash never appears at `path`.
  std::string sha256;
  /// Destination. Its folder is created if missing; `path`.part holds an incomplete download.
  std::string path;
  /// Maximum size of the file; a longer one is refused.
  uint64_t max_bytes = uint64_t{1} << 30;
  /// Timeout for a connection, including name resolution.
  double connect_seconds = 5;
  /// Maximum time below 1000 bytes per second.
  double stall_seconds = 20;
  /// PEM file of trusted certificates (default: those of the system).
  std::string ca_file = {};
  /// Whether to show a progress line on stderr if that is a terminal.
  bool progress = true;
};

namespace detail {

/// Downloads a file over https to its path, atomically and only with the right SHA-256. An existing
/// file with that SHA-256 is kept; an interrupted transfer is resumed; if several processes want
/// the file, one downloads and the others wait. Throws FileError with the reason in one line (no
/// network, HTTP status, stalled, too large, wrong hash); ConfigError for a URL that is not https,
/// an invalid hash, and without libcurl.
void download(const DownloadOptions& options);

}  // namespace detail

/// A file of a DownloadSource.
struct SourceFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256 = {};
};

/// The files of a data set and the https folder that serves them.
struct DownloadSource {
  std::string url;
  std::vector<SourceFile> files;
  /// File of trusted certificates, as in DownloadOptions.
  std::string ca_file = {};
};

namespace detail {

/// Downloads all files of a source into a folder, which appears with all of them or not at all; a
/// folder that is not empty is kept. `folder`.part holds what an interrupted call downloaded, and
/// the next call resumes it. Throws as download() does.
void download_folder(const DownloadSource& source, const std::string& folder);

}  // namespace detail

}  // namespace tessera
