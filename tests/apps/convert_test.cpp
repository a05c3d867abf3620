// Tests of the program convert on files that earlier versions of Keras and other programs wrote.
#include <tessera/tessera.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include <ATen/ATen.h>

#include <tessera/framework/io/format/safetensors.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_file.hpp"
#include "tests/support/program.hpp"

namespace convert_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

const at::Tensor kernel = at::arange(8, at::kFloat).reshape({4, 2});
const at::Tensor bias = at::ones({2});

Json one_layer() {
  const Json layer = {
      {"class_name", "Dense"},
      {"config",
       {{"name", "d"}, {"units", 2}, {"batch_input_shape", {nullptr, 4}}, {"trainable", true}}}};
  return {{"class_name", "Sequential"},
          {"config", {{"name", "s"}, {"layers", Json::array({layer})}}}};
}

test::ProgramRun convert(const std::vector<std::string>& arguments) {
  return test::run_program(test::app_path("convert"), arguments);
}

/// Returns the bytes of a tensor.
std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()),
          static_cast<size_t>(tensor.nbytes())};
}

/// Writes a Llama of one block as Hugging Face's programs do, with a tokenizer's file.
std::map<std::string, at::Tensor> write_llama(const std::filesystem::path& folder) {
  std::map<std::string, at::Tensor> state;
  const auto add = [&](const std::string& name, const Shape& shape) {
    state[name] = at::sin(at::arange(numel(shape), at::kFloat) + int64_t(state.size())).view(shape);
  };
  add("model.embed_tokens.weight", {11, 8});
  add("model.norm.weight", {8});
  const std::string block = "model.layers.0.";
  add(block + "input_layernorm.weight", {8});
  add(block + "post_attention_layernorm.weight", {8});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    add(block + "self_attn." + name + ".weight", {8, 8});
  }
  add(block + "mlp.gate_proj.weight", {12, 8});
  add(block + "mlp.up_proj.weight", {12, 8});
  add(block + "mlp.down_proj.weight", {8, 12});
  const Json config = {{"model_type", "llama"},    {"vocab_size", 11},
                       {"hidden_size", 8},         {"num_hidden_layers", 1},
                       {"num_attention_heads", 4}, {"rms_norm_eps", 1e-5},
                       {"intermediate_size", 12},  {"tie_word_embeddings", true}};
  std::filesystem::create_directories(folder);
  test::write_file(folder / "config.json", config.dump());
  test::write_file(folder / "tokenizer.json", "{}");
  std::vector<SafeTensor> tensors;
  for (const auto& [name, tensor] : state) {
    tensors.push_back({name, "F32", tensor.sizes().vec(), bytes_of(tensor)});
  }
  write_safetensors(folder / "model.safetensors", std::move(tensors), {{"format", "pt"}});
  return state;
}

}  // namespace

TEST_CASE("convert: a folder of Hugging Face's programs, to weights and back, in its own bits") {
  const test::TempFolder folder;
  const std::map<std::string, at::Tensor> state = write_llama(folder / "llama");
  const at::Tensor ids = at::tensor({1, 4, 9, 2, 7, 3}, at::kLong).view({2, -1});
  datasets::save_npy(folder / "ids.npy", ids);
  // Sharded here, so that each weight is gathered for the files.
  test::write_file(folder / "layouts.json",
                   R"({"mesh": {"model": 2}, "layouts": [)"
                   R"({"match": ".*(gate|up)/kernel", "layout": [null, "model"]}]})");
  for (const std::string name : {"weights.safetensors", "weights.weights.h5"}) {
    INFO(name);
    const test::ProgramRun run =
        convert({folder / "llama", folder / name, "--inputs", folder / "ids.npy", "--outputs",
                 folder / "logits.npy", "--layouts", folder / "layouts.json"});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const test::ProgramRun back = convert({folder / name, folder / "back", "--model",
                                           folder / "llama", "--like", folder / "llama", "--inputs",
                                           folder / "ids.npy", "--outputs", folder / "again.npy"});
    INFO(back.err);
    REQUIRE(back.exit_code == 0);
    const at::Tensor logits = datasets::load_npy(folder / "logits.npy");
    CHECK(logits.sizes().vec() == Shape{2, 3, 11});
    CHECK(at::allclose(logits, datasets::load_npy(folder / "again.npy"), 1e-5, 1e-5));
    const SafetensorsFile saved(folder / "back/model.safetensors");
    REQUIRE(saved.tensors().size() == state.size());
    for (const auto& [tensor, value] : state) {
      INFO(tensor);
      CHECK(std::ranges::equal(saved.at(tensor).data, bytes_of(value)));
    }
    CHECK(read_json_file(folder / "back/config.json").at("model_type") == "llama");
    CHECK(test::read_file(folder / "back/tokenizer.json") == "{}");
    std::filesystem::remove_all(folder / "back");
  }
  const test::ProgramRun half = convert(
      {folder / "llama", folder / "half", "--like", folder / "llama", "--dtype", "bfloat16"});
  INFO(half.err);
  REQUIRE(half.exit_code == 0);
  CHECK(SafetensorsFile(folder / "half/model.safetensors").at("model.norm.weight").dtype == "BF16");
}

