#include <tessera/datasets/files/folder_index.hpp>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <random>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

constexpr size_t max_folder_files = 10'000'000;
constexpr int max_depth = 64;

[[noreturn]] void fail_folder(const std::string& path, const std::string& expected,
                              const std::string& received, const std::string& fix) {
  throw FileError(path, expected, received, fix);
}

/// Returns the entries of a folder, ordered by the bytes of their names.
std::vector<fs::directory_entry> entries_of(const std::string& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    entries.push_back(*at);
    if (entries.size() > max_folder_files) break;
  }
  if (error) {
    fail_folder(folder, "a folder that can be read", error.message(), "check its permissions");
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.path().native() < b.path().native(); });
  return entries;
}

/// Finds the data files of one folder.
class Walk {
 public:
  Walk(const std::string& root, const FolderIndexOptions& options) : options_(options) {
    std::error_code error;
    root_ = fs::canonical(root, error).native() + "/";
    if (error) fail_folder(root, "a folder", error.message(), "name the folder of the data");
  }

  bool is_folder(const fs::directory_entry& entry) {
    std::error_code error;
    if (!entry.is_directory(error)) return false;
    check_link(entry);
    return true;
  }

  /// Appends the files in a folder and in those below it, ordered by folder path.
  void add(const std::string& folder, std::vector<std::string>& paths) {
    std::vector<std::pair<std::string, std::string>> files;
    find(folder, files, 0);
    std::sort(files.begin(), files.end());
    for (auto& [inner, path] : files) paths.push_back(std::move(path));
  }

 private:
  /// Collects pairs of folder and file path, recursively.
  void find(const std::string& folder, std::vector<std::pair<std::string, std::string>>& files,
            int depth) {
    if (depth > max_depth) {
      fail_folder(folder, str("folders at most ", max_depth, " deep"), "more",
                  "look for a link that leads back");
    }
    for (const fs::directory_entry& entry : entries_of(folder)) {
      const std::string path = folder + "/" + entry.path().filename().native();
      std::error_code error;
      if (entry.is_directory(error)) {
        if (!entry.is_symlink(error)) {
          find(path, files, depth + 1);
        } else if (options_.follow_links) {
          check_no_cycle(folder, path);
          find(path, files, depth + 1);
        }
      } else if (is_data_file(path)) {
        check_link(entry);
        files.emplace_back(folder, path);
        if (files.size() > max_folder_files) {
          fail_folder(folder, str("at most ", max_folder_files, " files"), "more",
                      "name the folder of the data");
        }
      }
    }
  }

  /// Throws FileError for a link to a folder above it, which would recurse forever.
  static void check_no_cycle(const std::string& folder, const std::string& link) {
    std::error_code error;
    const std::string above = fs::canonical(link, error).native() + "/";
    if (!error && !(fs::canonical(folder, error).native() + "/").starts_with(above)) return;
    fail_folder(link, "a link that leads to other folders", "one that leads back",
                "take the link away");
  }

  bool is_data_file(std::string path) const {
    std::transform(path.begin(), path.end(), path.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return std::any_of(options_.endings.begin(), options_.endings.end(),
                       [&](std::string_view ending) { return path.ends_with(ending); });
  }

  void check_link(const fs::directory_entry& entry) const {
    std::error_code error;
    if (options_.follow_links || !entry.is_symlink(error)) return;
    const fs::path target = fs::canonical(entry.path(), error);
    if (!error && target.native().starts_with(root_)) return;
    fail_folder(entry.path().native(), "files of the folder " + root_,
                error ? "a link to nothing" : "a link to " + in_quotes(target.native(), 300),
                "take the link away, or set follow_links");
  }

  const FolderIndexOptions& options_;
  std::string root_;
};

/// Draws a number in [0, max_value] as numpy.random.RandomState does.
uint32_t draw_up_to(std::mt19937& random, uint32_t max_value) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << std::bit_width(max_value)) - 1);
  for (;;) {
    const uint32_t value = static_cast<uint32_t>(random()) & mask;
    if (value <= max_value) return value;
  }
}

