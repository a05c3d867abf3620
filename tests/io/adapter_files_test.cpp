// Folders of adapters as peft writes them: names, shapes, round trips on meshes, what is refused.
#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/write_file.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"

namespace adapter_files_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Words, attention and a dense layer.
ModelHandle words_model() {
  const SymbolicTensor ids = Input({5}, {.dtype = "int32"});
  const SymbolicTensor words = Embedding(7, 6, {.name = "words"})(ids);
  const SymbolicTensor seen = MultiHeadAttention(2, 4, {.name = "seen"})({words, words});
  return Functional({ids}, {Dense(3, {.name = "out"})(seen)});
}

at::Tensor some_ids() { return at::arange(20, at::kInt).remainder(7).view({4, 5}); }

at::Tensor numbers(const Shape& shape, double phase) {
  return at::sin(at::arange(numel(shape), at::kFloat).mul(1.3) + phase).view(shape);
}

/// Sets A and B of every adapter.
void fill_adapters(const ModelHandle& model) {
  double phase = 0;
  for (Variable weight : model.weights()) {
    if (weight.path().find("/lora_") == std::string::npos) continue;
    const at::Tensor values = numbers(weight.shape(), phase += 1);
    weight.assign(pack(values, Layout::replicated(weight.layout().mesh(), values.dim())));
  }
}

at::Tensor tensor_of(const SafetensorsFile& file, const std::string& name) {
  const SafeTensor& found = file.at(name);
  REQUIRE(found.dtype == "F32");
  return at::from_blob(const_cast<std::byte*>(found.data.data()), found.shape,
                       at::TensorOptions().dtype(at::kFloat))
      .clone();
}

at::Tensor value_of(const ModelHandle& model, const std::string& path) {
  for (const Variable& weight : model.weights()) {
    if (weight.path() == path) return weight.value().full();
  }
  FAIL("no weight " << path);
  return {};
}

struct AdapterFolder {
  std::string path() const { return folder.path().string(); }
  std::string config() const { return (folder / "adapter_config.json").string(); }
  std::string tensors() const { return (folder / "adapter_model.safetensors").string(); }
  void write(const Json& json, const std::map<std::string, at::Tensor>& values) const {
    tessera::write_file(config(), to_json_text(json));
    std::vector<SafeTensor> list;
    for (const auto& [name, value] : values) {
      list.push_back({name,
                      value.scalar_type() == at::kBFloat16 ? "BF16" : "F32",
                      value.sizes().vec(),
                      {static_cast<const std::byte*>(value.const_data_ptr()),
                       static_cast<size_t>(value.nbytes())}});
    }
    write_safetensors(tensors(), std::move(list), {{"format", "pt"}});
  }
  test::TempFolder folder;
};

}  // namespace

TEST_CASE("save_adapters writes factors as peft has them, with its names and configuration") {
  const ModelHandle model = words_model();
  model.enable_lora("words|out", 2, {.alpha = 3});
  fill_adapters(model);
  const AdapterFolder folder;
  save_adapters(model.model(), folder.path(), {.base_model = "base"});
  const SafetensorsFile file(folder.tensors());
  CHECK(file.tensors().size() == 4);
  CHECK(at::equal(tensor_of(file, "base_model.model.out.lora_A.weight"),
                  value_of(model, "out/lora_kernel_a").t()));
  CHECK(at::equal(tensor_of(file, "base_model.model.out.lora_B.weight"),
                  value_of(model, "out/lora_kernel_b").t()));
  CHECK(at::equal(tensor_of(file, "base_model.model.words.lora_embedding_A"),
                  value_of(model, "words/lora_embeddings_a").t()));
  CHECK(at::equal(tensor_of(file, "base_model.model.words.lora_embedding_B"),
                  value_of(model, "words/lora_embeddings_b").t()));
  const Json config = read_json_file(folder.config());
  CHECK(config.at("peft_type") == "LORA");
  CHECK(config.at("r") == 2);
  CHECK(config.at("lora_alpha") == 3);
  CHECK(config.at("target_modules") == Json({"words", "out"}));
  CHECK(config.at("base_model_name_or_path") == "base");
  CHECK(config.at("rank_pattern").empty());
}

