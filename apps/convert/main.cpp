#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <sstream>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/write_file.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/setup.hpp"

namespace {

using namespace tessera;

namespace fs = std::filesystem;

struct ConvertFlags {
  std::vector<std::string> paths;
  std::string model;
  std::string rename;
  std::string transpose;
  bool cast = false;
  std::string like;
  std::string dtype = "float32";
  std::string inputs;
  std::string outputs;
  bool summary = false;
  int64_t batch_size = 32;
};

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> list;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) list.push_back(item);
  return list;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

bool is_weights(const std::string& path) {
  return path.ends_with(".weights.h5") || path.ends_with(".weights.json") ||
         path.ends_with(".safetensors");
}

bool is_read_as_weights(const std::string& path) {
  return is_weights(path) || path.ends_with(".safetensors.index.json");
}

LoadWeightsOptions load_options(const ConvertFlags& flags) {
  LoadWeightsOptions options{.transpose = words_of(flags.transpose), .cast = flags.cast};
  for (const std::string& word : words_of(flags.rename)) {
    const size_t at = word.find('=');
    if (at == std::string::npos) {
      throw ConfigError("--rename", "pairs EXPRESSION=REPLACEMENT, separated by spaces",
                        "\"" + word + "\"", "add \"=\" and the replacement, which may be empty");
    }
    options.rename.emplace_back(word.substr(0, at), word.substr(at + 1));
  }
  return options;
}

bool is_export(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && !fs::exists(fs::path(path) / "config.json");
}

/// Whether load_pretrained() reads the path: a GGUF file, or a folder with config.json that is not
/// Keras', which has its weights in model.weights.h5.
bool is_pretrained(const std::string& path) {
  std::error_code ignored;
  return path.ends_with(".gguf") || (fs::is_directory(path, ignored) && !is_export(path) &&
                                     !fs::exists(fs::path(path) / "model.weights.h5"));
}

std::string counted(int64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string described(const ModelHandle& model) {
  std::string text = model->class_name() + " \"" + model->name() + "\", " +
                     counted(int64_t(model.layers().size()), "layer") + ", " +
                     counted(model->count_params(), "parameter");
  if (model->compiled() && model->optimizer()) {
    text += ", trained by " + model->optimizer()->class_name();
  }
  return text;
}

/// Reads a model; one whose loss, metrics or optimizer are unknown without them, with a warning.
ModelHandle read_any_model(const std::string& path, const LayoutMap& layouts) {
  try {
    return load_model(path, {.layouts = layouts});
  } catch (const ConfigError& error) {
    const std::string reason = error.what();
    // Throws the same error again if the model itself is unknown.
    const ModelHandle model = load_model(path, {.layouts = layouts, .compile = false});
    if (is_first_process(layouts.mesh())) {
      std::cerr << path << " is converted without its loss, metrics and optimizer: " << reason
                << std::endl;
    }
    return model;
  }
}

/// Reads a model whose weights are in another file.
ModelHandle model_alone(const std::string& path, const ConvertFlags& flags,
                        const LayoutMap& layouts) {
  if (is_pretrained(path)) {
    return load_pretrained(path, {.layouts = layouts, .dtype = flags.dtype});
  }
  if (!path.ends_with(".json")) return read_any_model(path, layouts);
  const ModelHandle model = model_from_config(read_json_file(path), path);
  if (!model->built()) {
    throw ConfigError(path, "the model must have an input shape", "a Sequential without one",
                      "give it an Input as the first layer");
  }
  model->place_weights(layouts);
  return model;
}

ModelHandle read_model(const std::string& path, const ConvertFlags& flags,
                       const LayoutMap& layouts) {
  if (!flags.model.empty() || is_read_as_weights(path)) {
    if (flags.model.empty()) {
      throw ConfigError("--model", "a file of the model whose weights these are", "none",
                        "give its .keras, .json or .gguf file, or its folder");
    }
    const ModelHandle model = model_alone(flags.model, flags, layouts);
    model.load_weights(path, load_options(flags));
    return model;
  }
  if (is_export(path)) return load_export(path, {.layouts = layouts}).model;
  return model_alone(path, flags, layouts);
}

/// Describes an array in a line: "x.npy (2, 6, 4) float32".
std::string describe_array(const std::string& path, const at::Tensor& tensor) {
  return path + " " + to_string(tensor.sizes().vec()) + " " + dtype_name(tensor.scalar_type());
}

std::vector<at::Tensor> read_inputs(const ModelHandle& model, const ConvertFlags& flags) {
  const std::vector<std::string> files = list_of(flags.inputs);
  std::vector<at::Tensor> arrays;
  for (const std::string& file : files) arrays.push_back(datasets::load_npy(file));
  const size_t expected = model->input_shapes().size();
  if (arrays.size() != expected) {
    throw ConfigError("--inputs", counted(int64_t(expected), "file") + " for the model's inputs",
                      std::to_string(arrays.size()),
                      "separate them by commas, in the order of its inputs");
  }
  return arrays;
}

void run_model(const ModelHandle& model, const std::vector<at::Tensor>& inputs,
               const ConvertFlags& flags, bool is_first) {
  const at::Tensor none = at::zeros({inputs[0].size(0)});
  const std::vector<at::Tensor> outputs = model.predict_all(
      TensorDataset(Examples{.x = inputs, .y = {none}}), {.batch_size = flags.batch_size});
  std::vector<std::string> files = list_of(flags.outputs);
  if (!files.empty() && files.size() != outputs.size()) {
    throw ConfigError("--outputs",
                      counted(int64_t(outputs.size()), "file") + " for the model's outputs",
                      std::to_string(files.size()), "separate them by commas");
  }
  if (!is_first) return;
  const std::vector<std::string> names = list_of(flags.inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::cout << describe_array(names[i], inputs[i]) << '\n';
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!files.empty()) datasets::save_npy(files[i], outputs[i]);
    std::cout << "-> " << describe_array(files.empty() ? "output" : files[i], outputs[i]) << '\n';
  }
}

