#include <tessera/framework/io/load_model.hpp>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"

namespace keras_file_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

ModelHandle model_of_many() {
  const Input steps({6, 4});
  const SymbolicTensor read = Bidirectional(GRU(4, {.return_sequences = true}))(steps);
  const SymbolicTensor seen = MultiHeadAttention(2, 4)({read, read});
  const SymbolicTensor each = TimeDistributed(Dense(6))(BatchNormalization()(seen));
  const Sequential end({Flatten(), Dense(8, {.activation = "relu"}), Dropout(0.5), Dense(3)});
  return Functional({steps}, {end(each)});
}

/// Returns layouts that shard the last axis of kernels over "model".
LayoutMap sharded_kernels(const Mesh& mesh) {
  LayoutMap layouts(mesh);
  layouts[".*(dense|cell).*/kernel"] = {unsharded, "model"};
  layouts["multi_head_attention/.*/kernel"] = {unsharded, "model", unsharded};
  return layouts;
}

std::string difference(const ModelHandle& a, const ModelHandle& b) {
  const std::vector<at::Tensor> left = a->get_weights(), right = b->get_weights();
  if (left.size() != right.size()) return "other weights";
  std::string text;
  for (size_t i = 0; i < left.size(); ++i) {
    if (!left[i].equal(right[i])) text += a->weights()[i].path() + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("a model is saved from one mesh and loaded on another") {
  const test::TempFolder folder;
  const ModelHandle model = model_of_many();
  const at::Tensor x = at::arange(48, at::kFloat).reshape({2, 6, 4}).sin();
  const at::Tensor y = model.predict(TensorDataset(x, at::zeros({2})));
  model.save(folder / "model.keras");
  const ModelHandle same = load_model(folder / "model.keras");
  CHECK(same.to_json() == model.to_json());
  CHECK(same.predict(TensorDataset(x, at::zeros({2}))).equal(y));
  CHECK(difference(model, same) == "");
  const LayoutMap layouts =
      sharded_kernels(create_mesh({{"batch", 1}, {"model", 2}}, virtual_cpus(2)));
  const ModelHandle cut = load_model(folder / "model.keras", {.layouts = layouts});
  CHECK(cut->weights()[0].layout().describe() == "(unsharded, model)");
  CHECK(difference(model, cut) == "");
  // Predictions run on that mesh, too.
  CHECK(at::allclose(cut.predict(TensorDataset(x, at::zeros({2}))), y, 1e-5, 1e-5));
  CHECK(cut->weights()[0].layout().describe() == "(unsharded, model)");
  cut.save(folder / "cut.keras");
  CHECK(difference(model, load_model(folder / "cut.keras")) == "");
}

TEST_CASE("adapted vocabularies are stored as files of the model") {
  const test::TempFolder folder;
  const at::Tensor codes = at::tensor({7, 3, 3, 9, 7, 3}, at::kLong).reshape({3, 2});
  const IntegerLookup learned({.output_mode = "multi_hot"}), other;
  learned.adapt(codes);
  other.adapt(codes + 1);
  const IntegerLookup preset({.vocabulary = {3, 9}, .output_mode = "count"});
  const Input input({2}, {.dtype = "int64"});
  const SymbolicTensor weights = Rescaling(0.5)(other(input));
  const SymbolicTensor counts =
      CategoryEncoding(5, {.output_mode = "count"})({other(input), weights});
  const Functional model({input},
                         {Dense(2)(Concatenate()({learned(input), preset(input), counts}))});
  const at::Tensor y = model.predict(TensorDataset(codes, at::zeros({3})));
  for (const bool zipped : {true, false}) {
    const std::string path = folder / (zipped ? "model.keras" : "model");
    model.save(path, {.zipped = zipped});
    const ModelHandle same = load_model(path);
    CHECK(same.predict(TensorDataset(codes, at::zeros({3}))).equal(y));
    CHECK(same.to_json() == model.to_json());
    same.save(path, {.zipped = zipped});
    CHECK(load_model(path).predict(TensorDataset(codes, at::zeros({3}))).equal(y));
  }
  const std::string assets = folder / "model/assets/layers/";
  CHECK(read_file(assets + "integer_lookup/vocabulary.txt") == "-1\n4\n8\n10");
  CHECK(read_file(assets + "integer_lookup_1/vocabulary.txt") == "-1\n3\n7\n9");
  CHECK_FALSE(exists(assets + "integer_lookup_2"));
  test::write_file(assets + "integer_lookup_1/vocabulary.txt", "-1\n3\n7\n9\n11");
  CHECK_THROWS_WITH(load_model(folder / "model"), Contains("[IntegerLookup integer_lookup") &&
                                                      Contains("4 lines") && Contains("5"));
  const IntegerLookup weighted({.output_mode = "tf_idf"});
  weighted.adapt(codes);
  const Functional refused({input}, {weighted(input)});
  CHECK_THROWS_WITH(refused.save(folder / "w.keras"),
                    Contains("w.keras") && Contains("idf_weights.txt") && Contains("as options"));
}

TEST_CASE("a model with text inputs is refused, with what to do") {
  const test::TempFolder folder;
  const Functional model = [] {
    const Input input({2});
    return Functional({input}, {Dense(2)(input)});
  }();
  model.save(folder / "model", {.zipped = false});
  const std::string file = folder / "model/config.json";
  Json config = Json::parse(read_file(file));
  config["config"]["layers"][0] = {{"class_name", "TextVectorization"},
                                   {"config", {{"name", "words"}}}};
  test::write_file(file, config.dump());
  CHECK_THROWS_WITH(load_model(folder / "model"),
                    Contains("config.json") && Contains("TextVectorization \"words\"") &&
                        Contains("takes texts") && Contains("load_text_layer()"));
}

TEST_CASE("a text layer of a Keras model can be loaded separately, with its vocabulary") {
  const std::string path = test::golden_path("keras_text_model.keras");
  CHECK_THROWS_WITH(load_model(path), Contains("which takes texts"));
  const LookupHandle words(load_text_layer(path, "words"));
  CHECK(words.get_vocabulary() ==
        std::vector<std::string>{"", "[UNK]", "fine", "film", "a", "story", "dull", "acting"});
  CHECK(words.transform(std::vector<std::string>{"fine words, a film"})
            .equal(at::tensor({2, 1, 4, 3}, at::kLong).reshape({1, 4})));
  // A text layer in a nested model.
  const LookupHandle kinds(load_text_layer(path, "kinds"));
  CHECK(kinds.get_vocabulary() == std::vector<std::string>{"[UNK]", "drama", "comedy"});
  CHECK_THROWS_WITH(load_text_layer(path), Contains("one layer that takes texts") &&
                                               Contains("\"words\", \"kinds\"") &&
                                               Contains("pass one of these names"));
  CHECK_THROWS_WITH(load_text_layer(path, "word"), Contains("a layer that takes texts, \"word\""));

  const test::TempFolder folder;
  const Input input({2});
  Functional({input}, {Dense(2)(input)}).save(folder / "model.keras");
  CHECK_THROWS_WITH(load_text_layer(folder / "model.keras"), Contains("Received: none"));
  const ZipArchive archive(path);
  test::write_file(folder / "config.json", archive.read(*archive.find("config.json"), 1 << 20));
  test::write_file(folder / "model.weights.h5",
                   archive.read(*archive.find("model.weights.h5"), 1 << 20));
  CHECK_THROWS_WITH(load_text_layer(folder.path(), "kinds"),
                    Contains("the vocabulary of \"kinds\"") && Contains("after adapt()"));
}

TEST_CASE("processes save and load their own shards") {
  const test::TempFolder folder;
  const ModelHandle one = model_of_many();
  one.save(folder / "one.keras");
  const auto half = [&](int, const std::shared_ptr<Communicator>& communicator) {
    const LayoutMap layouts =
        sharded_kernels(test::rank_mesh({{"batch", 1}, {"model", 2}}, communicator));
    const ModelHandle sharded = load_model(folder / "one.keras", {.layouts = layouts});
    sharded.save(folder / "two.keras");
    sharded.save_weights(folder / "two.weights.h5");
  };
  CHECK_NOTHROW(test::run_ranks(2, half));
  CHECK(difference(one, load_model(folder / "two.keras")) == "");
  set_random_seed(7);
  const ModelHandle other = model_of_many();
  set_random_seed(0);
  CHECK(difference(one, other) != "");
  other.load_weights(folder / "two.weights.h5");
  CHECK(difference(one, other) == "");
}

}  // namespace keras_file_test
