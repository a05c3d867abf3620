// Runs pretrained models on several meshes, for compare_pretrained.py:
//   run_pretrained continue MODEL OUT COUNT ID...
//     Writes a JSON list: for each mesh the logits behind the ids, and COUNT tokens that follow.
//   run_pretrained train MODEL TOKENIZER TEXT OUT
//     Trains on rows of 65 tokens of a file, 4 rows a step. Writes {"ids": of the first step,
//     "losses": for each mesh those of the steps}.
//   run_pretrained embed FOLDER TEXTS OUT
//     Writes OUT_ids.npy and OUT_mask.npy, and the embeddings of the texts on each mesh,
//     OUT_0.npy and so on. In TEXTS, each text follows its size in bytes, 32 bits, little-endian.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/write_file.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/language_model_layouts.hpp"

namespace {

using namespace tessera;

/// Returns tensor parallelism over "model": heads, hidden units and rows of the vocabulary.
LayoutMap tensor_layouts(const MeshDims& dims, int64_t devices) {
  LayoutMap layouts(create_mesh(dims, virtual_cpus(devices)));
  test::shard_language_model(layouts);
  return layouts;
}

LayoutMap one_device() { return LayoutMap(create_mesh({{"batch", 1}}, virtual_cpus(1))); }

/// Returns a mesh over which the steps of a sequence are sharded: ring attention.
LayoutMap ring_layouts() {
  LayoutMap layouts(create_mesh({{"batch", 1}, {"model", 4}}, virtual_cpus(4)));
  layouts.set_data("x", {"batch", "model"});
  return layouts;
}

void continue_tokens(const std::string& path, const std::string& out, int64_t count,
                     const TokenIds& ids) {
  Json results = Json::array();
  for (const LayoutMap& layouts :
       {one_device(), tensor_layouts({{"model", 3}}, 3),
        tensor_layouts({{"batch", 2}, {"model", 3}}, 6), ring_layouts()}) {
    const ModelHandle model = load_pretrained(path, {.layouts = layouts, .dtype = "float32"});
    const at::Tensor row = at::tensor(ids, at::kLong).unsqueeze(0);
    const at::Tensor logits = model.predict(row.repeat({2, 1})).select(1, -1).to(at::kDouble);
    Json result = {{"mesh", layouts.mesh().describe()}};
    for (int64_t i = 0; i < 2; ++i) {
      const at::Tensor one = logits[i].contiguous();
      const double* const first = one.const_data_ptr<double>();
      result["logits"].push_back(std::vector<double>(first, first + one.numel()));
    }
    for (const GeneratedTokens& text : generate(model, {ids, ids}, {.max_new_tokens = count})) {
      result["tokens"].push_back(text.tokens);
    }
    results.push_back(std::move(result));
  }
  write_file(out, to_json_text(results));
}

void train(const std::string& path, const std::string& tokenizer, const std::string& text,
           const std::string& out) {
  constexpr int64_t rows = 16, length = 65, batch = 4;
  const std::vector<int32_t> found =
      load_tokenizer(tokenizer).encode(tessera::detail::read_file(text)).ids;
  const TokenIds ids(found.begin(), found.end());
  const at::Tensor words = at::tensor(ids, at::kLong).slice(0, 0, rows * length).view({rows, -1});
  Json result = {{"ids", TokenIds(ids.begin(), ids.begin() + batch * length)}};
  for (const LayoutMap& layouts : {one_device(), tensor_layouts({{"batch", 2}, {"model", 3}}, 6)}) {
    const ModelHandle model = load_pretrained(path, {.layouts = layouts, .dtype = "float32"});
    model.compile({.optimizer = Adam(1e-5),
                   .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                   .layouts = layouts});
    const History history =
        model.fit(words.slice(1, 0, length - 1).contiguous(), words.slice(1, 1).contiguous(),
                  {.batch_size = batch, .verbose = 0, .shuffle = false});
    result["losses"].push_back(history.steps);
  }
  write_file(out, to_json_text(result));
}

void embed_texts(const std::string& folder, const std::string& texts, const std::string& out) {
  const std::string bytes = tessera::detail::read_file(texts);
  std::vector<std::string_view> list;
  for (size_t at = 0; at + 4 <= bytes.size();) {
    uint32_t length;
    std::memcpy(&length, bytes.data() + at, 4);
    list.push_back(std::string_view(bytes).substr(at + 4, length));
    at += 4 + length;
  }
  const PretrainedTokenizer tokenize(load_tokenizer(folder), {.length = 128});
  const TokenBatch batch = tokenize.encode(list);
  datasets::save_npy(out + "_ids.npy", batch.ids);
  datasets::save_npy(out + "_mask.npy", batch.attention_mask);
  const TensorDataset rows(Examples{.x = {batch.ids, batch.attention_mask, batch.type_ids}});
  int number = 0;
  for (const LayoutMap& layouts :
       {one_device(), tensor_layouts({{"model", 2}}, 2), tensor_layouts({{"model", 4}}, 4),
        tensor_layouts({{"batch", 2}, {"model", 2}}, 4)}) {
    const ModelHandle model = load_pretrained(folder, {.layouts = layouts, .dtype = "float32"});
    const at::Tensor states = model.predict_all(rows)[0];
    const at::Tensor mask = batch.attention_mask.unsqueeze(-1).to(at::kFloat);
    const at::Tensor mean = (states * mask).sum(1) / mask.sum(1);
    const at::Tensor lengths = mean.square().sum(-1, /*keepdim=*/true).sqrt();
    datasets::save_npy(out + "_" + std::to_string(number++) + ".npy", mean / lengths);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments, arguments + count);
  try {
    if (count > 5 && words[1] == "continue") {
      TokenIds ids;
      for (size_t i = 5; i < words.size(); ++i) ids.push_back(std::stoll(words[i]));
      continue_tokens(words[2], words[3], std::stoll(words[4]), ids);
      return 0;
    }
    if (count == 6 && words[1] == "train") {
      train(words[2], words[3], words[4], words[5]);
      return 0;
    }
    if (count == 5 && words[1] == "embed") {
      embed_texts(words[2], words[3], words[4]);
      return 0;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 2;
}
