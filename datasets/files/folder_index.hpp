#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// Which files of a folder are data, and in which order.
struct FolderForm {
  /// Endings of the files, in lower case.
  std::span<const std::string_view> endings = {};
  /// Whether each sub-folder is a class; otherwise all files below the folder are data.
  bool classes = true;
  /// The sub-folders to take, in the order of their numbers; empty: all, in that of their bytes.
  std::vector<std::string> class_names = {};
  /// Labels of the files in the order of their paths, where sub-folders are no classes.
  std::vector<int64_t> labels = {};
  bool shuffle = true;
  uint32_t seed = 0;
  /// Which part of the files is left for validation, and which of both is taken: "training",
  /// "validation" or, of all, "".
  double validation_split = 0;
  std::string subset = {};
  bool follow_links = false;
};

/// Files with their labels.
struct FolderIndex {
  std::vector<std::string> paths;
  std::vector<int64_t> labels;  ///< none where nothing gives them
  std::vector<std::string> class_names;
};

/// Lists a folder as Keras' index_directory does, with the same order for a seed. Hidden folders
/// are no classes; those below a class belong to it. Throws FileError naming the folder if it has
/// no such file, cannot be read, or has a link that leads out of it (unless links are followed);
/// ConfigError for a class that is not there, another number of labels, or a wrong split.
FolderIndex index_folder(const std::string& folder, const FolderForm& form);

/// Throws ConfigError unless options ask for both parts of a folder: with a validation_split, and
/// no subset but "both".
void check_both_subsets(const std::string& folder, double validation_split,
                        const std::string& subset);

}  // namespace tessera::detail
