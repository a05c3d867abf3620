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

/// The archive of the binary version of CIFAR-10 where its authors published it.
const DownloadSource& cifar10_source();
/// The archive of the binary version of CIFAR-100 where its authors published it.
const DownloadSource& cifar100_source();

}  // namespace datasets

/// What datasets::cifar10() reads.
struct Cifar10Options {
  /// The archive cifar-10-binary.tar.gz, the unpacked folder cifar-10-batches-bin, or a folder that
  /// has either. Empty: $TESSERA_DATA, else `tessera/cifar10` in the cache folder ($XDG_CACHE_HOME,
  /// ~/.cache), where a download puts the archive.
  std::string path = {};
  /// "train" (50,000 images) or "test" (10,000).
  std::string split = "train";
  /// How many of the first images; absent: all.
  std::optional<int64_t> size = std::nullopt;
  /// Where the archive is fetched from if it is nowhere to be found; absent, or with
  /// $TESSERA_OFFLINE set to anything but 0: nowhere.
  std::optional<DownloadSource> download = datasets::cifar10_source();
};

/// What datasets::cifar100() reads.
struct Cifar100Options {
  /// The archive cifar-100-binary.tar.gz, the unpacked folder cifar-100-binary, or a folder that
  /// has either. Empty: $TESSERA_DATA, else `tessera/cifar100` in the cache folder.
  std::string path = {};
  /// "train" (50,000 images) or "test" (10,000).
  std::string split = "train";
  /// "fine" (100 classes) or "coarse" (20).
  std::string label_mode = "fine";
  /// How many of the first images; absent: all.
  std::optional<int64_t> size = std::nullopt;
  /// Where the archive is fetched from if it is nowhere to be found; absent, or with
  /// $TESSERA_OFFLINE set to anything but 0: nowhere.
  std::optional<DownloadSource> download = datasets::cifar100_source();
};

namespace datasets {

/// Small pictures in colours (keras.datasets.cifar10, cifar100): x (n, 32, 32, 3) in [0, 1], the
/// stored byte divided by 255; y the class, int64 (n). Kept as bytes in memory; copies share them.
class CifarDataset final : public Dataset {
 public:
  /// `bytes` with pictures and classes as uint8.
  explicit CifarDataset(TensorDataset bytes) : bytes_(std::move(bytes)) {}

  int64_t size() const override { return bytes_.size(); }
  Examples get(std::span<const int64_t> rows) const override;
  std::string name() const override { return bytes_.name(); }
  std::vector<Shape> input_shapes() const override { return bytes_.input_shapes(); }

 private:
  TensorDataset bytes_;
};

/// Reads the binary version of CIFAR-10, from the folder or from the archive, which is not unpacked
/// on disk. Throws FileError naming the file, and where to put it, if there is none or one that is
/// corrupt or hostile; ConfigError for a wrong option or more images than there are.
CifarDataset cifar10(const Cifar10Options& options = {});

/// Reads the binary version of CIFAR-100, as cifar10() does.
CifarDataset cifar100(const Cifar100Options& options = {});

}  // namespace datasets
}  // namespace tessera
