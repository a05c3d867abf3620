#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <tessera/datasets/files/download.hpp>
#include <tessera/datasets/files/imdb_files.hpp>
#include <tessera/framework/data/text_data.hpp>

namespace tessera {

namespace datasets {

/// The archive aclImdb_v1.tar.gz where its authors published it.
const DownloadSource& imdb_source();

}  // namespace datasets

/// What datasets::imdb() reads.
struct ImdbOptions {
  /// "train" or "test", 25,000 reviews each.
  std::string split = "train";
  /// The archive, the unpacked folder aclImdb, or a folder that has either, there or in its folder
  /// imdb. Empty: $TESSERA_DATA, else `tessera/imdb` in the cache folder ($XDG_CACHE_HOME,
  /// ~/.cache), where a download puts the archive, else procedural reviews.
  std::string path = {};
  /// How many of the first reviews; absent: all.
  std::optional<int64_t> size = std::nullopt;
  /// Where the archive is fetched from if it is nowhere to be found; absent, or with
  /// $TESSERA_OFFLINE set to anything but 0: nowhere.
  std::optional<DownloadSource> download = datasets::imdb_source();
  /// Whether procedural reviews may take the place of files that are nowhere to be found. Absent:
  /// they may, with a warning on stderr. False: that is a FileError.
  std::optional<bool> synthetic = std::nullopt;
};

/// Film reviews as they were written, UTF-8 and with their `<br />` (Keras:
/// text_dataset_from_directory of aclImdb): label 1 for praise, 0 for blame.
class ImdbReviews final : public TextData {
 public:
  /// What imdb() makes. `announcement`: as below.
  ImdbReviews(detail::LabelledTexts texts, bool synthetic, std::string announcement);

  int64_t size() const override { return texts_.size(); }
  /// Throws ShapeError unless 0 <= row < size().
  std::string_view text(int64_t row) const override;
  at::Tensor labels() const override { return labels_; }
  /// "imdb", or "imdb (synthetic)" for procedural reviews.
  std::string name() const override { return synthetic_ ? "imdb (synthetic)" : "imdb"; }

  /// Whether these are procedural reviews because no files were found.
  bool synthetic() const { return synthetic_; }
  /// One line for a run to begin with: what the data are and where they come from.
  const std::string& announcement() const { return announcement_; }

 private:
  detail::LabelledTexts texts_;
  at::Tensor labels_;
  bool synthetic_;
  std::string announcement_;
};

/// Both splits of IMDB.
struct ImdbSplits {
  std::shared_ptr<const ImdbReviews> train;
  std::shared_ptr<const ImdbReviews> test;
};

namespace datasets {

/// Reads the reviews of IMDB, from {train,test}/{neg,pos}/*.txt of the folder or of the archive,
/// which is not unpacked on disk; from the first place that has them, which may be a download into
/// the cache folder, tried once per process. Their order: files sorted by the bytes of their path,
/// row i is file (i * 7919) mod n (see review_of_row). A `path` without reviews is a FileError;
/// elsewhere procedural reviews, of the same number, take their place if `synthetic` lets them, and
/// say so, and why, on stderr, in name() and in announcement(). Throws FileError naming the file if
/// one is missing, corrupt or hostile; ConfigError for a wrong option or more reviews than there
/// are.
std::shared_ptr<const ImdbReviews> imdb(const ImdbOptions& options = {});

/// Both splits; an archive is read once. `options.split` does not count, `options.size` is that of
/// train. Throws as imdb() does.
ImdbSplits imdb_splits(const ImdbOptions& options = {},
                       std::optional<int64_t> test_size = std::nullopt);

}  // namespace datasets
}  // namespace tessera
