#include <tessera/datasets/mnist.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/datasets/files/dataset_cache.hpp>
#include <tessera/datasets/files/synthetic_digits.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int64_t side = 28;
constexpr int64_t classes = 10;
constexpr uint64_t max_file_bytes = uint64_t{1} << 30;
constexpr Seed digit_seed{28, 28};

struct Split {
  const char* name;
  const char* images;
  const char* labels;
  /// Number of images in MNIST, and of procedural ones that replace it.
  int64_t size;
  /// Number of the first procedural image: no image is in both splits.
  int64_t first;
};

constexpr std::array<Split, 2> splits{
    Split{"train", "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 60000, 0},
    Split{"test", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 10000, 60000}};

const Split& find_split(const std::string& name, const std::string& where) {
  for (const Split& split : splits) {
    if (split.name == name) return split;
  }
  throw ConfigError(where, R"(split is "train" or "test")", in_quotes(name), "name one of them");
}

/// Returns the path of a file in a folder, plain or with .gz; empty if neither exists.
std::string find_file(const std::string& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    const std::string path = folder + "/" + name + ending;
    if (exists(path)) return path;
  }
  return "";
}

bool has_mnist(const std::string& folder) {
  return std::any_of(splits.begin(), splits.end(), [&](const Split& split) {
    return !find_file(folder, split.images).empty() || !find_file(folder, split.labels).empty();
  });
}

/// Returns `folder` or its sub-folder `name`, whichever has any of the files; empty if neither has.
std::string find_folder(const std::string& folder, const std::string& name = "mnist") {
  for (const std::string& candidate : {folder, folder + "/" + name}) {
    if (has_mnist(candidate)) return candidate;
  }
  return "";
}

/// Returns `data_dir` or its sub-folder `name`. Throws FileError if neither has any of the files.
std::string named_folder(const std::string& data_dir, const Split& split, const std::string& name) {
  const std::string folder = find_folder(data_dir, name);
  if (!folder.empty()) return folder;
  throw FileError(data_dir,
                  str("the data folder or its folder ", name, " has ", split.images, " or ",
                      split.images, ".gz"),
                  exists(data_dir) ? "neither there" : "no such folder",
                  "name the folder of the four files");
}

/// Returns the folder of Fashion-MNIST, downloaded if not found. Throws FileError without one.
std::string fashion_folder(const FashionMnistOptions& options, const Split& split) {
  const std::string name = "fashion_mnist";
  if (!options.data_dir.empty()) {
    const std::string inner = options.data_dir + "/" + name;
    return has_mnist(inner) ? inner : named_folder(options.data_dir, split, name);
  }
  // Not $TESSERA_DATA itself: files of these names there are MNIST's.
  std::vector<std::string> candidates;
  const std::string cache = data_cache(name);
  for (const std::string& folder : data_folders(name)) {
    candidates.push_back(folder == cache ? folder : folder + "/" + name);
    if (has_mnist(candidates.back())) return candidates.back();
  }
  std::string failure;
  if (options.download && !offline() && !cache.empty()) {
    failure = try_download(*options.download, cache);
    if (failure.empty()) return named_folder(cache, split, name);
  }
  throw FileError(
      name, "its files in " + (candidates.empty() ? "$TESSERA_DATA" : join(candidates, " or ")),
      "none of them" + (failure.empty() ? "" : ". The download failed: " + failure),
      str("put ", split.images, ".gz and the other files there, or name their folder by data_dir"));
}

/// Returns the folder to read from; empty if procedural digits replace MNIST, with the reason in
/// `failure` if a download was tried.
std::string choose_folder(const MnistOptions& options, const Split& split, std::string& failure) {
  if (!options.data_dir.empty()) return named_folder(options.data_dir, split, "mnist");
  for (const std::string& root : data_folders("mnist")) {
    const std::string folder = find_folder(root);
    if (!folder.empty()) return folder;
  }
  const std::string cache = data_cache("mnist");
  if (!options.download || offline() || cache.empty()) return "";
  failure = try_download(*options.download, cache);
  return failure.empty() ? find_folder(cache) : "";
}

std::string require_file(const std::string& folder, const std::string& name) {
  const std::string path = find_file(folder, name);
  if (!path.empty()) return path;
  throw FileError(folder, str("the data folder has ", name, " or ", name, ".gz"), "neither there",
                  "put all four files there");
}

void check_labels(const IdxArray& labels, const std::string& path) {
  const auto bad = std::find_if(labels.data.begin(), labels.data.end(),
                                [](uint8_t label) { return label >= classes; });
  if (bad == labels.data.end()) return;
  const auto row = bad - labels.data.begin();
  // The header before the first label has 8 bytes.
  throw FileError(str(path, ", byte ", row + 8), "labels are 0 to 9",
                  str(int{*bad}, " for image ", row), "get the file again");
}

LabelledImages read_files(const std::string& folder, const Split& split) {
  const std::string images_path = require_file(folder, split.images);
  const std::string labels_path = require_file(folder, split.labels);
  LabelledImages read{read_idx(images_path, max_file_bytes), read_idx(labels_path, max_file_bytes)};
  const Shape& shape = read.images.shape;
  if (shape.size() != 3 || shape[0] < 1 || shape[1] != side || shape[2] != side) {
    throw FileError(images_path, "images have the shape (n, 28, 28)", to_string(shape),
                    "get the file again");
  }
  if (read.labels.shape != Shape{shape[0]}) {
    throw FileError(labels_path,
                    str("one label for each of the ", shape[0], " images in ", images_path),
                    "shape " + to_string(read.labels.shape), "get both files again");
  }
  check_labels(read.labels, labels_path);
  return read;
}

