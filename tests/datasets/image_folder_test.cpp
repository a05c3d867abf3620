#include <tessera/datasets/image_folder.hpp>

#include <filesystem>
#include <future>

#include <ATen/ATen.h>

#include <tessera/datasets/read_array.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace image_folder_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
namespace fs = std::filesystem;

namespace {

fs::path picture(const std::string& name) { return test::golden_path("pictures/" + name); }

at::Tensor expected(const std::string& name) {
  return datasets::load_npz(picture("pixels.npz"), name).to(at::kFloat);
}

/// Returns the largest difference between two pictures of the same shape.
double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return 1e9;
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// Writes classes "a" and "b" with `count` pictures each, every picture in one shade of grey.
void write_classes(const fs::path& folder, int count) {
  for (int i = 0; i < 2 * count; ++i) {
    const std::string name = i < count ? "a" : "b";
    fs::create_directories(folder / name);
    save_img(folder / name / str(10 + i, ".png"), at::full({4, 6, 3}, i, at::kByte),
             {.scale = false});
  }
}

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("decoded pixels are within 2 of 255 of Pillow's") {
  const struct {
    const char* name;
    const char* mode;
    const char* color_mode;
  } cases[] = {{"photo.jpg", "RGB", "rgb"},        {"progressive.jpg", "RGB", "rgb"},
               {"grey.jpg", "RGB", "rgb"},         {"inks.jpg", "RGB", "rgb"},
               {"colours.png", "RGB", "rgb"},      {"bits.png", "RGB", "rgb"},
               {"palette.png", "RGB", "rgb"},      {"lossy.webp", "RGB", "rgb"},
               {"photo.jpg", "L", "grayscale"},    {"inks.jpg", "L", "grayscale"},
               {"colours.png", "L", "grayscale"},  {"grey.jpg", "L", "grayscale"},
               {"palette.png", "L", "grayscale"},  {"alpha.png", "RGBA", "rgba"},
               {"grey_alpha.png", "RGBA", "rgba"}, {"lossless.webp", "RGBA", "rgba"},
               {"lossy.webp", "L", "grayscale"},   {"bits.png", "L", "grayscale"}};
  for (const auto& one : cases) {
    CAPTURE(one.name, one.mode);
    std::string key = str(one.name, "_", one.mode);
    std::replace(key.begin(), key.end(), '.', '_');
    at::Tensor pixels = expected(key);
    if (pixels.dim() == 2) pixels = pixels.unsqueeze(2);
    const at::Tensor got = load_img(picture(one.name), {.color_mode = one.color_mode});
    CHECK(got.scalar_type() == at::kByte);
    CHECK(largest_difference(got, pixels) <= 2);
  }
}

TEST_CASE("subset \"both\" of an image folder equals two calls") {
  const test::TempFolder folder;
  write_classes(folder.path(), 5);
  ImageFolderOptions options{.image_size = {4, 6}, .seed = 5, .validation_split = 0.3};
  const auto [train, validation] = datasets::image_subsets_from_directory(folder.path(), options);
  options.subset = "both";
  CHECK(datasets::image_subsets_from_directory(folder.path(), options).first.file_paths() ==
        train.file_paths());
  CHECK_THAT(test::error_line([&] { image_dataset_from_directory(folder.path(), options); }),
             Contains("call datasets::..._subsets_from_directory"));
  for (const auto& [images, subset] :
       {std::pair(&train, "training"), {&validation, "validation"}}) {
    options.subset = subset;
    const auto alone = image_dataset_from_directory(folder.path(), options);
    CHECK(images->file_paths() == alone.file_paths());
    const Examples rows = images->get(numbers(images->size())),
                   own = alone.get(numbers(alone.size()));
    CHECK(difference(rows.x[0], own.x[0]) == "");
    CHECK(difference(rows.y[0], own.y[0]) == "");
  }
  CHECK(train.size() == 7);
  CHECK(validation.size() == 3);
}

TEST_CASE("load_img resizes as Pillow") {
  for (const std::string how : {"nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"}) {
    CAPTURE(how);
    const at::Tensor got =
        load_img(picture("photo.jpg"), {.target_size = {{31, 24}}, .interpolation = how});
    CHECK(largest_difference(got, expected("pillow_" + how)) <= 2);
  }
  const at::Tensor whole = load_img(picture("photo.jpg"));
  // The middle 23 columns of 37, unchanged.
  CHECK(difference(
            load_img(picture("photo.jpg"), {.target_size = {{23, 23}}, .keep_aspect_ratio = true}),
            whole.narrow(1, 7, 23)) == "");
}

TEST_CASE("load_img converts colours to grey, a folder takes the luminance that a JPEG stores") {
  const test::TempFolder folder;
  fs::create_directories(folder / "a");
  fs::copy_file(picture("photo.jpg"), folder / "a/photo.jpg");
  const at::Tensor stored = expected("photo_jpg_stored_L");
  const auto data = image_dataset_from_directory(
      folder.path(), {.color_mode = "grayscale", .image_size = {stored.size(0), stored.size(1)}});
  CHECK(largest_difference(data.get(std::vector<int64_t>{0}).x[0].squeeze(0).squeeze(2), stored) <=
        2);
  const at::Tensor rgb = load_img(picture("photo.jpg")).to(at::kDouble);
  const at::Tensor grey = rgb.matmul(at::tensor({0.299, 0.587, 0.114}, at::kDouble));
  const at::Tensor got = load_img(picture("photo.jpg"), {.color_mode = "grayscale"}).squeeze(2);
  CHECK(largest_difference(got, grey) <= 0.501);
  CHECK(largest_difference(got, stored) > 2);
}

TEST_CASE("rows of a folder of pictures may be read from several threads at a time") {
  const test::TempFolder folder;
  write_classes(folder.path(), 4);
  const auto data = image_dataset_from_directory(folder.path(), {.image_size = {8, 8}});
  CHECK(data.concurrent());
  const at::Tensor all = data.get(numbers(8)).x[0];
  std::vector<std::future<bool>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(
        std::async(std::launch::async, [&] { return data.get(numbers(8)).x[0].equal(all); }));
  }
  for (std::future<bool>& other : others) CHECK(other.get());
}

