#include "apps/common/new_folder.hpp"

#include <system_error>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::app {

using namespace detail;

namespace {

void check_free(const std::string& flag, const std::string& path) {
  std::error_code error;
  if (!exists(path) || (is_folder(path) && names_in(path, error).empty() && !error)) return;
  throw ConfigError(flag, "a folder that does not exist yet, or is empty", in_quotes(path),
                    "name another one, or move that away");
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string folder_above(const std::string& path) {
  const std::string parent = parent_of(path);
  return parent.empty() ? "." : parent;
}

}  // namespace

NewFolder::NewFolder(const Mesh& mesh, const std::string& flag, const std::string& path)
    : mesh_(mesh), path_(without_slashes(path)) {
  temporary_ = broadcast_text(mesh, path_, [&]() -> std::string {
    if (!is_first_rank(mesh)) return "";
    check_free(flag, path_);
    std::string made = path_in(folder_above(path_), new_temporary_name());
    if (!make_folders(made)) fail_write(path_);
    return made;
  });
}

NewFolder::~NewFolder() {
  if (!is_complete_ && is_first_rank(mesh_)) remove_tree(temporary_);
}

void NewFolder::commit() {
  collectively(mesh_, path_, [&] {
    if (!is_first_rank(mesh_)) return;
    const bool is_renamed = sync_folder(temporary_) && rename_path(temporary_, path_);
    if (!is_renamed || !sync_folder(folder_above(path_))) fail_write(path_);
  });
  is_complete_ = true;
}

}  // namespace tessera::app
