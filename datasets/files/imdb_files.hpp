#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// Texts with a class number each, their bytes one after the other.
struct LabelledTexts {
  std::string bytes;
  /// Where each text ends in `bytes`.
  std::vector<uint64_t> ends;
  std::vector<uint8_t> labels;

  int64_t size() const { return static_cast<int64_t>(ends.size()); }
  /// Unchecked: 0 <= row < size().
  std::string_view text(int64_t row) const;
  void add(std::string_view text, uint8_t label);
  /// Keeps the first `rows`, and the memory that they need.
  void keep(int64_t rows);
};

/// The file that a split's row is read from, its files counted in the order of their paths' bytes:
/// (row * 7919) mod n, which mixes the classes, and always the same way. Where 7919 divides n,
/// 7927, the next prime, takes its place, so that every file has its row.
int64_t review_of_row(int64_t row, int64_t n);

/// Where the reviews of IMDB lie at `place`: the folder that has train/pos or the like, which is
/// `place`, or its folder aclImdb, imdb or imdb/aclImdb; else the archive aclImdb_v1.tar.gz there
/// or in imdb; `place` itself if it is a file. Empty if there is nothing of this.
std::string find_reviews(const std::string& place);

/// Reads reviews from the SPLIT/{neg,pos}/*.txt of a folder or tar archive (read once), there with
/// or without aclImdb/ in front, as LabelledTexts for each of `splits` in review_of_row's order;
/// pos is 1. All other files are passed over. Throws FileError naming the file, also for a split
/// without a file in neg or in pos, or a review of more than a MiB.
std::vector<LabelledTexts> read_reviews(const std::string& path,
                                        std::span<const std::string> splits);

}  // namespace tessera::detail
