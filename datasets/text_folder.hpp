#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/data/text_data.hpp>

namespace tessera {

/// The options of text_dataset_from_directory(), named as in Keras.
struct TextFolderOptions {
  /// Label of each file, in the order of their paths. If empty, sub-folders are the classes.
  std::vector<int64_t> labels = {};
  /// Whether there are labels; without them all files below the folder are read. Keras' label_mode
  /// "int", or None.
  bool labelled = true;
  /// Sub-folders to read, in the order of their labels (default: all, in the order of their names).
  std::vector<std::string> class_names = {};
  /// Maximum number of bytes kept of each text; no character is split (default: all bytes).
  std::optional<int64_t> max_length = std::nullopt;
  /// Whether rows are shuffled by `seed`; otherwise they are in the order of the paths.
  bool shuffle = true;
  /// Seed of the order; gives the same order as in Keras.
  uint32_t seed = 0;
  /// Fraction of the texts held out for validation.
  double validation_split = 0;
  /// With a validation_split: "training" or "validation"; datasets::text_subsets_from_directory()
  /// returns both.
  std::string subset = {};
  /// Whether links out of the folder are followed.
  bool follow_links = false;
};

namespace datasets {

/// The texts of a folder, in memory.
class TextFolder final : public TextData {
 public:
  TextFolder(const std::string& directory, const TextFolderOptions& options);

  int64_t size() const override { return static_cast<int64_t>(ends_.size()); }
  /// Throws ShapeError unless 0 <= row < size().
  std::string_view text(int64_t row) const override;
  at::Tensor labels() const override { return labels_; }
  std::string name() const override { return directory_; }

  /// Returns the names of the classes, in the order of their labels.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// Returns the path of each row's file.
  const std::vector<std::string>& file_paths() const { return paths_; }

 private:
  std::string directory_;
  std::string bytes_;
  std::vector<uint64_t> ends_;  ///< end of each text in bytes_
  std::vector<std::string> paths_;
  std::vector<std::string> class_names_;
  at::Tensor labels_;
};

}  // namespace datasets

/// Reads the *.txt files of a folder, with its sub-folders as classes:
///
///     auto train = text_dataset_from_directory("aclImdb/train", {.class_names = {"neg", "pos"}});
///     vectorize.adapt(train);
///     model.fit(vectorize.dataset(train), {.epochs = 2});
///
/// Throws FileError naming the folder or the file if it cannot be read, has no texts, or has a link
/// that leads out of it; ConfigError for an invalid option.
std::shared_ptr<datasets::TextFolder> text_dataset_from_directory(
    const std::string& directory, const TextFolderOptions& options = {});

namespace datasets {

/// Reads both subsets, training and validation, as two calls of text_dataset_from_directory()
/// would (Keras: subset="both").
///
///     const auto [train, validation] =
///         datasets::text_subsets_from_directory("aclImdb/train", {.validation_split = 0.2});
///
/// Throws as those calls do; ConfigError without a validation_split, or for a subset other than
/// "both".
std::pair<std::shared_ptr<TextFolder>, std::shared_ptr<TextFolder>> text_subsets_from_directory(
    const std::string& directory, const TextFolderOptions& options);

}  // namespace datasets

}  // namespace tessera
