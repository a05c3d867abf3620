// Adapters of peft for models of load_pretrained(): applied, they are the base with B · A added to
// its weights.
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

namespace pretrained_adapters_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using Tensors = std::map<std::string, at::Tensor>;

/// Returns values in (-1, 1) that depend on the name.
at::Tensor named_values(const std::string& name, const Shape& shape) {
  int64_t seed = 7;
  for (const char c : name) seed = (seed * 31 + c) % 1009;
  return at::sin(at::arange(numel(shape), at::kFloat).mul(1.7) + static_cast<double>(seed))
      .view(shape)
      .mul(0.5);
}

void write_tensors(const std::string& path, const Tensors& tensors) {
  std::vector<SafeTensor> list;
  for (const auto& [name, tensor] : tensors) {
    list.push_back({name,
                    "F32",
                    tensor.sizes().vec(),
                    {static_cast<const std::byte*>(tensor.const_data_ptr()),
                     static_cast<size_t>(tensor.nbytes())}});
  }
  write_safetensors(path, std::move(list), {{"format", "pt"}});
}

void write_base(const std::string& folder, const Json& config, const Tensors& tensors) {
  tessera::write_file(folder + "/config.json", to_json_text(config));
  write_tensors(folder + "/model.safetensors", tensors);
}

Json llama_config() {
  return {{"model_type", "llama"},
          {"vocab_size", 11},
          {"hidden_size", 8},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 2},
          {"intermediate_size", 12},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 100.0},
          {"tie_word_embeddings", true},
          {"hidden_act", "silu"}};
}

Tensors llama_tensors() {
  const std::string block = "model.layers.0.";
  Tensors tensors;
  for (const auto& [name, shape] :
       std::map<std::string, Shape>{{"model.embed_tokens.weight", {11, 8}},
                                    {"model.norm.weight", {8}},
                                    {block + "input_layernorm.weight", {8}},
                                    {block + "post_attention_layernorm.weight", {8}},
                                    {block + "self_attn.q_proj.weight", {8, 8}},
                                    {block + "self_attn.k_proj.weight", {4, 8}},
                                    {block + "self_attn.v_proj.weight", {4, 8}},
                                    {block + "self_attn.o_proj.weight", {8, 8}},
                                    {block + "mlp.gate_proj.weight", {12, 8}},
                                    {block + "mlp.up_proj.weight", {12, 8}},
                                    {block + "mlp.down_proj.weight", {8, 12}}}) {
    tensors[name] = named_values(name, shape);
  }
  return tensors;
}

at::Tensor token_ids() {
  return at::tensor({1, 4, 9, 2, 7, 3, 3, 10, 0, 5}, at::kLong).view({2, -1});
}

/// Adds an adapter of a module with a weight (outputs, inputs) to a file, and its product to the
/// weight.
void adapt(Tensors& adapter, Tensors& base, const std::string& module, int64_t rank, double scale,
           bool is_conv = false) {
  at::Tensor& weight = base.at(module + ".weight");
  const at::Tensor matrix = is_conv ? weight.t() : weight;
  const std::string prefix = "base_model.model." + module;
  const at::Tensor a = named_values(prefix + "a", {rank, matrix.size(1)});
  const at::Tensor b = named_values(prefix + "b", {matrix.size(0), rank});
  adapter[prefix + ".lora_A.weight"] = a;
  adapter[prefix + ".lora_B.weight"] = b;
  const at::Tensor sum = matrix + at::matmul(b, a) * scale;
  weight = (is_conv ? sum.t() : sum).contiguous();
}

Json peft_config(int64_t rank, double alpha) {
  return {{"peft_type", "LORA"}, {"r", rank}, {"lora_alpha", alpha}};
}

}  // namespace

