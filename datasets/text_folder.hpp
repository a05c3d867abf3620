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

/// Which texts text_dataset_from_directory() reads. Options are Keras'.
struct TextFolderOptions {
  /// A label for each file, in the order of their paths; empty: sub-folders are the classes.
  std::vector<int64_t> labels = {};
  /// Whether there are labels; without them all files below the folder are read. Keras' label_mode
  /// "int", or None.
  bool labelled = true;
  /// The sub-folders to read, in the order of their labels; empty: all, in that of their names.
  std::vector<std::string> class_names = {};
  /// How many bytes of each text are kept, up to the end of a character; absent: all.
  std::optional<int64_t> max_length = std::nullopt;
  /// Whether rows are in an order of the seed's, rather than in that of the paths.
  bool shuffle = true;
  /// Of the order; the same as in Keras.
  uint32_t seed = 0;
  /// The part of the texts that is left for validation.
  double validation_split = 0;
  /// "training" or "validation" where there is a validation_split; for both there is
  /// datasets::text_subsets_from_directory().
  std::string subset = {};
  /// Whether folders and files are read that lie elsewhere.
  bool follow_links = false;
};

namespace datasets {

/// Texts of a folder, in memory.
class TextFolder final : public TextData {
 public:
  TextFolder(const std::string& directory, const TextFolderOptions& options);

  int64_t size() const override { return static_cast<int64_t>(ends_.size()); }
  /// Throws ShapeError unless 0 <= row < size().
  std::string_view text(int64_t row) const override;
  at::Tensor labels() const override { return labels_; }
  std::string name() const override { return directory_; }

  /// Names of the classes, in the order of their labels.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// The file of each row.
  const std::vector<std::string>& file_paths() const { return paths_; }

 private:
  std::string directory_;
  std::string bytes_;
  std::vector<uint64_t> ends_;  ///< where each text ends in bytes_
  std::vector<std::string> paths_;
  std::vector<std::string> class_names_;
  at::Tensor labels_;
};

}  // namespace datasets

/// The *.txt files of a folder, with their sub-folders as classes:
///
///     auto train = text_dataset_from_directory("aclImdb/train", {.class_names = {"neg", "pos"}});
///     vectorize.adapt(train);
///     model.fit(vectorize.dataset(train), {.epochs = 2});
///
/// Throws FileError naming the folder or the file if it cannot be read, has no texts, or has a link
/// that leads out of it; ConfigError for a wrong option.
std::shared_ptr<datasets::TextFolder> text_dataset_from_directory(
    const std::string& directory, const TextFolderOptions& options = {});

namespace datasets {

/// The texts to train on and those for validation, the rows of two calls of
/// text_dataset_from_directory(): what Keras gives for subset="both".
///
///     const auto [train, validation] =
///         datasets::text_subsets_from_directory("aclImdb/train", {.validation_split = 0.2});
///
/// Throws as those calls do; ConfigError without a validation_split, or for a subset but "both".
std::pair<std::shared_ptr<TextFolder>, std::shared_ptr<TextFolder>> text_subsets_from_directory(
    const std::string& directory, const TextFolderOptions& options);

}  // namespace datasets

}  // namespace tessera
