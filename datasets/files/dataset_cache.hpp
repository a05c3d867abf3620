#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/datasets/files/download.hpp>

namespace tessera::detail {

/// Folder of a data set in the user's cache: `tessera/name` in $XDG_CACHE_HOME, else in ~/.cache;
/// empty where neither variable is set.
std::string data_cache(const std::string& name);

/// Where a data set is looked for if no place is given: $TESSERA_DATA, then data_cache(name).
std::vector<std::string> data_places(const std::string& name);

/// Whether $TESSERA_OFFLINE is set to anything but 0: nothing is to be fetched.
bool offline();

/// Fetches the files of a data set into a folder; returns why it could not, in one line, or an
/// empty text. A failure is remembered for the time of the process, so that the next split does not
/// wait for it again, nor succeed beside it.
std::string try_download(const DownloadSource& source, const std::string& folder);

/// What the option `synthetic` asks for where procedural data take the place of a data set's files:
/// throws FileError if it is false, warns on stderr, once with each text, if it is absent.
void allow_synthetic(const std::string& name, const std::optional<bool>& synthetic,
                     const std::string& announcement);

}  // namespace tessera::detail
