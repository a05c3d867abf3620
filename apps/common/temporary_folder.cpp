#include "apps/common/temporary_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <tessera/framework/base/error.hpp>

namespace tessera::app {

TemporaryFolder::TemporaryFolder() {
  std::error_code failure;
  const std::filesystem::path root = std::filesystem::temp_directory_path(failure);
  path_ = (root / "tessera-XXXXXX").string();
  if (!failure && mkdtemp(path_.data()) != nullptr) return;
  if (!failure) failure = std::error_code(errno, std::generic_category());
  throw FileError(path_, "a temporary folder can be made", failure.message(),
                  "set TMPDIR to a folder that can be written");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tessera::app
