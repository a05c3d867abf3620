#include <tessera/datasets/files/imdb_files.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include <tessera/datasets/files/archive.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

constexpr int64_t stride = 7919;
constexpr int64_t other_stride = 7927;
constexpr uint64_t max_files = 1'000'000;
static_assert(max_files < uint64_t{stride} * other_stride, "one of them is coprime to any count");
constexpr uint64_t max_review_bytes = uint64_t{1} << 20;
constexpr const char* archive_name = "aclImdb_v1.tar.gz";
constexpr const char* archive_folder = "aclImdb/";
constexpr std::array<const char*, 2> classes{"neg", "pos"};

/// A review: its path, split and label, and its interval of the bytes that were read.
struct ReviewFile {
  std::string path;
  size_t split;
  uint8_t label;
  uint64_t begin;
  uint64_t end;
};

/// Collects reviews in any order and sorts them.
class Collection {
 public:
  Collection(std::string source, std::span<const std::string> splits)
      : source_(std::move(source)), splits_(splits) {}

  /// Returns the split and label of a review's path; nothing for other files.
  std::optional<ReviewFile> parse(std::string_view path) const {
    if (path.starts_with(archive_folder)) path.remove_prefix(std::string(archive_folder).size());
    for (size_t split = 0; split < splits_.size(); ++split) {
      for (uint8_t label = 0; label < classes.size(); ++label) {
        const std::string folder = splits_[split] + "/" + classes[label] + "/";
        if (!path.starts_with(folder) || !path.ends_with(".txt")) continue;
        if (path.find('/', folder.size()) != std::string_view::npos) continue;
        return ReviewFile{std::string(path), split, label, 0, 0};
      }
    }
    return std::nullopt;
  }

  void add(std::string_view path, std::string_view text) {
    std::optional<ReviewFile> file = parse(path);
    if (!file) return;
    file->begin = bytes_.size();
    bytes_ += text;
    file->end = bytes_.size();
    files_.push_back(*std::move(file));
  }

  std::vector<LabelledTexts> in_order() {
    std::sort(files_.begin(), files_.end(),
              [](const ReviewFile& a, const ReviewFile& b) { return a.path < b.path; });
    const auto twice = std::adjacent_find(
        files_.begin(), files_.end(),
        [](const ReviewFile& a, const ReviewFile& b) { return a.path == b.path; });
    if (twice != files_.end()) {
      throw FileError(source_, "a review is there once", twice->path + " twice",
                      str("keep it either in ", archive_folder, " or outside"));
    }
    std::vector<LabelledTexts> all;
    for (size_t split = 0; split < splits_.size(); ++split) all.push_back(split_in_order(split));
    return all;
  }

 private:
  LabelledTexts split_in_order(size_t split) const {
    std::vector<const ReviewFile*> files;
    std::array<int64_t, classes.size()> counts{};
    uint64_t bytes = 0;
    for (const ReviewFile& file : files_) {
      if (file.split != split) continue;
      files.push_back(&file);
      ++counts[file.label];
      bytes += file.end - file.begin;
    }
    for (size_t label = 0; label < counts.size(); ++label) {
      if (counts[label] > 0) continue;
      throw FileError(source_,
                      str("the reviews of IMDB are in ", splits_[split], "/neg/*.txt and ",
                          splits_[split], "/pos/*.txt"),
                      str("none in ", splits_[split], "/", classes[label]),
                      str("name the folder aclImdb or the archive ", archive_name));
    }
    LabelledTexts texts;
    texts.bytes.reserve(bytes);
    const auto n = static_cast<int64_t>(files.size());
    for (int64_t row = 0; row < n; ++row) {
      const ReviewFile& file = *files[static_cast<size_t>(review_of_row(row, n))];
      texts.add(std::string_view(bytes_).substr(file.begin, file.end - file.begin), file.label);
    }
    return texts;
  }

  std::string source_;
  std::span<const std::string> splits_;
  std::string bytes_;
  std::vector<ReviewFile> files_;
};

/// Reads a review's file into `buffer`, which must be one byte larger than the largest review.
std::string_view read_review(const std::string& path, std::span<char> buffer) {
  InputFile file(path);
  const size_t count = file.read(std::as_writable_bytes(buffer));
  if (count < buffer.size()) return {buffer.data(), count};
  throw FileError(path, str("a review has at most ", max_review_bytes, " bytes"), "more",
                  "name the folder of the reviews");
}

void read_folder(const std::string& root, std::span<const std::string> splits, Collection& out) {
  std::vector<char> buffer(max_review_bytes + 1);
  uint64_t count = 0;
  for (const std::string& split : splits) {
    for (const char* name : classes) {
      const std::string inner = split + "/" + name + "/";
      std::error_code error;
      fs::directory_iterator files(root + "/" + inner, error);
      for (; !error && files != fs::directory_iterator(); files.increment(error)) {
        const std::string path = inner + files->path().filename().string();
        if (!out.parse(path)) continue;
        if (++count > max_files) {
          throw FileError(root, str("a data set has at most ", max_files, " files"), "more",
                          "name the folder of the reviews");
        }
        out.add(path, read_review(root + "/" + path, buffer));
      }
      if (!error || error == std::errc::no_such_file_or_directory) continue;
      throw FileError(root + "/" + inner, "the folder must be readable", error.message(),
                      "check its permissions");
    }
  }
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_reviews(const std::string& folder) {
  for (const char* split : {"/train/", "/test/"}) {
    for (const char* name : classes) {
      if (is_folder(folder + split + name)) return true;
    }
  }
  return false;
}

}  // namespace

std::string_view LabelledTexts::text(int64_t row) const {
  const auto i = static_cast<size_t>(row);
  const uint64_t begin = i == 0 ? 0 : ends[i - 1];
  return std::string_view(bytes).substr(begin, ends[i] - begin);
}

void LabelledTexts::add(std::string_view text, uint8_t label) {
  bytes += text;
  ends.push_back(bytes.size());
  labels.push_back(label);
}

void LabelledTexts::keep(int64_t rows) {
  const auto count = static_cast<size_t>(rows);
  if (count >= ends.size()) return;
  bytes.resize(count == 0 ? 0 : ends[count - 1]);
  bytes.shrink_to_fit();
  ends.resize(count);
  labels.resize(count);
}

int64_t review_of_row(int64_t row, int64_t n) {
  return row * (n % stride == 0 ? other_stride : stride) % n;
}

std::string find_reviews(const std::string& path) {
  if (exists(path) && !is_folder(path)) return path;
  for (const char* inner : {"", "/aclImdb", "/imdb", "/imdb/aclImdb"}) {
    if (has_reviews(path + inner)) return path + inner;
  }
  for (const char* inner : {"/", "/imdb/"}) {
    if (exists(path + inner + archive_name)) return path + inner + archive_name;
  }
  return "";
}

std::vector<LabelledTexts> read_reviews(const std::string& path,
                                        std::span<const std::string> splits) {
  Collection collection(path, splits);
  if (is_folder(path)) {
    read_folder(path, splits, collection);
  } else {
    read_archive(
        path, [&](std::string_view name) { return collection.parse(name).has_value(); },
        [&](std::string_view name, std::string_view text) { collection.add(name, text); },
        {.file_bytes = max_review_bytes, .entries = max_files});
  }
  return collection.in_order();
}

}  // namespace tessera::detail
