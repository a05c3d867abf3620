#include <tessera/datasets/text_folder.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/datasets/files/folder_index.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr uint64_t max_text_bytes = uint64_t{1} << 28;
constexpr std::array<std::string_view, 1> text_endings{".txt"};

/// Returns the first `bytes` bytes of a text, or fewer so that no UTF-8 character is split.
std::string_view utf8_prefix(std::string_view text, uint64_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<uint8_t>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

datasets::TextFolder::TextFolder(const std::string& directory, const TextFolderOptions& options)
    : directory_(directory) {
  if (options.max_length && *options.max_length < 1) {
    throw ConfigError(directory, "max_length is at least 1", std::to_string(*options.max_length),
                      "leave it out for whole texts");
  }
  const bool classes = options.labelled && options.labels.empty();
  FolderIndex index = index_folder(directory, {.endings = text_endings,
                                               .classes = classes,
                                               .class_names = options.class_names,
                                               .labels = options.labels,
                                               .shuffle = options.shuffle,
                                               .seed = options.seed,
                                               .validation_split = options.validation_split,
                                               .subset = options.subset,
                                               .follow_links = options.follow_links});
  paths_ = std::move(index.paths);
  for (const std::string& path : paths_) {
    const std::string text = read_file(path, max_text_bytes);
    bytes_ += options.max_length ? utf8_prefix(text, static_cast<uint64_t>(*options.max_length))
                                 : std::string_view(text);
    ends_.push_back(bytes_.size());
  }
  if (!options.labelled) return;
  class_names_ = std::move(index.class_names);
  labels_ = at::empty({std::ssize(index.labels)}, at::kLong);
  std::copy(index.labels.begin(), index.labels.end(), labels_.mutable_data_ptr<int64_t>());
}

std::string_view datasets::TextFolder::text(int64_t row) const {
  if (row < 0 || row >= size()) {
    throw ShapeError(directory_, str("a row is in [0, ", size(), ")"), str(row),
                     "ask for one of them");
  }
  const auto i = static_cast<size_t>(row);
  const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(bytes_).substr(begin, ends_[i] - begin);
}

std::shared_ptr<datasets::TextFolder> text_dataset_from_directory(
    const std::string& directory, const TextFolderOptions& options) {
  return std::make_shared<datasets::TextFolder>(directory, options);
}

std::pair<std::shared_ptr<datasets::TextFolder>, std::shared_ptr<datasets::TextFolder>>
datasets::text_subsets_from_directory(const std::string& directory,
                                      const TextFolderOptions& options) {
  check_both_subsets(directory, options.validation_split, options.subset);
  TextFolderOptions training = options, validation = options;
  training.subset = "training";
  validation.subset = "validation";
  return {std::make_shared<TextFolder>(directory, training),
          std::make_shared<TextFolder>(directory, validation)};
}

}  // namespace tessera
