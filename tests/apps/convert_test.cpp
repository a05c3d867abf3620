// Tests of the program convert on files that earlier versions of Keras and other programs wrote.
#include <tessera/tessera.hpp>

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

}  // namespace

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
