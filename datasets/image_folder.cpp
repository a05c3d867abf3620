#include <tessera/datasets/image_folder.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/datasets/files/folder_index.hpp>
#include <tessera/datasets/files/resize.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

int64_t channels_of(const std::string& color_mode, const std::string& where) {
  static const std::vector<std::string> modes{"grayscale", "rgb", "rgba"};
  if (color_mode == modes[0]) return 1;
  if (color_mode == modes[1]) return 3;
  if (color_mode == modes[2]) return 4;
  throw ConfigError(where, "color_mode is one of " + quoted_list(modes), in_quotes(color_mode),
                    suggestion(color_mode, modes));
}

void check_interpolation(const std::string& name, std::span<const std::string> known,
                         const std::string& where) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw ConfigError(where, "interpolation is one of " + quoted_list(known), in_quotes(name),
                    suggestion(name, known));
}

void check_picture_size(const std::array<int64_t, 2>& size, const std::string& where) {
  const bool fits = size[0] > 0 && size[1] > 0 && size[0] <= max_image_pixels / size[1];
  if (fits) return;
  throw ConfigError(where, str("a height and width of at most ", max_image_pixels, " pixels"),
                    str(size[0], " x ", size[1]), "name a smaller size");
}

ImageRect full_rect(const Image& image) { return {0, 0, image.height, image.width}; }

/// Returns the largest centered rectangle with the aspect ratio of `size`.
ImageRect centered_rect(const Image& image, const std::array<int64_t, 2>& size) {
  ImageRect rect;
  rect.height = std::clamp<int64_t>(image.width * size[0] / size[1], 1, image.height);
  rect.width = std::clamp<int64_t>(image.height * size[1] / size[0], 1, image.width);
  rect.top = (image.height - rect.height) / 2;
  rect.left = (image.width - rect.width) / 2;
  return rect;
}

/// Returns the rectangle of the resized picture inside the padded one of `size`, as in
/// tf.image.resize_with_pad.
ImageRect padded_rect(const Image& image, const std::array<int64_t, 2>& size) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double ratio =
      std::max(width / static_cast<double>(size[1]), height / static_cast<double>(size[0]));
  const double inner_height = height / ratio, inner_width = width / ratio;
  const auto half = [](double rest) {
    return std::max<int64_t>(0, static_cast<int64_t>(std::floor(rest / 2)));
  };
  return {.top = half(static_cast<double>(size[0]) - inner_height),
          .left = half(static_cast<double>(size[1]) - inner_width),
          .height = std::max<int64_t>(1, static_cast<int64_t>(std::floor(inner_height))),
          .width = std::max<int64_t>(1, static_cast<int64_t>(std::floor(inner_width)))};
}

/// Returns the labels as a tensor with one row each, encoded as `mode` says.
at::Tensor label_rows(const std::vector<int64_t>& labels, const std::string& mode, size_t classes,
                      const std::string& where) {
  const at::Tensor numbers = at::empty({std::ssize(labels)}, at::kLong);
  std::copy(labels.begin(), labels.end(), numbers.mutable_data_ptr<int64_t>());
  if (mode == "int") return numbers;
  if (mode == "binary") {
    if (classes != 2) {
      throw ConfigError(where, R"(two classes for label_mode "binary")", std::to_string(classes),
                        R"(use "int" or "categorical")");
    }
    return numbers.to(at::kFloat).unsqueeze(1);
  }
  if (mode != "categorical") {
    const std::vector<std::string> modes{"int", "binary", "categorical"};
    throw ConfigError(where, "label_mode is one of " + quoted_list(modes), in_quotes(mode),
                      suggestion(mode, modes));
  }
  const auto count = static_cast<int64_t>(classes);
  for (const int64_t label : labels) {
    if (label >= 0 && label < count) continue;
    throw ConfigError(where, str("labels from 0 to ", count - 1), std::to_string(label),
                      R"(number the classes without gaps, or use "int")");
  }
  return at::zeros({std::ssize(labels), count}).scatter_(1, numbers.unsqueeze(1), 1);
}

}  // namespace

at::Tensor load_img(const std::string& path, const LoadImgOptions& options) {
  const std::string where = "load_img, " + path;
  check_interpolation(options.interpolation, pillow_interpolations(), where);
  const int64_t channels = channels_of(options.color_mode, where);
  // As Keras, which converts the colours also where a JPEG file stores the luminance.
  Image image = read_image(path, std::max<int64_t>(channels, 3));
  if (channels == 1) image = as_grey(image);
  const std::array<int64_t, 2> size =
      options.target_size.value_or(std::array<int64_t, 2>{image.height, image.width});
  check_picture_size(size, where);
  const at::Tensor picture = at::empty({size[0], size[1], image.channels}, at::kByte);
  if (size[0] == image.height && size[1] == image.width) {
    std::copy(image.pixels.begin(), image.pixels.end(), picture.mutable_data_ptr<uint8_t>());
    return picture;
  }
  const at::Tensor numbers = at::empty(picture.sizes(), at::kFloat);
  resize_image(image, options.keep_aspect_ratio ? centered_rect(image, size) : full_rect(image),
               size[0], size[1], {.interpolation = options.interpolation, .antialias = true},
               numbers.mutable_data_ptr<float>(), size[1] * image.channels);
  return numbers.add_(0.5).clamp_(0, 255).to(at::kByte);
}