/// Returns the first rows of each input, or zeros if there are no inputs.
ExportSample sample_of(const ModelHandle& model, const std::vector<at::Tensor>& inputs) {
  NamedArrays sample;
  for (const at::Tensor& rows : inputs) {
    sample.emplace_back("", rows.narrow(0, 0, std::min<int64_t>(2, rows.size(0))));
  }
  if (!sample.empty()) return sample;
  for (Shape shape : model->input_shapes()) {
    std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{2});
    sample.emplace_back("", at::zeros(shape));
  }
  return sample;
}

/// Throws ConfigError for a path with an unknown extension.
void check_out(const std::string& path, const ConvertFlags& flags) {
  if (!flags.like.empty() && (is_weights(path) || !fs::path(path).extension().empty())) {
    throw ConfigError("--like", "a folder for OUT, in which Hugging Face's files are written",
                      "\"" + path + "\"", "give a name without extension, or leave --like out");
  }
  if (path.ends_with(".keras") || is_weights(path) || path.ends_with(".json")) return;
  if (fs::path(path).extension().empty()) return;
  throw ConfigError("OUT",
                    "a name that ends in .keras, .weights.h5, .weights.json, .safetensors "
                    "or .json, or a folder for an export",
                    "\"" + path + "\"", "add one of these endings");
}

/// Copies what a folder of Hugging Face's programs has beside its weights and config.json.
void copy_other_files(const std::string& from, const std::string& to) {
  if (!fs::is_directory(from) || fs::equivalent(from, to)) return;
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model",
        "chat_template.jinja", "generation_config.json"}) {
    const fs::path file = fs::path(from) / name;
    if (!fs::exists(file)) continue;
    fs::copy_file(file, fs::path(to) / name, fs::copy_options::overwrite_existing);
  }
}

void write_model(const ModelHandle& model, const std::string& path, const ConvertFlags& flags,
                 const std::vector<at::Tensor>& inputs, bool is_first) {
  if (!flags.like.empty()) {
    save_pretrained(model, path, {.like = flags.like});
    if (is_first) copy_other_files(flags.like, path);
  } else if (path.ends_with(".keras")) {
    model.save(path);
  } else if (is_weights(path)) {
    model.save_weights(path, {.max_shard_size = path.ends_with(".json") ? std::optional<double>(5)
                                                                        : std::nullopt});
  } else if (path.ends_with(".json")) {
    if (is_first) write_file(path, model.to_json());
  } else {
    export_model(model, path, {.sample = sample_of(model, inputs)});
  }
  if (is_first) std::cout << "-> " << path << '\n';
}