TEST_CASE("pictures of a folder are resized as by tf.image.resize") {
  const test::TempFolder folder;
  fs::create_directories(folder / "a");
  fs::copy_file(picture("colours.png"), folder / "a/colours.png");
  const auto get = [&](ImageFolderOptions options) {
    options.image_size = {31, 24};
    return image_dataset_from_directory(folder.path(), options)
        .get(std::vector<int64_t>{0})
        .x[0]
        .squeeze(0);
  };
  for (const std::string how : {"bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5",
                                "gaussian", "mitchellcubic"}) {
    CAPTURE(how);
    // The golden numbers have 16 bits.
    CHECK(largest_difference(get({.interpolation = how}), expected("tf_" + how)) <= 0.5);
  }
  CHECK(largest_difference(get({.crop_to_aspect_ratio = true}), expected("tf_crop")) <= 0.1);
  CHECK(largest_difference(get({.pad_to_aspect_ratio = true}), expected("tf_pad")) <= 0.1);
}

TEST_CASE("rows have Keras' order for a seed, with labels of each kind") {
  const test::TempFolder folder;
  write_classes(folder.path(), 15);
  for (const uint32_t seed : {0, 1337}) {
    const auto data =
        image_dataset_from_directory(folder.path(), {.image_size = {4, 6}, .seed = seed});
    CHECK(data.size() == 30);
    const Examples all = data.get(numbers(30));
    const at::Tensor order = expected(str("order_", seed));
    CHECK(difference(all.x[0].select(3, 0).select(2, 0).select(1, 0), order) == "");
    CHECK(difference(all.y[0], order.ge(15).to(at::kLong)) == "");
  }
  const auto sorted =
      image_dataset_from_directory(folder.path(), {.image_size = {2, 2}, .shuffle = false});
  CHECK(sorted.class_names() == std::vector<std::string>{"a", "b"});
  CHECK(sorted.input_shapes() == std::vector<Shape>{{2, 2, 3}});
  CHECK(sorted.file_paths()[16] == folder.path().string() + "/b/26.png");
  const Examples two = sorted.get(std::vector<int64_t>{20, 3});
  CHECK(difference(two.y[0], at::tensor({1, 0}, at::kLong)) == "");
  CHECK(difference(two.x[0][0], at::full({2, 2, 3}, 20.0f)) == "");
  const auto labels = [&](const std::optional<std::string>& mode) {
    return image_dataset_from_directory(
               folder.path(), {.label_mode = mode, .image_size = {2, 2}, .shuffle = false})
        .get(std::vector<int64_t>{0, 29})
        .y;
  };
  CHECK(difference(labels("binary")[0], at::tensor({0.0f, 1.0f}).reshape({2, 1})) == "");
  CHECK(difference(labels("categorical")[0], at::eye(2)) == "");
  CHECK(labels(std::nullopt).empty());
}

