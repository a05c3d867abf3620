#include <tessera/framework/model/model.hpp>

#include <functional>
#include <map>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/text.hpp>

namespace tessera {

Model::Model(const LayerOptions& options) : Layer(options) {}
Model::~Model() = default;

std::shared_ptr<Layer> Model::get_layer(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& layer : layers_) {
    if (layer->name() == name) return layer;
    names.push_back(layer->name());
  }
  throw ConfigError("model " + this->name(), "the layer is one of the model's", in_quotes(name),
                    suggestion(name, names));
}

std::vector<Variable> Model::weights() const {
  std::vector<Variable> list;
  std::set<const Layer*> seen;
  for (const auto& layer : layers_) {
    if (!seen.insert(layer.get()).second) continue;
    for (const Variable& weight : layer->weights()) list.push_back(weight);
  }
  return list;
}

void Model::set_trainable(bool trainable) {
  Layer::set_trainable(trainable);
  for (const auto& layer : layers_) layer->set_trainable(trainable);
}

void Model::set_path(const std::string& name, const std::string& path) {
  Layer::set_path(name, path);
  for (const auto& layer : layers_) {
    if (!layer->name().empty()) layer->set_path(layer->name(), path + "/" + layer->name());
  }
}

void Model::place_weights(const LayoutMap& layouts) {
  for (const auto& layer : layers_) layer->place_weights(layouts);
}

LayerHandle Model::track(const LayerHandle& handle) {
  layers_.push_back(handle.layer());
  return handle;
}

/// Numbers unnamed layers within the root model, in order of addition, and gives all their paths.
/// Only the root does this: it is the model that no other has named.
void Model::name_parts() {
  if (in_model()) return;
  std::map<std::string, int64_t> counts;
  const std::function<void(Model&, const std::string&)> visit = [&](Model& model,
                                                                    const std::string& prefix) {
    std::map<std::string, const Layer*> taken;
    for (const auto& layer : model.layers_) {
      std::string name = layer->name();
      if (name.empty()) {
        const std::string base = snake_case(layer->class_name());
        const int64_t number = counts[base]++;
        name = number == 0 ? base : str(base, "_", number);
      }
      const auto [at, fresh] = taken.emplace(name, layer.get());
      if (!fresh && at->second != layer.get()) {
        throw ConfigError("model " + model.name(), "the layers of a model differ in name",
                          "two layers named " + in_quotes(name), "rename one of them");
      }
      if (!fresh) continue;
      layer->set_path(name, prefix + name);
      if (auto* inner = dynamic_cast<Model*>(layer.get())) visit(*inner, prefix + name + "/");
    }
  };
  visit(*this, "");
}

ModelHandle::ModelHandle(std::shared_ptr<Model> model)
    : LayerHandle(model), model_(std::move(model)) {}

}  // namespace tessera