void check_options(const MnistOptions& options, const std::string& where) {
  if (options.size && *options.size < 1) {
    throw ConfigError(where, "size is at least 1", str(*options.size),
                      "leave it out for all images");
  }
  if (options.dtype != at::kFloat && options.dtype != at::kDouble) {
    throw ConfigError(where, "dtype is float32 or float64", dtype_name(options.dtype),
                      "pass at::kFloat or at::kDouble");
  }
}

/// Returns how many of the available images to take. Throws ConfigError if there are too few.
int64_t checked_size(const MnistOptions& options, int64_t available, const std::string& where) {
  const int64_t size = options.size.value_or(available);
  if (size > available) {
    throw ConfigError(where + " " + options.split,
                      str("size is at most ", available, ", the images there are"), str(size),
                      "ask for fewer, or leave it out for all");
  }
  return size;
}

/// The first rows of an array, so that the rest need not stay in memory.
at::Tensor first_rows(const IdxArray& array, int64_t rows, const Shape& shape) {
  const at::Tensor result = at::empty(shape, at::kByte);
  const size_t row_bytes = array.data.size() / static_cast<size_t>(array.shape[0]);
  std::memcpy(result.data_ptr<uint8_t>(), array.data.data(), static_cast<size_t>(rows) * row_bytes);
  return result;
}

TensorDataset first_images(const LabelledImages& all, int64_t rows, bool flatten,
                           const std::string& name) {
  const Shape shape = flatten ? Shape{rows, side * side} : Shape{rows, side, side};
  return TensorDataset(first_rows(all.images, rows, shape), first_rows(all.labels, rows, {rows}),
                       name);
}

std::string digits_announcement(int64_t rows, const Split& split, const std::string& failure) {
  const std::vector<std::string> folders = data_folders("mnist");
  return str("mnist (synthetic): ", rows, " procedural ", split.name,
             " images, as no files were found in ",
             folders.empty() ? "$TESSERA_DATA" : join(folders, ", "),
             "; name the folder of the MNIST files with --data-dir or $TESSERA_DATA",
             failure.empty() ? "" : ". The download failed: " + failure);
}

}  // namespace

const DownloadSource& datasets::mnist_source() {
  static const DownloadSource source{
      "https://ossci-datasets.s3.amazonaws.com/mnist",
      {{"train-images-idx3-ubyte.gz", 9912422,
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
       {"train-labels-idx1-ubyte.gz", 28881,
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
       {"t10k-images-idx3-ubyte.gz", 1648877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
       {"t10k-labels-idx1-ubyte.gz", 4542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}};
  return source;
}

const DownloadSource& datasets::fashion_mnist_source() {
  static const DownloadSource source{
      "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
      {{"train-images-idx3-ubyte.gz", 26421880,
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
       {"train-labels-idx1-ubyte.gz", 29515,
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
       {"t10k-images-idx3-ubyte.gz", 4422102,
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
       {"t10k-labels-idx1-ubyte.gz", 5148,
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}};
  return source;
}

MnistDataset::MnistDataset(TensorDataset bytes, at::ScalarType dtype, bool synthetic,
                           std::string announcement)
    : bytes_(std::move(bytes)),
      dtype_(dtype),
      synthetic_(synthetic),
      announcement_(std::move(announcement)) {}

Examples MnistDataset::get(std::span<const int64_t> rows) const {
  Examples examples = bytes_.get(rows);
  examples.x[0] = examples.x[0].to(dtype_).div_(255);
  examples.y[0] = examples.y[0].to(at::kLong);
  return examples;
}

MnistDataset datasets::mnist(const MnistOptions& options) {
  check_options(options, "mnist");
  const Split& split = find_split(options.split, "mnist");
  std::string failure;
  const std::string folder = choose_folder(options, split, failure);
  if (!folder.empty()) {
    const LabelledImages all = read_files(folder, split);
    const int64_t rows = checked_size(options, all.images.shape[0], "mnist");
    return MnistDataset(first_images(all, rows, options.flatten, "mnist"), options.dtype, false,
                        str("mnist: ", rows, " ", split.name, " images from ", folder));
  }
  const int64_t rows = checked_size(options, split.size, "mnist");
  const std::string announcement = digits_announcement(rows, split, failure);
  allow_synthetic("mnist", options.synthetic, announcement);
  const LabelledImages drawn = synthetic_digits(rows, digit_seed, split.first);
  return MnistDataset(first_images(drawn, rows, options.flatten, "mnist (synthetic)"),
                      options.dtype, true, announcement);
}

MnistDataset datasets::fashion_mnist(const FashionMnistOptions& options) {
  const MnistOptions same{.split = options.split, .size = options.size, .dtype = options.dtype};
  check_options(same, "fashion_mnist");
  const Split& split = find_split(options.split, "fashion_mnist");
  const std::string folder = fashion_folder(options, split);
  const LabelledImages all = read_files(folder, split);
  const int64_t rows = checked_size(same, all.images.shape[0], "fashion_mnist");
  return MnistDataset(first_images(all, rows, options.flatten, "fashion_mnist"), options.dtype,
                      false,
                      str("fashion_mnist: ", rows, " ", split.name, " images from ", folder));
}

}  // namespace tessera
