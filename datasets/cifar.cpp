#include <tessera/datasets/cifar.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/datasets/files/archive.hpp>
#include <tessera/datasets/files/dataset_cache.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int64_t cifar_side = 32;
constexpr int64_t pixel_bytes = 3 * cifar_side * cifar_side;

/// CIFAR-10 or CIFAR-100: its files and the format of its rows.
struct CifarVariant {
  std::string name;
  std::string folder;
  std::string archive;
  int64_t label_bytes;  ///< number of label bytes before each picture
  int64_t label;        ///< index of the label byte to read
  int64_t classes;
  std::vector<std::string> files;  ///< files of the split
};

/// Returns the unpacked folder or the archive, which is `path` itself or inside it; empty if
/// neither exists.
std::string find_cifar(const std::string& path, const CifarVariant& variant) {
  if (exists(path + "/" + variant.files[0])) return path;
  for (const std::string& inner :
       {"/" + variant.folder, "/" + variant.name + "/" + variant.folder}) {
    if (exists(path + inner + "/" + variant.files[0])) return path + inner;
  }
  for (const std::string& inner :
       {"/" + variant.archive, "/" + variant.name + "/" + variant.archive}) {
    if (exists(path + inner)) return path + inner;
  }
  return path.ends_with(".gz") && exists(path) ? path : "";
}

std::string cifar_path(const CifarVariant& variant, const std::string& path,
                       const std::optional<DownloadSource>& download) {
  const std::vector<std::string> candidates =
      path.empty() ? data_folders(variant.name) : std::vector<std::string>{path};
  for (const std::string& candidate : candidates) {
    const std::string found = find_cifar(candidate, variant);
    if (!found.empty()) return found;
  }
  std::string failure;
  const std::string cache = data_cache(variant.name);
  if (path.empty() && download && !offline() && !cache.empty()) {
    failure = try_download(*download, cache);
    if (failure.empty()) return find_cifar(cache, variant);
  }
  throw FileError(variant.name,
                  str(variant.archive, " or its folder ", variant.folder, " in ",
                      candidates.empty() ? "$TESSERA_DATA" : join(candidates, " or ")),
                  failure.empty() ? "neither there" : "neither. The download failed: " + failure,
                  "put the archive there, or name its folder by `path`");
}

/// Reads a split's files, by name.
std::map<std::string, std::string> read_cifar_files(const std::string& path,
                                                    const CifarVariant& variant) {
  constexpr uint64_t max_bytes = uint64_t{1} << 28;
  std::map<std::string, std::string> bytes;
  if (!path.ends_with(".gz")) {
    for (const std::string& file : variant.files) {
      bytes[file] = read_file(path + "/" + file, max_bytes);
    }
    return bytes;
  }
  const auto inner = [&](std::string_view name) {
    const std::string folder = variant.folder + "/";
    return std::string(name.starts_with(folder) ? name.substr(folder.size()) : name);
  };
  read_archive(
      path,
      [&](std::string_view name) {
        return std::find(variant.files.begin(), variant.files.end(), inner(name)) !=
               variant.files.end();
      },
      [&](std::string_view name, std::string_view text) { bytes[inner(name)] = text; },
      {.file_bytes = max_bytes});
  for (const std::string& file : variant.files) {
    if (bytes.contains(file)) continue;
    throw FileError(path, "the file " + variant.folder + "/" + file, "an archive without it",
                    "get the archive again");
  }
  return bytes;
}

