#include <tessera/framework/io/keras/keras_store.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/keras/keras_checksum.hpp>
#include <tessera/framework/io/keras/legacy_file.hpp>
#include <tessera/framework/io/keras/weight_shards.hpp>

namespace tessera::detail {
namespace {

/// The advice in errors for bytes that changed since they were written.
constexpr const char* damaged_file = "the file is damaged: restore a copy, or save it again";

/// Name of a model's list of layers in Keras of TensorFlow 2.13.
constexpr const char* earlier_list = "_layer_checkpoint_dependencies";

/// Returns a group's name as Keras of TensorFlow 2.13 wrote it.
std::string earlier_name(std::string group) {
  const std::string now = "/layers", before = str("/", earlier_list);
  for (size_t at = 0; (at = group.find(now + "/", at)) != std::string::npos; at += before.size()) {
    group.replace(at, now.size(), before);
  }
  return group;
}

/// Returns a group's name as Keras 2 on Windows wrote it: "layers\dense".
std::string windows_name(std::string group) {
  for (size_t i = 1; i < group.size(); ++i) {
    if (group[i] == '/') group[i] = '\\';
  }
  return group;
}

/// Returns the names that versions of Keras give a group.
std::vector<std::string> spellings(const std::string& group) {
  const std::string earlier = earlier_name(group);
  return {group, earlier, windows_name(group), windows_name(earlier)};
}

}  // namespace

KerasStore::KerasStore(const std::string& path) : path_(path) {
  if (!path.ends_with(".json")) {
    files_.push_back(std::make_unique<Hdf5File>(path));
    return;
  }
  try {
    for (const std::string& name : files_in_weight_map(path)) {
      files_.push_back(std::make_unique<Hdf5File>(path_in(parent_of(path), name)));
    }
  } catch (const ConfigError& error) {
    throw FileError(error.what());
  }
}

KerasStore::KerasStore(const ZipArchive& archive, const ZipMember& member) : path_(archive.path()) {
  const Hdf5Part part{member.packed ? 0 : member.offset, member.bytes};
  const auto file = member.packed ? archive.unpack(member) : archive.file();
  files_.push_back(std::make_unique<Hdf5File>(file, part, path_));
  if (member.packed) return;
  archive_ = file;
  member_ = member;
}

bool KerasStore::is_legacy() const {
  return files_.size() == 1 && legacy_weights(*files_.front()).has_value();
}

bool KerasStore::is_of_keras_2_13() const {
  const std::vector<std::string> names = groups();
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with(str("/", earlier_list));
  });
}

std::vector<KerasData> KerasStore::variables(const std::string& group) const {
  if (is_legacy()) {
    const bool has_optimizer =
        group == "/optimizer" && legacy_file().find_group("/optimizer_weights");
    return has_optimizer ? listed_data(legacy_file(), "/optimizer_weights")
                         : std::vector<KerasData>();
  }
  for (const std::string& name : spellings(group)) {
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
      if (end == std::string::npos) continue;
      std::string name = dataset.path.substr(0, end);
      std::replace(name.begin(), name.end(), '\\', '/');
      names.insert(std::move(name));
    }
  }
  return {names.begin(), names.end()};
}

std::string KerasStore::name_of(const std::string& group) const {
  for (const std::string& spelling : spellings(group)) {
    for (const auto& file : files_) {
      const Hdf5Group* vars = file->find_group(spelling + "/vars");
      if (vars && vars->attributes.contains("name") && vars->attributes["name"].is_string()) {
        return vars->attributes["name"].get<std::string>();
      }
    }
  }
  return "";
}

uint64_t KerasStore::bytes_read() const {
  uint64_t bytes = 0;
  for (const auto& file : files_) bytes += file->bytes_read();
  return bytes;
}

void KerasStore::verify(const Mesh& mesh) const {
  if (archive_) {
    const uint64_t end = member_.offset + member_.bytes;
    const uint32_t actual = shared_crc32(mesh, *archive_, member_.offset, end, path_);
    if (actual == member_.checksum) return;
    throw FileError(path_, str(in_quotes(member_.name), " has the CRC-32 ", member_.checksum),
                    std::to_string(actual), damaged_file);
  }
  for (const auto& file : files_) {
    const Hdf5Group* root = file->find_group("");
    if (!root || !root->attributes.contains(hdf5_checksum_name)) continue;
    const Json& expected = root->attributes[hdf5_checksum_name];
    const std::string actual = shared_hdf5_checksum(mesh, *file);
    if (expected == Json(actual)) continue;
    throw FileError(file->path(),
                    str("the content has the checksum in the attribute ", hdf5_checksum_name, ", ",
                        one_line(expected.dump(), 40)),
                    actual,
                    str(damaged_file, "; or remove the attribute, if another program changed it"));
  }
}

KerasStore archived_weights(const ZipArchive& archive) {
  const ZipMember* weights = archive.find("model.weights.h5");
  if (weights) return {archive, *weights};
  if (archive.find("model.weights.npz")) {
    throw FileError(archive.path(), "weights in model.weights.h5", "model.weights.npz",
                    "save the model where h5py is installed: Keras cannot read these itself");
  }
  throw FileError(archive.path(), "a model: config.json and model.weights.h5",
                  "no model.weights.h5", "pass what Model.save() of Keras or Tessera wrote");
}

}  // namespace tessera::detail
