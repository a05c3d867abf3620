#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// Labelled texts in one contiguous buffer.
struct LabelledTexts {
  std::string bytes;
  /// End of each text in `bytes`.
  std::vector<uint64_t> ends;
  std::vector<uint8_t> labels;

  int64_t size() const { return static_cast<int64_t>(ends.size()); }
  /// Returns the text of a row in [0, size()), which is not checked.
  std::string_view text(int64_t row) const;
  void add(std::string_view text, uint8_t label);
  /// Drops all but the first `rows`, and frees their memory.
  void keep(int64_t rows);
};

/// Returns the index of the file that a row of a split is read from, with the n files sorted by the
/// bytes of their paths: (row * 7919) mod n, a fixed permutation that mixes the classes. If 7919
/// divides n, 7927, the next prime, replaces it, so that every file gets a row.
int64_t review_of_row(int64_t row, int64_t n);

/// Finds the reviews of IMDB at `path`: the folder that has train/pos or the like, which is `path`
/// or its sub-folder aclImdb, imdb or imdb/aclImdb; or else the archive aclImdb_v1.tar.gz in `path`
/// or in its sub-folder imdb; `path` itself if it is a file. Empty if none of these exists.
std::string find_reviews(const std::string& path);

/// Reads reviews from SPLIT/{neg,pos}/*.txt of a folder or tar archive (read once; with or without
/// aclImdb/ in front). Returns LabelledTexts for each of `splits`, in review_of_row's order; pos is
/// 1. All other files are skipped. Throws FileError naming the file, also for a split without a
/// file in neg or in pos, or a review of more than 1 MiB.
std::vector<LabelledTexts> read_reviews(const std::string& path,
                                        std::span<const std::string> splits);

}  // namespace tessera::detail