datasets::CifarDataset read_cifar(const CifarVariant& variant, const std::string& path,
                                  const std::optional<int64_t>& size,
                                  const std::optional<DownloadSource>& download) {
  if (size && *size < 1) {
    throw ConfigError(variant.name, "size is at least 1", str(*size),
                      "leave it out for all images");
  }
  const std::string data_path = cifar_path(variant, path, download);
  const std::map<std::string, std::string> files = read_cifar_files(data_path, variant);
  const int64_t row_bytes = variant.label_bytes + pixel_bytes;
  std::vector<at::Tensor> file_rows;
  for (const auto& [file, bytes] : files) {
    const std::string where = data_path + (data_path.ends_with(".gz") ? ", " : "/") + file;
    const auto count = static_cast<int64_t>(bytes.size());
    if (count == 0 || count % row_bytes != 0) {
      throw FileError(where, str("rows of ", row_bytes, " bytes"), str(count, " bytes"),
                      "get the file again");
    }
    const at::Tensor rows = at::empty({count / row_bytes, row_bytes}, at::kByte);
    std::copy(bytes.begin(), bytes.end(), rows.mutable_data_ptr<uint8_t>());
    const at::Tensor labels = rows.select(1, variant.label);
    if (labels.max().item<int64_t>() >= variant.classes) {
      const auto row = labels.ge(variant.classes).nonzero()[0].item<int64_t>();
      throw FileError(str(where, ", byte ", row * row_bytes + variant.label),
                      str("labels are 0 to ", variant.classes - 1),
                      str(labels[row].item<int64_t>(), " for image ", row), "get the file again");
    }
    file_rows.push_back(rows);
  }
  const at::Tensor all = at::cat(file_rows);
  const int64_t rows = size.value_or(all.size(0));
  if (rows > all.size(0)) {
    throw ConfigError(variant.name, str("size is at most ", all.size(0), ", the images there are"),
                      str(rows), "ask for fewer, or leave it out for all");
  }
  const at::Tensor selected = all.narrow(0, 0, rows);
  // Pixels are stored channels-first.
  const at::Tensor pictures = selected.narrow(1, variant.label_bytes, pixel_bytes)
                                  .reshape({rows, 3, cifar_side, cifar_side})
                                  .permute({0, 2, 3, 1})
                                  .contiguous();
  return datasets::CifarDataset(
      TensorDataset(pictures, selected.select(1, variant.label).contiguous(), variant.name));
}

void check_cifar_option(const std::string& name, const char* option, const std::string& value,
                        const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  throw ConfigError(name, str(option, " is one of ", quoted_list(known)), in_quotes(value),
                    suggestion(value, known));
}

}  // namespace

const DownloadSource& datasets::cifar10_source() {
  static const DownloadSource source{
      "https://www.cs.toronto.edu/~kriz",
      {{"cifar-10-binary.tar.gz", 170052171,
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}}};
  return source;
}

const DownloadSource& datasets::cifar100_source() {
  static const DownloadSource source{
      "https://www.cs.toronto.edu/~kriz",
      {{"cifar-100-binary.tar.gz", 168513733,
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}}};
  return source;
}

Examples datasets::CifarDataset::get(std::span<const int64_t> rows) const {
  Examples examples = bytes_.get(rows);
  examples.x[0] = examples.x[0].to(at::kFloat).div_(255);
  examples.y[0] = examples.y[0].to(at::kLong);
  return examples;
}

datasets::CifarDataset datasets::cifar10(const Cifar10Options& options) {
  check_cifar_option("cifar10", "split", options.split, {"train", "test"});
  CifarVariant variant{"cifar10", "cifar-10-batches-bin", "cifar-10-binary.tar.gz", 1, 0, 10, {}};
  variant.files = {"test_batch.bin"};
  if (options.split == "train") {
    variant.files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                     "data_batch_5.bin"};
  }
  return read_cifar(variant, options.path, options.size, options.download);
}

datasets::CifarDataset datasets::cifar100(const Cifar100Options& options) {
  check_cifar_option("cifar100", "split", options.split, {"train", "test"});
  check_cifar_option("cifar100", "label_mode", options.label_mode, {"fine", "coarse"});
  const bool fine = options.label_mode == "fine";
  const CifarVariant variant{"cifar100",   "cifar-100-binary", "cifar-100-binary.tar.gz", 2,
                             fine ? 1 : 0, fine ? 100 : 20,    {options.split + ".bin"}};
  return read_cifar(variant, options.path, options.size, options.download);
}

}  // namespace tessera
