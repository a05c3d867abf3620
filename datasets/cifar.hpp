#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/datasets/files/download.hpp>
#include <tessera/framework/data/tensor_dataset.hpp>

namespace tessera {

namespace datasets {

/// Returns the authors' URL of the archive of CIFAR-10, binary version.
const DownloadSource& cifar10_source();
/// Returns the authors' URL of the archive of CIFAR-100, binary version.
const DownloadSource& cifar100_source();

}  // namespace datasets

/// The options of datasets::cifar10().
struct Cifar10Options {
  /// The archive cifar-10-binary.tar.gz, the unpacked folder cifar-10-batches-bin, or a folder that
  /// contains either. If empty, these are tried in order: $TESSERA_DATA, `tessera/cifar10` in the
  /// cache folder ($XDG_CACHE_HOME, ~/.cache), a download of the archive to there.
  std::string path = {};
  /// "train" (50,000 images) or "test" (10,000).
  std::string split = "train";
  /// Number of images to keep, from the first on (default: all).
  std::optional<int64_t> size = std::nullopt;
  /// Source to download the archive from if it is not found. No download if absent, or if
  /// $TESSERA_OFFLINE is set to anything but 0.
  std::optional<DownloadSource> download = datasets::cifar10_source();
};

/// The options of datasets::cifar100().
struct Cifar100Options {
  /// The archive cifar-100-binary.tar.gz, the unpacked folder cifar-100-binary, or a folder that
  /// contains either. If empty, these are tried in order: $TESSERA_DATA, `tessera/cifar100` in the
  /// cache folder, a download of the archive to there.
  std::string path = {};
  /// "train" (50,000 images) or "test" (10,000).
  std::string split = "train";
  /// "fine" (100 classes) or "coarse" (20).
  std::string label_mode = "fine";
  /// Number of images to keep, from the first on (default: all).
  std::optional<int64_t> size = std::nullopt;
  /// Source to download the archive from if it is not found. No download if absent, or if
  /// $TESSERA_OFFLINE is set to anything but 0.
  std::optional<DownloadSource> download = datasets::cifar100_source();
};

namespace datasets {

/// Small colour images (keras.datasets.cifar10, cifar100): x is float32 (n, 32, 32, 3) in [0, 1],
/// the stored byte divided by 255; y is the class, int64 (n). Stored as bytes in memory, which
/// copies share.
class CifarDataset final : public Dataset {
 public:
  /// `bytes` holds images and classes as uint8.
  explicit CifarDataset(TensorDataset bytes) : bytes_(std::move(bytes)) {}

  int64_t size() const override { return bytes_.size(); }
  Examples get(std::span<const int64_t> rows) const override;
  bool concurrent() const override { return true; }
  std::string name() const override { return bytes_.name(); }
  std::vector<Shape> input_shapes() const override { return bytes_.input_shapes(); }

 private:
  TensorDataset bytes_;
};

/// Reads the binary version of CIFAR-10 from the folder or from the archive, which is not unpacked
/// on disk. Throws FileError naming the file, and where to put it, if it is missing, corrupt or
/// malicious; ConfigError for an invalid option or a `size` above the number of images.
CifarDataset cifar10(const Cifar10Options& options = {});

/// Reads the binary version of CIFAR-100, as cifar10() does.
CifarDataset cifar100(const Cifar100Options& options = {});

}  // namespace datasets
}  // namespace tessera
