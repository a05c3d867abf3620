#include <tessera/layers/pretrained/pretrained_adapters.hpp>

#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/io/adapter_files.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/layers/pretrained/internal/language_model.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns the module of the layer that has the kernel or the table at `path`, by the names of a
/// Hugging Face model.
AdapterModule pretrained_module(const LanguageModelConfig& config, const std::string& path) {
  const WeightSource source =
      weight_source(config, path + (path == "words" ? "/embeddings" : "/kernel"));
  std::string name = source.name;
  const std::string end = ".weight";
  if (name.ends_with(end)) name.erase(name.size() - end.size());
  if (name != "lm_head") name = (config.model_type == "gpt2" ? "transformer." : "model.") + name;
  return {name, source.part, source.parts};
}

AdapterFileOptions pretrained_names(const ModelHandle& model, const std::string& base) {
  LanguageModelConfig config;
  collectively(mesh_of(model.weights()), base, [&] {
    const std::string path = path_in(base, "config.json");
    config = language_model_config(read_json_file(path), path);
  });
  return {[config](const std::string& path) { return pretrained_module(config, path); }, base};
}

}  // namespace

void save_pretrained_adapters(const ModelHandle& model, const std::string& base,
                              const std::string& folder) {
  save_adapters(model.model(), folder, pretrained_names(model, base));
}

void load_pretrained_adapters(const ModelHandle& model, const std::string& base,
                              const std::string& folder) {
  load_adapters(model.model(), folder, pretrained_names(model, base));
}

}  // namespace tessera
