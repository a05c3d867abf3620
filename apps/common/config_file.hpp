#pragma once

#include <string>
#include <vector>

#include "apps/common/option.hpp"

namespace tessera::app {

/// Sets options from the JSON object in the file at `path`. Throws FileError if it cannot be read,
/// ConfigError naming file and key for an unknown key (suggesting the nearest option) and for a
/// value of the wrong type or out of range.
void read_config_file(const std::string& path, const std::vector<Option>& options);

}  // namespace tessera::app
