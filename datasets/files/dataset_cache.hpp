#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/datasets/files/download.hpp>

namespace tessera::detail {

/// Returns the folder of a data set in the user's cache: `tessera/name` in $XDG_CACHE_HOME, or else
/// in ~/.cache; empty if neither $XDG_CACHE_HOME nor $HOME is set.
std::string data_cache(const std::string& name);

/// Returns the folders to search for a data set by default: $TESSERA_DATA, then data_cache(name).
std::vector<std::string> data_folders(const std::string& name);

/// Whether downloads are disabled: $TESSERA_OFFLINE is set to anything but 0.
bool offline();

/// Downloads the files of a data set into a folder. Returns an empty text, or the reason of the
/// failure in one line. A failure is remembered for the rest of the process, so that the next split
/// neither waits for it again nor succeeds where the first one failed.
std::string try_download(const DownloadSource& source, const std::string& folder);

/// Applies the option `synthetic` before procedural data replace a data set's files: throws
/// FileError if it is false; warns on stderr, once per text, if it is absent.
void allow_synthetic(const std::string& name, const std::optional<bool>& synthetic,
                     const std::string& announcement);

}  // namespace tessera::detail
