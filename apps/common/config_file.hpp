#pragma once

#include <string>
#include <vector>

#include "apps/common/option.hpp"

namespace tessera::app {

/// Sets the options that the JSON object in the file at `path` names. Throws FileError if it cannot
/// be read, ConfigError naming file and key for a key that is no option (with the nearest that is),
/// a value of another kind or out of range.
void read_config_file(const std::string& path, const std::vector<Option>& options);

}  // namespace tessera::app
