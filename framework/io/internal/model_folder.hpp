#pragma once

#include <string>

namespace tessera::detail {

/// A folder that takes the place of the one at `path` in one step, of the files of a model: until
/// then it lies beside it under another name, and is removed if it is not committed. Throws
/// FileError naming `path`, above all if something lies there that is no folder of a model.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& path);
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  /// Where it lies now.
  const std::string& temporary_path() const { return temporary_path_; }
  /// Puts it in place, with the names in it on disk; what lay there is removed, and what killed
  /// processes left of such folders beside it.
  void commit();

 private:
  std::string path_, parent_, temporary_path_;
};

}  // namespace tessera::detail