void save_img(const std::string& path, const at::Tensor& picture, const SaveImgOptions& options) {
  const bool fits = picture.dim() == 3 && picture.numel() > 0 &&
                    (picture.size(2) == 1 || picture.size(2) == 3 || picture.size(2) == 4);
  if (!fits) {
    throw ShapeError("save_img, " + path, "a picture (height, width, 1, 3 or 4 channels)",
                     to_string(picture.sizes().vec()), "reshape it; save one picture at a time");
  }
  at::Tensor numbers = picture.cpu().to(at::kFloat);
  if (options.scale) {
    numbers = numbers - numbers.min();
    const float maximum = numbers.max().item<float>();
    if (maximum != 0) numbers = numbers / maximum * 255;
  }
  const at::Tensor bytes = numbers.clamp(0, 255).to(at::kByte).contiguous();
  const auto* data = bytes.const_data_ptr<uint8_t>();
  write_image(path, {bytes.size(0), bytes.size(1), bytes.size(2),
                     std::vector<uint8_t>(data, data + bytes.numel())});
}

datasets::ImageFolder::ImageFolder(const std::string& directory, const ImageFolderOptions& options)
    : directory_(directory),
      options_(options),
      channels_(channels_of(options.color_mode, directory)) {
  check_interpolation(options.interpolation, tf_interpolations(), directory);
  check_picture_size(options.image_size, directory);
  if (options.crop_to_aspect_ratio && options.pad_to_aspect_ratio) {
    throw ConfigError(directory, "one of crop_to_aspect_ratio and pad_to_aspect_ratio", "both",
                      "choose one");
  }
  const bool labelled = options.label_mode.has_value();
  FolderIndex index = index_folder(directory, {.endings = image_endings(),
                                               .classes = labelled && options.labels.empty(),
                                               .class_names = options.class_names,
                                               .labels = options.labels,
                                               .shuffle = options.shuffle,
                                               .seed = options.seed,
                                               .validation_split = options.validation_split,
                                               .subset = options.subset,
                                               .follow_links = options.follow_links});
  paths_ = std::move(index.paths);
  if (!labelled) return;
  class_names_ = std::move(index.class_names);
  labels_ = label_rows(index.labels, *options.label_mode, class_names_.size(), directory);
}

Examples datasets::ImageFolder::get(std::span<const int64_t> rows) const {
  const auto [height, width] = options_.image_size;
  const auto count = static_cast<int64_t>(rows.size());
  const at::Tensor pictures = options_.pad_to_aspect_ratio
                                  ? at::zeros({count, height, width, channels_})
                                  : at::empty({count, height, width, channels_}, at::kFloat);
  const at::Tensor numbers = at::empty({count}, at::kLong);
  const int64_t row_step = width * channels_;
  float* out = pictures.mutable_data_ptr<float>();
  for (int64_t i = 0; i < count; ++i, out += height * row_step) {
    const int64_t row = rows[static_cast<size_t>(i)];
    if (row < 0 || row >= size()) {
      throw ShapeError(directory_, str("a row is in [0, ", size(), ")"), str(row),
                       "ask for one of them");
    }
    numbers.mutable_data_ptr<int64_t>()[i] = row;
    const Image image = read_image(paths_[static_cast<size_t>(row)], channels_);
    const ResizeOptions resize_options{.interpolation = options_.interpolation};
    if (options_.pad_to_aspect_ratio) {
      const ImageRect rect = padded_rect(image, options_.image_size);
      resize_image(image, full_rect(image), rect.height, rect.width, resize_options,
                   out + rect.top * row_step + rect.left * channels_, row_step);
    } else {
      resize_image(image,
                   options_.crop_to_aspect_ratio ? centered_rect(image, options_.image_size)
                                                 : full_rect(image),
                   height, width, resize_options, out, row_step);
    }
  }
  return examples_of(pictures, labels_.defined() ? labels_.index_select(0, numbers) : at::Tensor(),
                     {});
}

std::vector<Shape> datasets::ImageFolder::input_shapes() const {
  return {{options_.image_size[0], options_.image_size[1], channels_}};
}

datasets::ImageFolder image_dataset_from_directory(const std::string& directory,
                                                   const ImageFolderOptions& options) {
  return {directory, options};
}

std::pair<datasets::ImageFolder, datasets::ImageFolder> datasets::image_subsets_from_directory(
    const std::string& directory, const ImageFolderOptions& options) {
  check_both_subsets(directory, options.validation_split, options.subset);
  ImageFolderOptions training = options, validation = options;
  training.subset = "training";
  validation.subset = "validation";
  return {ImageFolder(directory, training), ImageFolder(directory, validation)};
}

}  // namespace tessera
