#include <tessera/datasets/imdb.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/datasets/files/dataset_cache.hpp>
#include <tessera/datasets/files/synthetic_reviews.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/random.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int64_t split_size = 25000;
constexpr Seed review_seed{1879, 48};

/// A split to read.
struct Request {
  std::string split;
  std::optional<int64_t> size;
};

/// Returns the number of the first procedural review of a split: no review is in both splits.
int64_t first_synthetic(const std::string& split) { return split == "train" ? 0 : split_size; }

void check_request(const Request& request) {
  if (request.split != "train" && request.split != "test") {
    throw ConfigError("imdb", R"(split is "train" or "test")", in_quotes(request.split),
                      "name one of them");
  }
  if (request.size && *request.size < 1) {
    throw ConfigError("imdb", "size is at least 1", str(*request.size),
                      "leave it out for all reviews");
  }
}

/// Returns how many of the available reviews to take. Throws ConfigError if there are too few.
int64_t checked_size(const Request& request, int64_t available) {
  const int64_t size = request.size.value_or(available);
  if (size > available) {
    throw ConfigError("imdb " + request.split,
                      str("size is at most ", available, ", the reviews there are"), str(size),
                      "ask for fewer, or leave it out for all");
  }
  return size;
}

/// Returns the archive or folder to read from; empty if procedural reviews replace IMDB, with the
/// reason in `failure` if a download was tried.
std::string choose_path(const ImdbOptions& options, std::string& failure) {
  if (!options.path.empty()) {
    const std::string found = find_reviews(options.path);
    if (!found.empty()) return found;
    throw FileError(options.path,
                    "the data folder or its folder imdb has aclImdb_v1.tar.gz or the folder "
                    "aclImdb",
                    exists(options.path) ? "neither there" : "no such folder or file",
                    "name the archive or the folder of the reviews");
  }
  for (const std::string& folder : data_folders("imdb")) {
    const std::string found = find_reviews(folder);
    if (!found.empty()) return found;
  }
  const std::string cache = data_cache("imdb");
  if (!options.download || offline() || cache.empty()) return "";
  failure = try_download(*options.download, cache);
  return failure.empty() ? find_reviews(cache) : "";
}

std::string reviews_announcement(int64_t rows, const Request& request, const std::string& failure) {
  const std::vector<std::string> folders = data_folders("imdb");
  return str("imdb (synthetic): ", rows, " procedural ", request.split,
             " reviews, as no files were found in ",
             folders.empty() ? "$TESSERA_DATA" : join(folders, ", "),
             "; name the folder of the IMDB files with --data-dir or $TESSERA_DATA",
             failure.empty() ? "" : ". The download failed: " + failure);
}

std::shared_ptr<const ImdbReviews> synthetic(const ImdbOptions& options, const Request& request,
                                             const std::string& failure) {
  const int64_t rows = checked_size(request, split_size);
  const std::string announcement = reviews_announcement(rows, request, failure);
  allow_synthetic("imdb", options.synthetic, announcement);
  return std::make_shared<ImdbReviews>(
      synthetic_reviews(rows, review_seed, first_synthetic(request.split)), true, announcement);
}

std::vector<std::shared_ptr<const ImdbReviews>> read_splits(const ImdbOptions& options,
                                                            std::span<const Request> requests) {
  std::vector<std::string> splits;
  for (const Request& request : requests) {
    check_request(request);
    splits.push_back(request.split);
  }
  std::string failure;
  const std::string path = choose_path(options, failure);
  std::vector<LabelledTexts> texts;
  if (!path.empty()) texts = read_reviews(path, splits);
  std::vector<std::shared_ptr<const ImdbReviews>> result;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    if (path.empty()) {
      result.push_back(synthetic(options, request, failure));
      continue;
    }
    const int64_t rows = checked_size(request, texts[i].size());
    texts[i].keep(rows);
    result.push_back(std::make_shared<ImdbReviews>(
        std::move(texts[i]), false,
        str("imdb: ", rows, " ", request.split, " reviews from ", path)));
  }
  return result;
}

}  // namespace

const DownloadSource& datasets::imdb_source() {
  static const DownloadSource source{
      "https://ai.stanford.edu/~amaas/data/sentiment",
      {{"aclImdb_v1.tar.gz", 84125825,
        "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe"}}};
  return source;
}

ImdbReviews::ImdbReviews(LabelledTexts texts, bool synthetic, std::string announcement)
    : texts_(std::move(texts)), synthetic_(synthetic), announcement_(std::move(announcement)) {
  labels_ = at::empty({texts_.size()}, at::kLong);
  std::copy(texts_.labels.begin(), texts_.labels.end(), labels_.data_ptr<int64_t>());
}

std::string_view ImdbReviews::text(int64_t row) const {
  if (row >= 0 && row < size()) return texts_.text(row);
  throw ShapeError(name(), str("a row is in [0, ", size(), ")"), str(row), "ask for one of them");
}

std::shared_ptr<const ImdbReviews> datasets::imdb(const ImdbOptions& options) {
  const Request request{options.split, options.size};
  return read_splits(options, std::span(&request, 1))[0];
}

ImdbSplits datasets::imdb_splits(const ImdbOptions& options, std::optional<int64_t> test_size) {
  const std::array<Request, 2> requests{Request{"train", options.size}, Request{"test", test_size}};
  const auto read = read_splits(options, requests);
  return {read[0], read[1]};
}

}  // namespace tessera
