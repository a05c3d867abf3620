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

/// The options of load_img().
struct LoadImgOptions {
  /// "grayscale", "rgb" or "rgba": one, three or four channels.
  std::string color_mode = "rgb";
  /// Height and width to resize to (default: those of the file).
  std::optional<std::array<int64_t, 2>> target_size = std::nullopt;
  /// "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming", as in Pillow.
  std::string interpolation = "nearest";
  /// Whether the picture is center-cropped to the target's aspect ratio instead of stretched.
  bool keep_aspect_ratio = false;
};

/// The options of save_img().
struct SaveImgOptions {
  /// Whether the minimum is mapped to 0 and the maximum to 255; otherwise values are kept.
  bool scale = true;
};

/// Reads a JPEG, PNG, WebP, BMP or GIF file (the first frame) as uint8 (height, width, channels).
/// Numbers of 16 bits are divided by 256, as in TensorFlow, while Pillow clips those of grey
/// pictures to 255. "grayscale" converts the colours, as in Keras, while
/// image_dataset_from_directory() takes the luminance that a JPEG file stores. Throws FileError
/// naming the file if it is no picture, truncated, or has more than 134 million pixels; ConfigError
/// for an invalid option.
at::Tensor load_img(const std::string& path, const LoadImgOptions& options = {});

/// Writes a picture (height, width, 1, 3 or 4 channels) of any dtype to a .png, .jpg or .jpeg file;
/// JPEG drops alpha. Throws ShapeError for another shape, ConfigError for another extension,
/// FileError if the file cannot be written.
void save_img(const std::string& path, const at::Tensor& picture,
              const SaveImgOptions& options = {});

/// The options of image_dataset_from_directory(), named as in Keras. The batch size is an option of
/// fit().
struct ImageFolderOptions {
  /// Label of each file, in the order of their paths. If empty, sub-folders are the classes.
  std::vector<int64_t> labels = {};
  /// "int": int64 (rows); "binary": float32 (rows, 1), for two classes; "categorical": float32
  /// (rows, classes). If absent, there are no labels, and all files below the folder are read.
  std::optional<std::string> label_mode = "int";
  /// Sub-folders to read, in the order of their labels (default: all, in the order of their names).
  std::vector<std::string> class_names = {};
  /// "grayscale", "rgb" or "rgba": one, three or four channels.
  std::string color_mode = "rgb";
  /// Height and width that all pictures are resized to.
  std::array<int64_t, 2> image_size = {256, 256};
  /// Whether rows are shuffled by `seed`; otherwise they are in the order of the paths.
  bool shuffle = true;
  /// Seed of the order; gives the same order as in Keras.
  uint32_t seed = 0;
  /// Fraction of the pictures held out for validation.
  double validation_split = 0;
  /// With a validation_split: "training" or "validation"; datasets::image_subsets_from_directory()
  /// returns both.
  std::string subset = {};
  /// "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or
  /// "mitchellcubic", as in tf.image.resize without antialias.
  std::string interpolation = "bilinear";
  /// Whether links out of the folder are followed.
  bool follow_links = false;
  /// Whether pictures are center-cropped to the aspect ratio of image_size instead of stretched.
  bool crop_to_aspect_ratio = false;
  /// Whether pictures are padded with zeros to the aspect ratio of image_size instead of stretched.
  bool pad_to_aspect_ratio = false;
};

namespace datasets {

/// Pictures of a folder, decoded when their rows are read: x is float32 (rows, height, width,
/// channels) with values from 0 to 255.
class ImageFolder final : public Dataset {
 public:
  ImageFolder(const std::string& directory, const ImageFolderOptions& options);

  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  /// Throws FileError naming a file that cannot be read.
  Examples get(std::span<const int64_t> rows) const override;
  bool concurrent() const override { return true; }
  std::string name() const override { return directory_; }
  std::vector<Shape> input_shapes() const override;

  /// Returns the names of the classes, in the order of their labels.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// Returns the path of each row's file.
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

/// Reads the pictures (JPEG, PNG, WebP, BMP, GIF) of a folder, with its sub-folders as classes:
///
///     auto train = image_dataset_from_directory("flowers", {.image_size = {180, 180},
///                                                           .validation_split = 0.2,
///                                                           .subset = "training"});
///     model.fit(train, {.batch_size = 32, .epochs = 3});
///
/// Throws FileError naming the folder if it cannot be read, has no pictures, or has a link that
/// leads out of it; ConfigError for an invalid option.
datasets::ImageFolder image_dataset_from_directory(const std::string& directory,
                                                   const ImageFolderOptions& options = {});

namespace datasets {

/// Reads both subsets, training and validation, as two calls of image_dataset_from_directory()
/// would (Keras: subset="both").
///
///     const auto [train, validation] = datasets::image_subsets_from_directory(
///         "flowers", {.image_size = {180, 180}, .validation_split = 0.2});
///
/// Throws as those calls do; ConfigError without a validation_split, or for a subset other than
/// "both".
std::pair<ImageFolder, ImageFolder> image_subsets_from_directory(const std::string& directory,
                                                                 const ImageFolderOptions& options);

}  // namespace datasets

}  // namespace tessera