TEST_CASE("an adapter with Keras' shapes is written as an equal one of a matrix") {
  const ModelHandle model = words_model();
  model.enable_lora("seen/.*|out", 2, {.alpha = 3});
  fill_adapters(model);
  const AdapterFolder folder;
  save_adapters(model.model(), folder.path());
  const SafetensorsFile file(folder.tensors());
  // Two heads, each with a rank of 2.
  const at::Tensor a = tensor_of(file, "base_model.model.seen.query.lora_A.weight");
  const at::Tensor b = tensor_of(file, "base_model.model.seen.query.lora_B.weight");
  CHECK(a.sizes() == at::IntArrayRef({4, 6}));
  CHECK(b.sizes() == at::IntArrayRef({8, 4}));
  const Json config = read_json_file(folder.config());
  CHECK(config.at("r") == 4);
  CHECK(config.at("lora_alpha") == 6);
  CHECK(config.at("rank_pattern") == Json({{"seen.attention_output", 2}, {"out", 2}}));
  CHECK(config.at("alpha_pattern") == Json({{"seen.attention_output", 3}, {"out", 3}}));
  const at::Tensor kernel = value_of(model, "seen/query/kernel").flatten(1);
  model.merge_lora();
  const at::Tensor merged = value_of(model, "seen/query/kernel").flatten(1);
  CHECK(test::difference(merged, kernel + at::matmul(b, a).t() * (6.0 / 4), 1e-5, 1e-5) == "");
}

TEST_CASE("adapters loaded alone give the predictions, in every layout") {
  const ModelHandle model = words_model();
  const std::vector<at::Tensor> base = model.get_weights();
  for (const bool as_matrix : {false, true}) {
    const ModelHandle adapted = words_model();
    adapted.set_weights(base);
    adapted.enable_lora(".*", 2, {.alpha = 3, .as_matrix = as_matrix});
    fill_adapters(adapted);
    const at::Tensor expected = adapted.predict(some_ids());
    CHECK(test::difference(model.predict(some_ids()), expected, 1e-2, 1e-2) != "");
    const AdapterFolder folder;
    save_adapters(adapted.model(), folder.path());
    for (const LayoutSpec& kernel :
         {LayoutSpec{unsharded, unsharded}, {unsharded, "model"}, {"model", unsharded}}) {
      CAPTURE(as_matrix, to_string(kernel));
      LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 3}}, virtual_cpus(6)));
      layouts["out/kernel"] = {unsharded, kernel[1]};
      layouts["words/embeddings"] = kernel;
      const ModelHandle loaded = words_model();
      loaded.set_weights(base);
      loaded.compile({.layouts = layouts});
      load_adapters(loaded.model(), folder.path());
      CHECK(loaded.get_layer("words")->own_weights()[2].layout() ==
            Layout(LayoutSpec{unsharded, kernel[1]}, layouts.mesh()));
      CHECK(test::difference(loaded.predict(some_ids()), expected, 1e-4, 1e-4) == "");
      // Saved from shards, they are the same.
      const AdapterFolder again;
      save_adapters(loaded.model(), again.path());
      CHECK(test::read_file(again.tensors()) == test::read_file(folder.tensors()));
    }
    if (!as_matrix) continue;
    const ModelHandle same = words_model();
    same.set_weights(base);
    same.enable_lora(".*", 2, {.alpha = 3, .as_matrix = true});
    load_adapters(same.model(), folder.path());
    CHECK(at::equal(same.predict(some_ids()), expected));
  }
}

