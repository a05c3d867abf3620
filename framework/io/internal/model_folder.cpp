#include <tessera/framework/io/internal/model_folder.hpp>

#include <sys/stat.h>

#include <cerrno>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Returns whether a model's folder may have this entry: Keras' files and the layers' assets.
bool is_model_entry(const std::string& name) {
  return name == "config.json" || name == "metadata.json" || name == "model.weights.h5" ||
         name == "assets";
}

void check_replaceable(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return;
  if (!leads_to_folder(path)) {
    throw FileError(path, "a folder or no file", "a file", "pass another path");
  }
  std::error_code error;
  for (const std::string& name : names_in(path, error)) {
    if (is_model_entry(name)) continue;
    throw FileError(path, "a folder with a model and no other files", in_quotes(name),
                    "pass another path");
  }
  if (error) fail_read(path);
}

}  // namespace

ModelFolder::ModelFolder(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  check_replaceable(path_);
  const size_t slash = path_.rfind('/');
  parent_ = slash == std::string::npos ? "./" : path_.substr(0, slash + 1);
  do {
    temporary_path_ = parent_ + new_temporary_name();
    if (::mkdir(temporary_path_.c_str(), 0777) == 0) return;
  } while (errno == EEXIST);
  fail_write(path);
}

ModelFolder::~ModelFolder() {
  if (!temporary_path_.empty()) remove_tree(temporary_path_);
}

void ModelFolder::commit() {
  if (!sync_folder(temporary_path_)) fail_write(path_);
  check_replaceable(path_);
  // The exchange leaves the previous folder under the temporary name; the destructor removes it.
  if (!exchange_paths(temporary_path_, path_)) {
    const bool existed = exists(path_);
    const std::string previous = parent_ + new_temporary_name();
    if (existed && !rename_path(path_, previous)) fail_write(path_);
    if (!rename_path(temporary_path_, path_)) {
      const int reason = errno;
      if (existed) rename_path(previous, path_);
      errno = reason;
      fail_write(path_);
    }
    temporary_path_ = existed ? previous : "";
  }
  if (!sync_folder(parent_)) fail_write(path_);
  for (const std::string& path : abandoned_in(parent_)) {
    if (is_folder(path)) remove_abandoned(path);
  }
}

}  // namespace tessera::detail
