#include <tessera/layers/internal/wrapper.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::shared_ptr<Layer> WrapperLayer::add_inner(const LayerHandle& handle) {
  if (!handle.layer() || handle->is_model()) {
    throw ConfigError("wrapper " + name(), "it is made of a layer",
                      handle.layer() ? handle->class_name() : "none", "give a layer of its own");
  }
  if (!trainable()) handle->set_trainable(false);
  inner_.push_back(handle.layer());
  return handle.layer();
}

void WrapperLayer::name_inner() {
  for (const auto& layer : inner_) {
    const std::string name = layer->name().empty() ? snake_case(layer->class_name())
                                                   : layer->name();
    layer->set_path(name, path().empty() ? name : path() + "/" + name);
  }
}

void WrapperLayer::make_weights(const Shapes&) { name_inner(); }

void WrapperLayer::set_path(const std::string& name, const std::string& path) {
  Layer::set_path(name, path);
  name_inner();
}

void WrapperLayer::set_trainable(bool trainable) {
  Layer::set_trainable(trainable);
  for (const auto& layer : inner_) layer->set_trainable(trainable);
}

void WrapperLayer::place_weights(const LayoutMap& layouts) {
  for (const auto& layer : inner_) layer->place_weights(layouts);
}

std::vector<Variable> WrapperLayer::weights() const {
  std::vector<Variable> list;
  for (const bool trained : {true, false}) {
    for (const auto& layer : inner_) {
      for (const Variable& weight : layer->weights()) {
        if (weight.spec().trainable == trained) list.push_back(weight);
      }
    }
  }
  return list;
}

Json wrapped_json(const Layer& layer) {
  return {{"class_name", layer.class_name()}, {"config", layer.config()}};
}

}  // namespace tessera::detail