TEST_CASE("alpha_pattern, use_rslora and bfloat16 of peft's files are read") {
  const ModelHandle model = words_model();
  const at::Tensor out = value_of(model, "out/kernel"),
                   query = value_of(model, "seen/query/kernel");
  const at::Tensor a = numbers({2, 6}, 1), b = numbers({3, 2}, 2).to(at::kBFloat16);
  const at::Tensor qa = numbers({4, 6}, 3), qb = numbers({8, 4}, 4);
  const std::map<std::string, at::Tensor> values = {
      {"base_model.model.out.lora_A.weight", a},
      {"base_model.model.out.lora_B.weight", b},
      {"base_model.model.seen.query.lora_A.weight", qa},
      {"base_model.model.seen.query.lora_B.weight", qb}};
  const AdapterFolder folder;
  folder.write({{"peft_type", "LORA"},
                {"r", 2},
                {"lora_alpha", 5},
                {"bias", "none"},
                {"alpha_pattern", {{"query", 6}}},
                {"lora_dropout", 0.05}},
               values);
  load_adapters(model.model(), folder.path());
  model.merge_lora();
  CHECK(test::difference(value_of(model, "out/kernel"),
                         out + at::matmul(b.to(at::kFloat), a).t() * 2.5, 1e-5, 1e-5) == "");
  CHECK(test::difference(value_of(model, "seen/query/kernel").flatten(1),
                         query.flatten(1) + at::matmul(qb, qa).t() * 1.5, 1e-5, 1e-5) == "");

  const ModelHandle by_root = words_model();
  const at::Tensor before = value_of(by_root, "out/kernel");
  folder.write({{"peft_type", "LORA"}, {"lora_alpha", 4}, {"use_rslora", true}}, values);
  load_adapters(by_root.model(), folder.path());
  by_root.merge_lora();
  CHECK(test::difference(value_of(by_root, "out/kernel"),
                         before + at::matmul(b.to(at::kFloat), a).t() * (4 / std::sqrt(2.0)), 1e-5,
                         1e-5) == "");
}

TEST_CASE("adapters that do not fit are refused, and nothing is changed") {
  const ModelHandle model = words_model();
  const AdapterFolder folder;
  CHECK_THROWS_WITH(save_adapters(model.model(), folder.path()), Contains("enable_lora() first"));
  const Json config = {{"peft_type", "LORA"}, {"lora_alpha", 4}};
  const std::string out = "base_model.model.out.lora_";
  const at::Tensor a = numbers({2, 6}, 1), b = numbers({3, 2}, 2);
  const auto refused = [&](const Json& json, const std::map<std::string, at::Tensor>& values,
                           const std::string& text) {
    folder.write(json, values);
    CHECK_THROWS_WITH(load_adapters(model.model(), folder.path()), Contains(text));
    CHECK_FALSE(model.get_layer("out")->has_lora());
  };
  refused(config, {{out + "A.weight", a}}, "\"base_model.model.out.lora_A.weight\"");
  refused(config, {{out + "A.weight", a}, {out + "B.weight", b}, {"base_model.model.x", a}},
          "\"base_model.model.x\"");
  refused(config, {{out + "A.weight", a}, {out + "B.weight", numbers({4, 2}, 0)}},
          "\"out/kernel\"");
  refused(config, {{out + "A.weight", a}, {out + "B.weight", numbers({3, 1}, 0)}},
          "\"out/kernel\"");
  refused(config, {{out + "A.weight", numbers({6}, 0)}, {out + "B.weight", b}}, "matrix of floats");
  const std::map<std::string, at::Tensor> good = {{out + "A.weight", a}, {out + "B.weight", b}};
  refused({{"peft_type", "IA3"}}, good, "peft_type");
  refused({{"peft_type", "LORA"}, {"use_dora", true}}, good, "use_dora");
  refused({{"peft_type", "LORA"}, {"bias", "all"}}, good, "bias");
  refused({{"peft_type", "LORA"}, {"modules_to_save", {"lm_head"}}}, good, "modules_to_save");
  folder.write(config, good);
  model.get_layer("out")->enable_lora(1);
  CHECK_THROWS_WITH(load_adapters(model.model(), folder.path()),
                    Contains("rank, alpha and shapes of \"out/lora_kernel_a\""));
}

}  // namespace adapter_files_test
