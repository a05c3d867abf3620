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

/// Returns the authors' URL of the archive aclImdb_v1.tar.gz.
const DownloadSource& imdb_source();

}  // namespace datasets

/// The options of datasets::imdb().
struct ImdbOptions {
  /// "train" or "test", 25,000 reviews each.
  std::string split = "train";
  /// The archive, the unpacked folder aclImdb, or a folder that contains either, directly or in a
  /// sub-folder imdb. If empty, these are tried in order: $TESSERA_DATA, `tessera/imdb` in the
  /// cache folder ($XDG_CACHE_HOME, ~/.cache), a download of the archive to there, procedural
  /// reviews.
  std::string path = {};
  /// Number of reviews to keep, from the first on (default: all).
  std::optional<int64_t> size = std::nullopt;
  /// Source to download the archive from if it is not found. No download if absent, or if
  /// $TESSERA_OFFLINE is set to anything but 0.
  std::optional<DownloadSource> download = datasets::imdb_source();
  /// Whether procedural reviews replace files that are not found: true replaces silently, false
  /// throws FileError, absent (default) replaces with a warning on stderr.
  std::optional<bool> synthetic = std::nullopt;
};

/// The IMDB film reviews, unprocessed: UTF-8 with `<br />` (Keras: text_dataset_from_directory of
/// aclImdb). Label 1 is positive, 0 negative.
class ImdbReviews final : public TextData {
 public:
  /// Used by imdb().
  ImdbReviews(detail::LabelledTexts texts, bool synthetic, std::string announcement);

  int64_t size() const override { return texts_.size(); }
  /// Throws ShapeError unless 0 <= row < size().
  std::string_view text(int64_t row) const override;
  at::Tensor labels() const override { return labels_; }
  /// "imdb", or "imdb (synthetic)" for procedural reviews.
  std::string name() const override { return synthetic_ ? "imdb (synthetic)" : "imdb"; }

  /// Whether these are procedural reviews, made because no files were found.
  bool synthetic() const { return synthetic_; }
  /// Returns one line to print at the start of a run: what the data are and where they come from.
  const std::string& announcement() const { return announcement_; }

 private:
  detail::LabelledTexts texts_;
  at::Tensor labels_;
  bool synthetic_;
  std::string announcement_;
};

/// The two splits of IMDB.
struct ImdbSplits {
  std::shared_ptr<const ImdbReviews> train;
  std::shared_ptr<const ImdbReviews> test;
};

namespace datasets {

/// Reads the reviews of IMDB from {train,test}/{neg,pos}/*.txt of the folder or of the archive,
/// which is not unpacked on disk. Uses the first location that has them; a download into the cache
/// folder is tried once per process. With the files sorted by the bytes of their paths, row i is
/// file (i * 7919) mod n (see review_of_row).
///
/// If `path` is empty and no location has reviews, as many procedural ones replace them if
/// `synthetic` allows it; stderr, name() and announcement() say so, and why. Throws FileError
/// naming the file if `path` has no reviews, or if a file is missing, corrupt or malicious;
/// ConfigError for an invalid option or a `size` above the number of reviews.
std::shared_ptr<const ImdbReviews> imdb(const ImdbOptions& options = {});

/// Reads both splits, with one pass over an archive. `options.split` is ignored; `options.size` is
/// that of train. Throws as imdb() does.
ImdbSplits imdb_splits(const ImdbOptions& options = {},
                       std::optional<int64_t> test_size = std::nullopt);

}  // namespace datasets
}  // namespace tessera
