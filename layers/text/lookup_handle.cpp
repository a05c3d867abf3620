#include <tessera/layers/text/lookup_handle.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/text/internal/lookup_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

LookupHandle::LookupHandle(const std::shared_ptr<TextLayer>& layer)
    : LayerHandle(std::shared_ptr<Layer>(layer)) {
  if (dynamic_cast<LookupLayer*>(layer.get())) return;
  throw ConfigError("LookupHandle", "TextVectorization or StringLookup",
                    layer ? layer->class_name() : "null", "pass a layer with a vocabulary");
}

LookupLayer& LookupHandle::lookup_layer() const { return static_cast<LookupLayer&>(*layer()); }

void LookupHandle::adapt(const TextDataHandle& texts, const TextPassOptions& options) const {
  lookup_layer().adapt(texts, options);
}

void LookupHandle::adapt(const TextStream& stream) const { lookup_layer().adapt(stream); }

void LookupHandle::reset_state() const { lookup_layer().reset_state(); }

void LookupHandle::update_state(const TextDataHandle& texts) const {
  lookup_layer().update_state(texts);
}

void LookupHandle::finalize_state() const { lookup_layer().finalize_state(); }

std::vector<std::string> LookupHandle::get_vocabulary(bool include_special_tokens) const {
  return lookup_layer().lookup().vocabulary(include_special_tokens);
}

int64_t LookupHandle::vocabulary_size() const { return lookup_layer().lookup().vocabulary_size(); }

const std::vector<float>& LookupHandle::idf_weights() const {
  return lookup_layer().lookup().idf_weights();
}

void LookupHandle::set_vocabulary(const std::vector<std::string>& tokens,
                                  const std::vector<double>& idf_weights) const {
  lookup_layer().set_vocabulary(tokens, idf_weights);
}

at::Tensor LookupHandle::transform(std::span<const std::string_view> texts) const {
  return lookup_layer().transform(texts);
}

at::Tensor LookupHandle::transform(const std::vector<std::string>& texts) const {
  return transform(views(texts));
}

DTensor LookupHandle::transform(std::span<const std::string_view> texts,
                                const Layout& layout) const {
  return lookup_layer().transform(texts, layout);
}

DTensor LookupHandle::transform(const std::vector<std::string>& texts, const Layout& layout) const {
  return transform(views(texts), layout);
}

std::shared_ptr<const Dataset> LookupHandle::dataset(const TextDataHandle& texts,
                                                     const TextPassOptions& options) const {
  return lookup_layer().dataset(texts, options);
}

}  // namespace tessera