int convert_main(int argc, char** argv) {
  ConvertFlags flags;
  app::AppOptions options = app::AppOptions::bare("convert",
                                                  "Converts a model between the file formats of "
                                                  "Keras, Tessera and Hugging Face, and runs it on "
                                                  "arrays.");
  app::CommonOptions common;
  options.add_arguments("PATH",
                        "IN [OUT]: formats by extension: .keras, .h5 and .hdf5 are "
                        "models, .json is a model without weights, .weights.h5, .weights.json and "
                        ".safetensors are weights, as is any file with --model, also "
                        ".safetensors.index.json; .gguf files and folders with config.json and "
                        ".safetensors files are pretrained language models; another folder is an "
                        "export",
                        flags.paths);
  options.add({"model", "Model",
               "the model, if IN has weights only: .keras, .json or a pretrained one",
               app::input_path(flags.model)});
  options.add({"rename", "Model",
               "RE2 expressions and replacements that turn the names in a safetensors file into "
               "paths of weights, separated by spaces",
               app::text(flags.rename, "EXPR=NAME...")});
  options.add({"transpose", "Model",
               "RE2 expressions for the paths of weights that the file has in PyTorch's layout",
               app::text(flags.transpose, "EXPR...")});
  options.add({"cast", "Model", "convert floating dtypes of a safetensors file to the model's",
               app::toggle(flags.cast)});
  options.add({"like", "Model",
               "write OUT as a folder of Hugging Face's programs, with the configuration, the "
               "tokenizer and the names of this folder or .gguf file",
               app::input_path(flags.like)});
  options.add({"dtype", "Model", "dtype of the weights of a pretrained model",
               app::choice(flags.dtype, {"bfloat16", "float16", "float32", "float64"})});
  options.add({"summary", "Model", "print the table of its layers", app::toggle(flags.summary)});
  options.add({"mesh", "Model", "mesh to place the model on", app::mesh_dims(common.mesh)});
  options.add(
      {"layouts", "Model", "JSON file of layouts", app::input_file(common.layouts, "FILE")});
  options.add({"inputs", "Arrays", "arrays to run the model on, one per input",
               app::text(flags.inputs, "FILE.npy,...")});
  options.add(
      {"outputs", "Arrays", "files for the outputs", app::text(flags.outputs, "FILE.npy,...")});
  options.add(
      {"batch-size", "Arrays", "rows per call of the model", app::integer(flags.batch_size, 1)});
  if (!options.parse(argc, argv)) return 0;
  if (flags.paths.empty() || flags.paths.size() > 2) {
    throw ConfigError("command line", "convert IN [OUT]",
                      counted(int64_t(flags.paths.size()), "path"), "see convert --help");
  }
  if (flags.model.empty() && (!flags.rename.empty() || !flags.transpose.empty() || flags.cast)) {
    throw ConfigError("--model",
                      "a model to load the weights into, with --rename, --transpose or --cast",
                      "none", "give its .keras or .json file");
  }
  if (!flags.outputs.empty() && flags.inputs.empty()) {
    throw ConfigError("--outputs", "--inputs, which the model is run on", "none", "give them");
  }
  if (flags.paths.size() == 2) check_out(flags.paths[1], flags);
  common.verbose = 0;
  const app::Setup setup = app::set_up(common, {{"batch", 1}});
  const bool is_first = is_first_process(setup.layouts.mesh());
  const ModelHandle model = read_model(flags.paths[0], flags, setup.layouts);
  if (is_first) std::cout << flags.paths[0] << ": " << described(model) << '\n';
  if (flags.summary && is_first) model->summary();
  std::vector<at::Tensor> inputs;
  if (!flags.inputs.empty()) {
    inputs = read_inputs(model, flags);
    run_model(model, inputs, flags, is_first);
  }
  if (flags.paths.size() == 2) write_model(model, flags.paths[1], flags, inputs, is_first);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, convert_main); }
