#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/datasets/files/download.hpp>
#include <tessera/framework/data/tensor_dataset.hpp>

namespace tessera {

namespace datasets {

/// The four packed files of MNIST as first published, at a mirror.
const DownloadSource& mnist_source();
/// The four packed files of Fashion-MNIST, where its authors keep them.
const DownloadSource& fashion_mnist_source();

}  // namespace datasets

/// What datasets::mnist() reads.
struct MnistOptions {
  /// Folder with the files, or with a folder `mnist` that has them. Empty: $TESSERA_DATA, else
  /// `tessera/mnist` in the cache folder ($XDG_CACHE_HOME, ~/.cache), where a download puts them,
  /// else procedural digits.
  std::string data_dir = {};
  /// "train" (60,000 images) or "test" (10,000).
  std::string split = "train";
  /// How many of the first images; absent: all.
  std::optional<int64_t> size = std::nullopt;
  /// Images as (n, 784) instead of (n, 28, 28).
  bool flatten = false;
  /// float32 or float64.
  at::ScalarType dtype = at::kFloat;
  /// Where files that are nowhere to be found are fetched from; absent, or with $TESSERA_OFFLINE
  /// set to anything but 0: nowhere.
  std::optional<DownloadSource> download = datasets::mnist_source();
  /// Whether procedural digits may take the place of files that are nowhere to be found. Absent:
  /// they may, with a warning on stderr. False: that is a FileError.
  std::optional<bool> synthetic = std::nullopt;
};

/// What datasets::fashion_mnist() reads.
struct FashionMnistOptions {
  /// Folder with the files, or with a folder `fashion_mnist` that has them. Empty: the folder
  /// `fashion_mnist` in $TESSERA_DATA, else `tessera/fashion_mnist` in the cache folder
  /// ($XDG_CACHE_HOME, ~/.cache), where a download puts them.
  std::string data_dir = {};
  /// "train" (60,000 images) or "test" (10,000).
  std::string split = "train";
  /// How many of the first images; absent: all.
  std::optional<int64_t> size = std::nullopt;
  /// Images as (n, 784) instead of (n, 28, 28).
  bool flatten = false;
  /// float32 or float64.
  at::ScalarType dtype = at::kFloat;
  /// Where files that are nowhere to be found are fetched from; absent, or with $TESSERA_OFFLINE
  /// set to anything but 0: nowhere.
  std::optional<DownloadSource> download = datasets::fashion_mnist_source();
};

/// Handwritten digits (keras.datasets.mnist): x in [0, 1], the stored byte divided by 255; y the
/// digit, int64. Kept as bytes in memory; copies share them.
class MnistDataset final : public Dataset {
 public:
  /// What mnist() makes: `bytes` with images and labels as uint8. `announcement`: as below.
  MnistDataset(TensorDataset bytes, at::ScalarType dtype, bool synthetic, std::string announcement);

  int64_t size() const override { return bytes_.size(); }
  Examples get(std::span<const int64_t> rows) const override;
  bool concurrent() const override { return true; }
  /// "mnist", or "mnist (synthetic)" for procedural digits.
  std::string name() const override { return bytes_.name(); }
  std::vector<Shape> input_shapes() const override { return bytes_.input_shapes(); }

  /// Whether these are procedural digits because no files were found.
  bool synthetic() const { return synthetic_; }
  /// One line for a run to begin with: what the data are and where they come from.
  const std::string& announcement() const { return announcement_; }

 private:
  TensorDataset bytes_;
  at::ScalarType dtype_;
  bool synthetic_;
  std::string announcement_;
};

namespace datasets {

/// Reads the IDX files of MNIST, plain or gzip (`train-images-idx3-ubyte`, `.gz`, ...), from the
/// first place that has any of them, which may be a download into the cache folder, tried once per
/// process. A `data_dir` without them is a FileError; elsewhere procedural digits, of the same
/// number and shape, take their place if `synthetic` lets them, and say so, and why, on stderr, in
/// name() and in announcement().
/// Throws FileError naming the file if one is missing, corrupt, or does not hold images of 28 x 28
/// and as many labels in 0..9; ConfigError for a wrong option or more images than there are.
MnistDataset mnist(const MnistOptions& options = {});

/// Pieces of clothing in place of digits, in files of the same form (keras.datasets.fashion_mnist).
/// Nothing takes the place of missing files: that is a FileError, which says where to put them.
/// Throws as mnist() does.
MnistDataset fashion_mnist(const FashionMnistOptions& options = {});

}  // namespace datasets
}  // namespace tessera
