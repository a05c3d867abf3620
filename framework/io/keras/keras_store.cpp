#include <tessera/framework/io/keras/keras_store.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/keras/legacy_file.hpp>
#include <tessera/framework/io/keras/weight_shards.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

/// Returns a group's name as Keras of TensorFlow 2.13 wrote it.
std::string earlier_name(std::string group) {
  const std::string now = "/layers", before = "/_layer_checkpoint_dependencies";
  for (size_t at = 0; (at = group.find(now + "/", at)) != std::string::npos; at += before.size()) {
    group.replace(at, now.size(), before);
  }
  return group;
}

}  // namespace

KerasStore::KerasStore(const std::string& path) : path_(path) {
  if (!path.ends_with(".json")) {
    files_.push_back(std::make_unique<Hdf5File>(path));
    return;
  }
  try {
    for (const std::string& name : files_in_weight_map(path)) {
      files_.push_back(std::make_unique<Hdf5File>(fs::path(path).parent_path() / name));
    }
  } catch (const ConfigError& error) {
    throw FileError(error.what());
  }
}

KerasStore::KerasStore(const ZipArchive& archive, const ZipMember& member) : path_(archive.path()) {
  const Hdf5Part part{member.packed ? 0 : member.offset, member.bytes};
  const auto file = member.packed ? archive.unpack(member) : archive.file();
  files_.push_back(std::make_unique<Hdf5File>(file, part, path_));
}

bool KerasStore::is_legacy() const {
  return files_.size() == 1 && legacy_weights(*files_.front()).has_value();
}

std::vector<KerasData> KerasStore::variables(const std::string& group) const {
  if (is_legacy()) {
    const bool has_optimizer =
        group == "/optimizer" && legacy_file().find_group("/optimizer_weights");
    return has_optimizer ? listed_data(legacy_file(), "/optimizer_weights")
                         : std::vector<KerasData>();
  }
  for (const std::string& name : {group, earlier_name(group)}) {
    std::vector<KerasData> list;
    while (list.size() < 1000000) {
      const std::string next = str(name, "/vars/", list.size());
      const Hdf5Dataset* dataset = nullptr;
      for (const auto& file : files_) {
        dataset = file->find(next);
        if (!dataset) continue;
        list.push_back({file.get(), dataset});
        break;
      }
      if (!dataset) break;
    }
    if (!list.empty()) return list;
  }
  return {};
}

std::vector<std::string> KerasStore::groups() const {
  std::set<std::string> names;
  for (const auto& file : files_) {
    for (const Hdf5Dataset& dataset : file->datasets()) {
      const size_t end = dataset.path.rfind("/vars/");
      if (end != std::string::npos) names.insert(dataset.path.substr(0, end));
    }
  }
  return {names.begin(), names.end()};
}

std::string KerasStore::name_of(const std::string& group) const {
  for (const auto& file : files_) {
    const Hdf5Group* vars = file->find_group(group + "/vars");
    if (vars && vars->attributes.contains("name") && vars->attributes["name"].is_string()) {
      return vars->attributes["name"].get<std::string>();
    }
  }
  return "";
}

uint64_t KerasStore::bytes_read() const {
  uint64_t bytes = 0;
  for (const auto& file : files_) bytes += file->bytes_read();
  return bytes;
}

}  // namespace tessera::detail
