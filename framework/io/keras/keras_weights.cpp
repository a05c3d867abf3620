#include <tessera/framework/io/keras/keras_weights.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/io/keras/keras_tree.hpp>
#include <tessera/framework/io/keras/legacy_file.hpp>
#include <tessera/framework/io/keras/optimizer_variables.hpp>
#include <tessera/framework/nn/internal/lora_layer.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {
namespace {

/// Returns a group as Keras' users know it: "layers/dense".
std::string shown(const std::string& group) {
  return in_quotes(group.empty() ? "vars" : group.substr(1));
}

/// The file's group of each layer, found by the layer's name: the first group that stores this
/// name.
class GroupsByName {
 public:
  GroupsByName(const std::vector<KerasGroup>& tree, const KerasStore& store) {
    std::map<std::string, std::string> groups;
    // A recurrent layer's own group has no variables: they are in its cell's group.
    for (const std::string& group : store.groups()) {
      for (size_t end = group.size(); end != std::string::npos && end > 0;
           end = group.rfind('/', end - 1)) {
        const std::string above = group.substr(0, end);
        const std::string name = store.name_of(above);
        if (!name.empty()) groups.emplace(name, above);
      }
    }
    for (const KerasGroup& group : tree) {
      if (!group.layer || group.path.empty()) continue;
      const auto it = groups.find(group.name);
      file_groups_[group.path] = it == groups.end() ? "" : it->second;
    }
  }

  /// Returns the file's name of a group of the tree; empty if the file lacks it.
  std::string find(const std::string& path) const {
    for (size_t end = path.size(); end != std::string::npos && end > 0;
         end = path.rfind('/', end - 1)) {
      const auto it = file_groups_.find(path.substr(0, end));
      if (it == file_groups_.end()) continue;
      return it->second.empty() ? "" : it->second + path.substr(end);
    }
    return path;
  }

 private:
  std::map<std::string, std::string> file_groups_;
};

/// Whether the file counts each layer with weights twice, see KerasGroup: it then has groups that
/// the model lacks otherwise.
bool counts_twice(const std::vector<KerasGroup>& tree, const KerasStore& store) {
  return std::any_of(tree.begin(), tree.end(), [&](const KerasGroup& group) {
    return !group.variables.empty() && group.path != group.path_counted_twice &&
           store.variables(group.path).empty() &&
           !store.variables(group.path_counted_twice).empty();
  });
}

/// Matches a model's weights with a store's data.
std::vector<KerasMatch> match_weights(const Layer& model, const KerasStore& store,
                                      const LoadWeightsOptions& options,
                                      std::vector<std::string>& skipped) {
  if (store.is_legacy()) return match_legacy_weights(model, store.legacy_file(), options, skipped);
  std::vector<KerasGroup> tree = keras_tree(model);
  if (store.is_of_keras_2_13() && counts_twice(tree, store)) {
    for (KerasGroup& group : tree) group.path = group.path_counted_twice;
  }
  std::optional<GroupsByName> names;
  if (options.by_name) names.emplace(tree, store);
  std::vector<KerasMatch> matches;
  for (const KerasGroup& group : tree) {
    if (group.variables.empty()) continue;
    const std::string file_group = names ? names->find(group.path) : group.path;
    if (file_group.empty()) continue;
    const std::vector<KerasData> data = store.variables(file_group);
    if (data.empty() && options.by_name) continue;
    const std::string near = data.empty() ? nearest(file_group, store.groups()) : "";
    add_matches({store.path(), file_group, group.name}, group.variables, data,
                options.skip_mismatch, matches, skipped, near);
  }
  return matches;
}

/// Sets B of each adapter to 0 whose kernel was read: files have kernels with their adapters. A
/// stays, because two factors of 0 have gradients of 0.
void reset_adapters(const Layer& layer, const std::vector<KerasMatch>& read) {
  if (layer.has_lora()) {
    const auto& adapted = dynamic_cast<const LoraLayer&>(layer);
    const bool is_read = std::any_of(read.begin(), read.end(), [&](const KerasMatch& match) {
      return match.value.variable.is(adapted.adapted());
    });
    Variable b = adapted.b();
    if (is_read) b.assign(filled(b.shape(), 0, b.dtype(), b.layout()));
  }
  for (const auto& inner : layer.sublayers()) reset_adapters(*inner, read);
}

}  // namespace

void warn_of_skipped(const Mesh& mesh, const std::string& path,
                     const std::vector<std::string>& skipped) {
  if (skipped.empty()) return;
  warn_once(mesh, str(path, " has different weights for ", quoted_list(skipped, 5),
                      ", which are not loaded"));
}

void add_matches(const KerasSource& source, const std::vector<Variable>& weights,
                 const std::vector<KerasData>& data, bool skip_mismatch,
                 std::vector<KerasMatch>& matches, std::vector<std::string>& skipped,
                 const std::string& nearest_group) {
  std::vector<KerasMatch> own;
  bool fits = data.size() == weights.size();
  if (!fits && !skip_mismatch) {
    throw FileError(source.file,
                    str(shown(source.group), " holds the ", weights.size(), " weights of ",
                        in_quotes(source.layer)),
                    nearest_group.empty() ? str(data.size())
                                          : str("none; the nearest is ", shown(nearest_group)),
                    other_keras_model);
  }
  for (size_t i = 0; fits && i < data.size(); ++i) {
    const Variable& variable = weights[i];
    own.push_back({{.what = variable.path(), .variable = variable}, data[i]});
    const std::string received = describe_mismatch(own.back());
    if (received.empty()) continue;
    fits = false;
    if (skip_mismatch) continue;
    throw FileError(source.file,
                    str(in_quotes(data[i].dataset->path), " is ", in_quotes(variable.path()),
                        " of shape ", to_string(variable.shape()), " and dtype ",
                        safetensors_dtype(variable.dtype(), variable.path())),
                    received, other_keras_model);
  }
  if (fits) {
    matches.insert(matches.end(), own.begin(), own.end());
  } else {
    skipped.push_back(source.layer);
  }
}

void load_keras_weights(const Layer& model, const KerasStore& store,
                        const LoadWeightsOptions& options) {
  const Mesh mesh = mesh_of(model.weights());
  store.verify(mesh);
  std::vector<std::string> skipped;
  std::vector<KerasMatch> matches = match_weights(model, store, options, skipped);
  const std::vector<KerasMatch> slots = match_optimizer(model, store);
  matches.insert(matches.end(), slots.begin(), slots.end());
  restore_values(mesh, store.path(), matches);
  reset_adapters(model, matches);
  warn_of_skipped(mesh, store.path(), skipped);
}

}  // namespace tessera::detail