TEST_CASE("wrong options and pictures are errors that name them") {
  const test::TempFolder folder;
  write_classes(folder.path(), 2);
  const auto error = [&](const ImageFolderOptions& options) {
    return test::error_line(
        [&] { image_dataset_from_directory(folder.path(), options).get(numbers(4)); });
  };
  CHECK(error({}) == "no error");
  CHECK_THAT(error({.label_mode = "ints"}),
             Contains("label_mode is one of") && Contains("Received: \"ints\""));
  CHECK_THAT(error({.class_names = {"a"}, .color_mode = "bgr"}), Contains("color_mode is one of"));
  CHECK_THAT(error({.label_mode = "binary", .class_names = {"a"}}), Contains("two classes"));
  CHECK_THAT(error({.image_size = {0, 3}}), Contains("Received: 0 x 3."));
  CHECK_THAT(error({.interpolation = "linear"}), Contains("interpolation is one of"));
  CHECK_THAT(error({.crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}), Contains("both"));
  const auto data = image_dataset_from_directory(folder.path());
  CHECK_THAT(test::error_line([&] { data.get(std::vector<int64_t>{4}); }),
             Contains("a row is in [0, 4). Received: 4."));
  const std::string broken = folder / "b/13.png";
  const std::string bytes = test::read_file(broken);
  test::write_file(broken, bytes.substr(0, bytes.size() - 20));
  CHECK_THAT(error({}), Contains(broken + "] a whole PNG file."));
  fs::remove(broken);
  CHECK_THAT(test::error_line([&] { data.get(numbers(4)); }), Contains(broken + "]"));
  test::write_file(folder / "a/x.GIF", "GIF89a");
  CHECK_THAT(error({}), Contains("a/x.GIF] a whole GIF file."));
}

TEST_CASE("save_img scales as Keras") {
  const test::TempFolder folder;
  const std::string path = folder / "a.png";
  save_img(path, at::tensor({-1.0f, 0.0f, 3.0f}).reshape({1, 3, 1}));
  CHECK(difference(load_img(path, {.color_mode = "grayscale"}).flatten(),
                   at::tensor({0, 63, 255}, at::kByte)) == "");
  save_img(path, at::full({2, 2, 3}, 7));
  CHECK(load_img(path).max().item<int64_t>() == 0);
  CHECK_THAT(test::error_line([&] {
               save_img(path, at::zeros({2, 2}));
             }),
             Contains("a picture (height, width, 1, 3 or 4 channels). Received: (2, 2)."));
}

}  // namespace image_folder_test
