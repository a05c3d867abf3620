#include "apps/common/temporary_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::app {

using namespace detail;

namespace {

std::string make_folder() {
  std::error_code failure;
  const std::filesystem::path root = std::filesystem::temp_directory_path(failure);
  std::string path = (root / "tessera-XXXXXX").string();
  if (!failure && mkdtemp(path.data()) != nullptr) return path;
  if (!failure) failure = std::error_code(errno, std::generic_category());
  throw FileError(path, "a temporary folder can be created", failure.message(),
                  "set TMPDIR to a writable folder");
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() : path_(make_folder()) {}

TemporaryDirectory::TemporaryDirectory(const Mesh& mesh) : is_maker_(is_first_rank(mesh)) {
  const std::string made = is_maker_ ? make_folder() : "";
  path_ = communicator_of(mesh).gather("temporary folder", made).front();
}

TemporaryDirectory::~TemporaryDirectory() {
  if (!is_maker_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tessera::app