TEST_CASE("convert: what a pretrained model cannot be written as is refused in a line") {
  const test::TempFolder folder;
  write_llama(folder / "llama");
  const test::ProgramRun file =
      convert({folder / "llama", folder / "out.safetensors", "--like", folder / "llama"});
  CHECK(file.exit_code != 0);
  CHECK_THAT(file.err, Contains("[--like]") && Contains("out.safetensors"));
  const test::ProgramRun none =
      convert({folder / "llama", folder / "out", "--like", folder / "no"});
  CHECK_THAT(none.err, Contains("--like") && Contains("must name a file or folder that exists"));
  std::filesystem::remove(folder / "llama/model.safetensors");
  const test::ProgramRun missing =
      convert({folder / "llama", folder / "out", "--like", folder / "llama"});
  CHECK(missing.exit_code != 0);
  CHECK_THAT(missing.err, Contains("model.safetensors"));
}

TEST_CASE("convert: weights of any name with a model, also from get_config()") {
  const test::TempFolder folder;
  const std::vector<std::pair<std::string, test::NamedData>> layers = {
      {"d", {{"d/kernel:0", kernel}, {"d/bias:0", bias}}}};
  test::write_legacy_file(folder / "best_weight.hdf5", {.layers = layers});
  test::write_file(folder / "model.json", one_layer().dump());
  test::write_file(folder / "config.json", one_layer().at("config").dump());
  for (const char* model : {"model.json", "config.json"}) {
    const test::ProgramRun run =
        convert({folder / "best_weight.hdf5", folder / "out.keras", "--model", folder / model});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(load_model(folder / "out.keras").get_weights()[0].equal(kernel));
  }
  const test::ProgramRun alone = convert({folder / "best_weight.hdf5", folder / "out.keras"});
  CHECK(alone.exit_code != 0);
  CHECK_THAT(alone.err, Contains("with convert: give --model"));
}

TEST_CASE("convert: a model with an unknown loss is converted without it") {
  const test::TempFolder folder;
  Json config = one_layer();
  config["compile_config"] = {{"optimizer", nullptr}, {"loss", "my_own"}};
  test::write_archive(folder / "m.keras", "3.8.0", config, {{"layers/dense", {kernel, bias}}});
  const test::ProgramRun run = convert({folder / "m.keras", folder / "out.keras"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("is converted without its loss, metrics and optimizer") &&
                          Contains("my_own"));
  CHECK(load_model(folder / "out.keras").get_weights()[0].equal(kernel));
  config["config"]["layers"][0]["class_name"] = "MyOwn";
  test::write_archive(folder / "m.keras", "3.8.0", config, {{"layers/dense", {kernel, bias}}});
  const test::ProgramRun refused = convert({folder / "m.keras", folder / "again.keras"});
  CHECK(refused.exit_code != 0);
  CHECK_THAT(refused.err, Contains("the layer class must be registered"));
}

TEST_CASE("convert: weights of another program, renamed, transposed and cast") {
  const test::TempFolder folder;
  const at::Tensor half = kernel.t().contiguous().to(at::kBFloat16), single = bias.clone();
  const auto bytes = [](const at::Tensor& tensor) {
    return std::span(static_cast<const std::byte*>(tensor.const_data_ptr()),
                     static_cast<size_t>(tensor.nbytes()));
  };
  write_safetensors(folder / "model-1.safetensors", {{"fc.weight", "BF16", {2, 4}, bytes(half)},
                                                     {"fc.bias", "F32", {2}, bytes(single)}});
  const Json map = {{"fc.weight", "model-1.safetensors"}, {"fc.bias", "model-1.safetensors"}};
  const std::string index = folder / "model.safetensors.index.json";
  test::write_file(index, Json{{"weight_map", map}}.dump());
  test::write_file(folder / "model.json", one_layer().dump());
  const std::vector<std::string> arguments = {
      index,      folder / "out.keras",       "--model",     folder / "model.json",
      "--rename", "^fc\\.=d/ weight$=kernel", "--transpose", "kernel$"};
  const test::ProgramRun refused = convert(arguments);
  CHECK(refused.exit_code != 0);
  CHECK_THAT(refused.err, Contains("or pass cast"));
  std::vector<std::string> with_cast = arguments;
  with_cast.push_back("--cast");
  const test::ProgramRun run = convert(with_cast);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const std::vector<at::Tensor> weights = load_model(folder / "out.keras").get_weights();
  CHECK(weights[0].equal(kernel));
  CHECK(weights[1].equal(bias));
  const test::ProgramRun alone = convert({index, "--cast"});
  CHECK_THAT(alone.err, Contains("[--model]"));
  const test::ProgramRun no_pair =
      convert({index, "--model", folder / "model.json", "--rename", "x"});
  CHECK_THAT(no_pair.err, Contains("[--rename] pairs EXPRESSION=REPLACEMENT"));
}

}  // namespace convert_test
