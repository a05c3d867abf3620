#pragma once

#include <string>

namespace tessera::detail {

/// A model's folder that is written under a temporary name beside `path` and replaces `path`
/// atomically; removed if it is not committed. Throws FileError naming `path`, for example if
/// `path` exists and is not a model's folder.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& path);
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  /// Returns the path of the folder until commit().
  const std::string& temporary_path() const { return temporary_path_; }
  /// Renames the folder to `path`, with its directory entries on disk. Removes the previous folder,
  /// and temporary folders that killed processes left beside it.
  void commit();

 private:
  std::string path_, parent_, temporary_path_;
};

}  // namespace tessera::detail