template <class T>
void shuffle_as_numpy(std::vector<T>& values, uint32_t seed) {
  std::mt19937 random(seed);
  for (size_t i = values.size(); i-- > 1;) {
    std::swap(values[i], values[draw_up_to(random, static_cast<uint32_t>(i))]);
  }
}

template <class T>
void keep_subset(std::vector<T>& values, const FolderIndexOptions& options) {
  const auto held =
      static_cast<size_t>(options.validation_split * static_cast<double>(values.size()));
  if (options.subset == "validation") {
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(held));
  } else {
    values.resize(values.size() - held);
  }
}

void check_split(const std::string& folder, const FolderIndexOptions& options) {
  const bool split = options.validation_split != 0;
  if (!(options.validation_split >= 0 && options.validation_split < 1)) {
    throw ConfigError(folder, "a validation_split between 0 and 1", str(options.validation_split),
                      "0.2 leaves a fifth for validation");
  }
  const bool known = options.subset == "training" || options.subset == "validation";
  if (split ? known : options.subset.empty()) return;
  throw ConfigError(folder,
                    split ? R"(with validation_split, subset is "training" or "validation")"
                          : "a subset needs a validation_split",
                    "subset " + in_quotes(options.subset),
                    options.subset == "both" ? "call datasets::..._subsets_from_directory"
                                             : "give both, or neither");
}

}  // namespace

FolderIndex index_folder(const std::string& folder, const FolderIndexOptions& options) {
  check_split(folder, options);
  Walk walk(folder, options);
  FolderIndex index;
  if (options.classes) {
    for (const fs::directory_entry& entry : entries_of(folder)) {
      const std::string name = entry.path().filename().native();
      if (!name.starts_with('.') && walk.is_folder(entry)) index.class_names.push_back(name);
    }
    for (const std::string& name : options.class_names) {
      if (std::count(index.class_names.begin(), index.class_names.end(), name) > 0) continue;
      throw ConfigError(folder, "class_names are sub-folders", in_quotes(name),
                        suggestion(name, index.class_names));
    }
    if (!options.class_names.empty()) index.class_names = options.class_names;
    for (size_t i = 0; i < index.class_names.size(); ++i) {
      walk.add(folder + "/" + index.class_names[i], index.paths);
      index.labels.resize(index.paths.size(), static_cast<int64_t>(i));
    }
  } else {
    walk.add(folder, index.paths);
    index.labels = options.labels;
    for (const int64_t label : std::set<int64_t>(options.labels.begin(), options.labels.end())) {
      index.class_names.push_back(std::to_string(label));
    }
    if (!options.labels.empty() && options.labels.size() != index.paths.size()) {
      throw ConfigError(folder, str("labels for ", index.paths.size(), " files"),
                        std::to_string(options.labels.size()),
                        "give one for each, in the order of their paths");
    }
  }
  if (options.shuffle) {
    shuffle_as_numpy(index.paths, options.seed);
    shuffle_as_numpy(index.labels, options.seed);
  }
  if (options.validation_split > 0) {
    keep_subset(index.paths, options);
    if (!index.labels.empty()) keep_subset(index.labels, options);
  }
  if (!index.paths.empty()) return index;
  std::vector<std::string> endings(options.endings.begin(), options.endings.end());
  fail_folder(folder,
              "files named *" + join(endings, ", *") +
                  (options.classes ? " in a sub-folder for each class" : ""),
              "none", "name the folder above the classes");
}

void check_both_subsets(const std::string& folder, double validation_split,
                        const std::string& subset) {
  if (validation_split == 0) {
    throw ConfigError(folder, "a validation_split for two subsets", "0",
                      "0.2 leaves a fifth for validation");
  }
  if (subset.empty() || subset == "both") return;
  throw ConfigError(folder, "both subsets", "subset " + in_quotes(subset),
                    "leave it out, or ask for one by ..._dataset_from_directory");
}

}  // namespace tessera::detail
