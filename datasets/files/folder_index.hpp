#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// The options of index_folder(): which files are data, and in which order.
struct FolderIndexOptions {
  /// File extensions, in lower case.
  std::span<const std::string_view> endings = {};
  /// Whether each sub-folder is a class; otherwise all files below the folder are data.
  bool classes = true;
  /// Sub-folders to read, in the order of their labels (default: all, ordered by the names' bytes).
  std::vector<std::string> class_names = {};
  /// Labels of the files in the order of their paths, if sub-folders are no classes.
  std::vector<int64_t> labels = {};
  bool shuffle = true;  ///< whether to shuffle the files, by `seed`
  uint32_t seed = 0;    ///< seed of the shuffle
  /// Fraction of the files held out for validation.
  double validation_split = 0;
  /// Subset to list: "training", "validation" or "" (all files).
  std::string subset = {};
  bool follow_links = false;  ///< whether to read folders behind symbolic links
};

/// The data files of a folder with their labels.
struct FolderIndex {
  std::vector<std::string> paths;
  std::vector<int64_t> labels;  ///< one per path; empty for data without labels
  std::vector<std::string> class_names;
};

/// Lists a folder as Keras' index_directory does, with the same order for a seed. Hidden folders
/// are no classes; folders below a class belong to it. Throws FileError naming the folder if it has
/// no data file, cannot be read, or has a link that leads out of it (unless links are followed);
/// ConfigError for an unknown class, a wrong number of labels, or an invalid split.
FolderIndex index_folder(const std::string& folder, const FolderIndexOptions& options);

/// Throws ConfigError unless the options ask for both subsets of a folder: with a validation_split,
/// and `subset` empty or "both".
void check_both_subsets(const std::string& folder, double validation_split,
                        const std::string& subset);

}  // namespace tessera::detail
