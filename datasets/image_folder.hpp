#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/data/dataset.hpp>

namespace tessera {

/// How load_img() reads a picture.
struct LoadImgOptions {
  /// "grayscale", "rgb" or "rgba": one, three or four channels.
  std::string color_mode = "rgb";
  /// Height and width; absent: those of the file.
  std::optional<std::array<int64_t, 2>> target_size = std::nullopt;
  /// "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming", as Pillow has them.
  std::string interpolation = "nearest";
  /// Whether the middle of the picture is cut out so that nothing is stretched.
  bool keep_aspect_ratio = false;
};

/// How save_img() writes a picture.
struct SaveImgOptions {
  /// Whether the least number becomes 0 and the greatest 255; otherwise numbers are as they are.
  bool scale = true;
};

/// Reads a JPEG, PNG or WebP file, as uint8 (height, width, channels). Throws FileError naming the
/// file for what is no picture, truncated, or of more than 134 million pixels; ConfigError for a
/// wrong option.
at::Tensor load_img(const std::string& path, const LoadImgOptions& options = {});

/// Writes a picture (height, width, 1, 3 or 4 channels) of any dtype to a .png, .jpg or .jpeg file;
/// JPEG leaves alpha out. Throws ShapeError for another shape, ConfigError for another ending,
/// FileError if it cannot be written.
void save_img(const std::string& path, const at::Tensor& picture,
              const SaveImgOptions& options = {});

/// Which pictures image_dataset_from_directory() reads, and how. Options are Keras'; batches are
/// those of fit.
struct ImageFolderOptions {
  /// A label for each file, in the order of their paths; empty: sub-folders are the classes.
  std::vector<int64_t> labels = {};
  /// "int": int64 (rows); "binary": float32 (rows, 1) of two classes; "categorical": float32
  /// (rows, classes). Absent: no labels, and all files below the folder are read.
  std::optional<std::string> label_mode = "int";
  /// The sub-folders to read, in the order of their labels; empty: all, in that of their names.
  std::vector<std::string> class_names = {};
  /// "grayscale", "rgb" or "rgba": one, three or four channels.
  std::string color_mode = "rgb";
  /// Height and width that all pictures are brought to.
  std::array<int64_t, 2> image_size = {256, 256};
  /// Whether rows are in an order of the seed's, rather than in that of the paths.
  bool shuffle = true;
  /// Of the order; the same as in Keras.
  uint32_t seed = 0;
  /// The part of the pictures that is left for validation.
  double validation_split = 0;
  /// "training" or "validation" where there is a validation_split; for both there is
  /// datasets::image_subsets_from_directory().
  std::string subset = {};
  /// "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic":
  /// those of tf.image.resize, without antialias.
  std::string interpolation = "bilinear";
  /// Whether folders and files are read that lie elsewhere.
  bool follow_links = false;
  /// Whether the middle of a picture is cut out so that nothing is stretched.
  bool crop_to_aspect_ratio = false;
  /// Whether zeros are put around a picture so that nothing is stretched.
  bool pad_to_aspect_ratio = false;
};

namespace datasets {

/// Pictures of a folder, decoded when their rows are asked for: x is float32 (rows, height, width,
/// channels), numbers from 0 to 255. Rows may be read by several threads at a time.
class ImageFolder final : public Dataset {
 public:
  ImageFolder(const std::string& directory, const ImageFolderOptions& options);

  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  /// Throws FileError naming the file that cannot be read.
  Examples get(std::span<const int64_t> rows) const override;
  std::string name() const override { return directory_; }
  std::vector<Shape> input_shapes() const override;

  /// Names of the classes, in the order of their labels.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// The file of each row.
  const std::vector<std::string>& file_paths() const { return paths_; }

 private:
  std::string directory_;
  ImageFolderOptions options_;
  int64_t channels_;
  std::vector<std::string> paths_;
  std::vector<std::string> class_names_;
  at::Tensor labels_;
};

}  // namespace datasets

/// The pictures (JPEG, PNG, WebP) of a folder, with their sub-folders as classes:
///
///     auto train = image_dataset_from_directory("flowers", {.image_size = {180, 180},
///                                                           .validation_split = 0.2,
///                                                           .subset = "training"});
///     model.fit(train, {.batch_size = 32, .epochs = 3});
///
/// Throws FileError naming the folder if it cannot be read, has no pictures, or has a link that
/// leads out of it; ConfigError for a wrong option.
datasets::ImageFolder image_dataset_from_directory(const std::string& directory,
                                                   const ImageFolderOptions& options = {});

namespace datasets {

/// The pictures to train on and those for validation, the rows of two calls of
/// image_dataset_from_directory(): what Keras gives for subset="both".
///
///     const auto [train, validation] = datasets::image_subsets_from_directory(
///         "flowers", {.image_size = {180, 180}, .validation_split = 0.2});
///
/// Throws as those calls do; ConfigError without a validation_split, or for a subset but "both".
std::pair<ImageFolder, ImageFolder> image_subsets_from_directory(const std::string& directory,
                                                                 const ImageFolderOptions& options);

}  // namespace datasets

}  // namespace tessera