TEST_CASE("adapters of a Llama are those of the base with their products added") {
  Tensors merged = llama_tensors(), adapter;
  const std::string block = "model.layers.0.";
  for (const char* const module : {"self_attn.q_proj", "self_attn.v_proj", "self_attn.o_proj",
                                   "mlp.gate_proj", "mlp.down_proj"}) {
    adapt(adapter, merged, block + module, 2, 1.5);
  }
  // A table has its rows as inputs: (rank, rows) and (features, rank).
  const std::string table = "base_model.model.model.embed_tokens.lora_embedding_";
  adapter[table + "A"] = named_values("a", {2, 11});
  adapter[table + "B"] = named_values("b", {8, 2});
  at::Tensor& words = merged.at("model.embed_tokens.weight");
  words = words + at::matmul(adapter[table + "B"], adapter[table + "A"]).t() * 1.5;

  const test::TempFolder base, whole, files;
  const std::string path = base.path().string(), adapters = files.path().string();
  write_base(path, llama_config(), llama_tensors());
  write_base(whole.path().string(), llama_config(), merged);
  tessera::write_file(adapters + "/adapter_config.json", to_json_text(peft_config(2, 3)));
  write_tensors(adapters + "/adapter_model.safetensors", adapter);
  const at::Tensor expected = load_pretrained(whole.path().string()).predict(token_ids());

  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4)));
  layouts[".*/(query|key|value)/kernel"] = {unsharded, "model", unsharded};
  layouts[".*/attention_output/kernel"] = {"model", unsharded, unsharded};
  for (const LayoutMap& map : {LayoutMap(), layouts}) {
    const ModelHandle model = load_pretrained(path, {.layouts = map});
    CHECK(test::difference(model.predict(token_ids()), expected, 1e-2, 1e-2) != "");
    load_pretrained_adapters(model, path, adapters);
    CHECK(test::difference(model.predict(token_ids()), expected, 1e-4, 1e-4) == "");
    // Saved again, they are what was read.
    const test::TempFolder again;
    save_pretrained_adapters(model, path, again.path().string());
    const SafetensorsFile file((again / "adapter_model.safetensors").string());
    REQUIRE(file.tensors().size() == adapter.size());
    for (const auto& [name, tensor] : adapter) {
      CAPTURE(name);
      const SafeTensor& found = file.at(name);
      REQUIRE(found.shape == tensor.sizes().vec());
      CHECK(at::equal(at::from_blob(const_cast<std::byte*>(found.data.data()), found.shape,
                                    at::TensorOptions().dtype(at::kFloat)),
                      tensor));
    }
    const Json config = read_json_file((again / "adapter_config.json").string());
    CHECK(config.at("lora_alpha") == 3);
    CHECK(config.at("target_modules").size() == 6);
    CHECK(config.at("base_model_name_or_path") == path);
    // Merged, save_pretrained() writes the whole model.
    model.merge_lora();
    save_pretrained(model, path);
    CHECK(test::difference(load_pretrained(path).predict(token_ids()), expected, 1e-4, 1e-4) == "");
    write_base(path, llama_config(), llama_tensors());
  }
}

TEST_CASE("an adapter of GPT-2's joint projection is one of query, key and value each") {
  const auto tensors = [] {
    Tensors list;
    const auto add = [&](const std::string& name, const Shape& shape) {
      list["transformer." + name] = named_values(name, shape);
    };
    add("wte.weight", {11, 8});
    add("wpe.weight", {6, 8});
    for (const std::string norm : {"ln_f", "h.0.ln_1", "h.0.ln_2"}) {
      add(norm + ".weight", {8});
      add(norm + ".bias", {8});
    }
    for (const auto& [name, shape] : std::map<std::string, Shape>{{"h.0.attn.c_attn", {8, 24}},
                                                                  {"h.0.attn.c_proj", {8, 8}},
                                                                  {"h.0.mlp.c_fc", {8, 32}},
                                                                  {"h.0.mlp.c_proj", {32, 8}}}) {
      add(name + ".weight", shape);
      add(name + ".bias", {shape[1]});
    }
    return list;
  };
  const Json config = {{"model_type", "gpt2"}, {"vocab_size", 11}, {"n_embd", 8},
                       {"n_layer", 1},         {"n_head", 2},      {"n_positions", 6}};
  Tensors merged = tensors(), adapter;
  adapt(adapter, merged, "transformer.h.0.attn.c_attn", 2, 2, /*is_conv=*/true);
  adapt(adapter, merged, "transformer.h.0.mlp.c_fc", 2, 2, /*is_conv=*/true);
  const test::TempFolder base, whole, files;
  const std::string path = base.path().string(), adapters = files.path().string();
  write_base(path, config, tensors());
  write_base(whole.path().string(), config, merged);
  tessera::write_file(adapters + "/adapter_config.json", to_json_text(peft_config(2, 4)));
  write_tensors(adapters + "/adapter_model.safetensors", adapter);
  const at::Tensor expected = load_pretrained(whole.path().string()).predict(token_ids());
  const ModelHandle model = load_pretrained(path);
  CHECK(test::difference(model.predict(token_ids()), expected, 1e-2, 1e-2) != "");
  load_pretrained_adapters(model, path, adapters);
  CHECK(test::difference(model.predict(token_ids()), expected, 1e-4, 1e-4) == "");
  // The three now have factors A of their own, which one module cannot have.
  CHECK_THROWS_WITH(save_pretrained_adapters(model, path, adapters),
                    Contains("attention/query]") && Contains("c_attn"));
}

}  // namespace pretrained_adapters_test
