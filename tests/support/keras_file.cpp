#include "tests/support/keras_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <set>
#include <stdexcept>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

#include "tests/support/files.hpp"
#include "tests/support/zip_file.hpp"

namespace tessera::test {
namespace {

/// Appends the groups above a path, root first, that are not there yet.
void add_parents(const std::string& path, std::vector<Hdf5Group>& groups,
                 std::set<std::string>& known) {
  for (size_t end = 0; end != std::string::npos; end = path.find('/', end + 1)) {
    const std::string above = path.substr(0, end);
    if (known.insert(above).second) groups.push_back({above, Json::object()});
  }
}

}  // namespace

void write_hdf5(const std::string& path, const std::vector<Hdf5Group>& groups,
                const NamedData& data) {
  std::vector<Hdf5Group> all;
  std::set<std::string> known;
  for (const Hdf5Group& group : groups) {
    add_parents(group.path + "/", all, known);
    for (Hdf5Group& each : all) {
      if (each.path == group.path) each.attributes = group.attributes;
    }
  }
  std::vector<Hdf5Dataset> datasets;
  for (const auto& [name, tensor] : data) {
    add_parents(name, all, known);
    datasets.push_back({.path = name,
                        .dtype = safetensors_dtype(tensor.scalar_type(), name),
                        .shape = tensor.sizes().vec()});
  }
  write_file(path, "");
  const FileDescriptor file = open_descriptor(path, O_RDWR);
  const uint64_t size = lay_out_hdf5(file, 0, path, all, datasets);
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) throw std::runtime_error(path);
  for (size_t i = 0; i < data.size(); ++i) {
    const at::Tensor tensor = data[i].second.contiguous();
    const auto at = static_cast<off_t>(*datasets[i].offset);
    const auto bytes = static_cast<ssize_t>(tensor.nbytes());
    if (::pwrite(file.get(), tensor.const_data_ptr(), tensor.nbytes(), at) != bytes) {
      throw std::runtime_error(path);
    }
  }
}

void write_legacy_file(const std::string& path, const LegacyFile& file) {
  const bool complete = !file.config.is_null();
  const std::string root = complete ? "/model_weights" : "";
  std::vector<Hdf5Group> groups;
  NamedData data;
  Json layer_names = Json::array();
  const auto add_list = [&](const std::string& group, const NamedData& list) {
    Json names = Json::array();
    for (const auto& [name, tensor] : list) {
      names.push_back(name);
      data.emplace_back(detail::str(group, "/", name), tensor);
    }
    groups.push_back({group, {{"weight_names", names}}});
  };
  Json attributes = {{"backend", "tensorflow"}, {"keras_version", file.version}};
  if (complete) {
    Json whole = attributes;
    whole["model_config"] = file.config.dump();
    if (!file.training.is_null()) whole["training_config"] = file.training.dump();
    groups.push_back({"", whole});
  }
  for (const auto& layer : file.layers) layer_names.push_back(layer.first);
  attributes["layer_names"] = layer_names;
  groups.push_back({root, attributes});
  for (const auto& [name, list] : file.layers) add_list(detail::str(root, "/", name), list);
  if (!file.optimizer.empty()) add_list("/optimizer_weights", file.optimizer);
  write_hdf5(path, groups, data);
}

void write_archive(const std::string& path, const std::string& version, const Json& config,
                   const std::vector<std::pair<std::string, std::vector<at::Tensor>>>& groups) {
  NamedData data;
  for (const auto& [group, tensors] : groups) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      data.emplace_back(detail::str("/", group, "/vars/", i), tensors[i]);
    }
  }
  const TempFolder folder;
  write_hdf5(folder / "model.weights.h5", {}, data);
  const Json metadata = {{"keras_version", version}, {"date_saved", "2024-01-01@00:00:00"}};
  write_file(
      path,
      zip_bytes({{.name = "metadata.json", .text = metadata.dump()},
                 {.name = "config.json", .text = config.dump()},
                 {.name = "model.weights.h5", .text = read_file(folder / "model.weights.h5")}}));
}

}  // namespace tessera::test
