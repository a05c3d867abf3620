#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/datasets/files/download.hpp>
#include <tessera/framework/data/tensor_dataset.hpp>

namespace tessera {

namespace datasets {

/// Returns a mirror of the four gzip files of MNIST as first published.
const DownloadSource& mnist_source();
/// Returns the authors' URLs of the four gzip files of Fashion-MNIST.
const DownloadSource& fashion_mnist_source();

}  // namespace datasets

/// The options of datasets::mnist().
struct MnistOptions {
  /// Folder with the files, or with a sub-folder `mnist` that has them. If empty, these are tried
  /// in order: $TESSERA_DATA, `tessera/mnist` in the cache folder ($XDG_CACHE_HOME, ~/.cache), a
  /// download to there, procedural digits.
  std::string data_dir = {};
  /// "train" (60,000 images) or "test" (10,000).
  std::string split = "train";
  /// Number of images to keep, from the first on (default: all).
  std::optional<int64_t> size = std::nullopt;
  /// Whether images are (n, 784) instead of (n, 28, 28).
  bool flatten = false;
  /// dtype of the images: float32 or float64.
  at::ScalarType dtype = at::kFloat;
  /// Source to download the files from if they are not found. No download if absent, or if
  /// $TESSERA_OFFLINE is set to anything but 0.
  std::optional<DownloadSource> download = datasets::mnist_source();
  /// Whether procedural digits replace files that are not found: true replaces silently, false
  /// throws FileError, absent (default) replaces with a warning on stderr.
  std::optional<bool> synthetic = std::nullopt;
};

/// The options of datasets::fashion_mnist().
struct FashionMnistOptions {
  /// Folder with the files, or with a sub-folder `fashion_mnist` that has them. If empty, these are
  /// tried in order: `fashion_mnist` in $TESSERA_DATA, `tessera/fashion_mnist` in the cache folder
  /// ($XDG_CACHE_HOME, ~/.cache), a download to there.
  std::string data_dir = {};
  /// "train" (60,000 images) or "test" (10,000).
  std::string split = "train";
  /// Number of images to keep, from the first on (default: all).
  std::optional<int64_t> size = std::nullopt;
  /// Whether images are (n, 784) instead of (n, 28, 28).
  bool flatten = false;
  /// dtype of the images: float32 or float64.
  at::ScalarType dtype = at::kFloat;
  /// Source to download the files from if they are not found. No download if absent, or if
  /// $TESSERA_OFFLINE is set to anything but 0.
  std::optional<DownloadSource> download = datasets::fashion_mnist_source();
};

/// Handwritten digits (keras.datasets.mnist): x is in [0, 1], the stored byte divided by 255; y is
/// the digit, int64. Stored as bytes in memory, which copies share.
class MnistDataset final : public Dataset {
 public:
  /// Used by mnist(). `bytes` holds images and labels as uint8.
  MnistDataset(TensorDataset bytes, at::ScalarType dtype, bool synthetic, std::string announcement);

  int64_t size() const override { return bytes_.size(); }
  Examples get(std::span<const int64_t> rows) const override;
  bool concurrent() const override { return true; }
  /// "mnist", or "mnist (synthetic)" for procedural digits.
  std::string name() const override { return bytes_.name(); }
  std::vector<Shape> input_shapes() const override { return bytes_.input_shapes(); }

  /// Whether these are procedural digits, made because no files were found.
  bool synthetic() const { return synthetic_; }
  /// Returns one line to print at the start of a run: what the data are and where they come from.
  const std::string& announcement() const { return announcement_; }

 private:
  TensorDataset bytes_;
  at::ScalarType dtype_;
  bool synthetic_;
  std::string announcement_;
};

namespace datasets {

/// Reads the IDX files of MNIST, plain or gzip (`train-images-idx3-ubyte`, `.gz`, ...), from the
/// first location that has any of them; a download into the cache folder is tried once per process.
///
/// If `data_dir` is empty and no location has the files, procedural digits of the same number and
/// shape replace them if `synthetic` allows it; stderr, name() and announcement() say so, and why.
/// Throws FileError naming the file if `data_dir` has no files, or if a file is missing, corrupt,
/// or does not hold images of 28 x 28 and as many labels in 0..9; ConfigError for an invalid option
/// or a `size` above the number of images.
MnistDataset mnist(const MnistOptions& options = {});

/// Reads Fashion-MNIST (keras.datasets.fashion_mnist): images of clothing, in files of MNIST's
/// format. No procedural data replace missing files: the FileError says where to put them.
/// Throws as mnist() does.
MnistDataset fashion_mnist(const FashionMnistOptions& options = {});

}  // namespace datasets
}  // namespace tessera
