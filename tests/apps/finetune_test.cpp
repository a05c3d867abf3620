// Tests of the program finetune on a small random Llama.
#include <cmath>
#include <filesystem>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/apps/small_llama.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/program.hpp"

namespace finetune_test {

using namespace tessera;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

test::ProgramRun finetune(const std::vector<std::string>& arguments) {
  return test::run_program(test::app_path("finetune"), arguments);
}

/// A model and its data in a folder.
struct Sample {
  Sample() {
    fs::create_directory(folder / "base");
    test::write_small_llama(base);
    std::string lines;
    for (int i = 0; i < 12; ++i) {
      lines += "{\"text\": \"abcabcabcabc\"}\n";
      lines += "{\"prompt\": \"one, two\", \"completion\": \", three\"}\n";
      lines +=
          "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, "
          "{\"role\": \"assistant\", \"content\": \"Hello\"}]}\n";
    }
    test::write_file(data, lines);
  }

  /// Runs the program on them; returns the losses of its steps.
  std::vector<double> losses(std::vector<std::string> arguments) const {
    const std::string history = folder / "history.json";
    arguments.insert(arguments.begin(), {base, data, "--history", history, "--length", "32",
                                         "--schedule", "constant", "--verbose", "0"});
    const test::ProgramRun run = finetune(arguments);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return History::from_json(read_json_file(history), JsonPath(history)).steps;
  }

  test::TempFolder folder;
  std::string base = folder / "base", data = folder / "data.jsonl", out = folder / "out";
};

at::Tensor ids() { return at::tensor({97, 98, 99, 97, 98, 99}, at::kLong).view({1, -1}); }

}  // namespace

TEST_CASE("finetune: adapters, whose file gives the model that was trained") {
  const Sample sample;
  const std::vector<std::string> arguments = {
      "--lora",   "4", "--lora-layers", ".*/(query|value|up|down)", "--learning-rate", "0.05",
      "--epochs", "4", "--save"};
  std::vector<std::string> adapters = arguments, merged = arguments;
  adapters.push_back(sample.out);
  const std::vector<double> losses = sample.losses(adapters);
  REQUIRE(losses.size() >= 6);
  CHECK(losses.front() == Approx(std::log(double(test::small_llama_tokens))).margin(1));
  CHECK(losses.back() < losses.front() - 0.2);
  const fs::path out = sample.out;
  CHECK(fs::exists(out / "adapter_model.safetensors"));
  CHECK_FALSE(fs::exists(out / "model.safetensors"));
  const Json config = read_json_file(out / "adapter_config.json");
  CHECK(config.at("r") == 4);
  CHECK(config.at("base_model_name_or_path") == sample.base);
  // Merged, it is a whole model, with its tokenizer and with the adapters in a folder of their own.
  const std::string whole = sample.folder / "whole";
  merged.insert(merged.end(), {whole, "--merge"});
  CHECK(sample.losses(merged) == losses);
  CHECK(fs::exists(fs::path(whole) / "tokenizer.json"));
  CHECK(fs::exists(fs::path(whole) / "adapter" / "adapter_config.json"));
  CHECK_FALSE(fs::exists(fs::path(whole) / "adapter_config.json"));
  const ModelHandle model = load_pretrained(sample.base);
  const at::Tensor before = model.predict(ids());
  load_pretrained_adapters(model, sample.base, sample.out);
  const at::Tensor trained = model.predict(ids());
  CHECK(test::difference(trained, before, 1e-2, 1e-2) != "");
  CHECK(test::difference(load_pretrained(whole).predict(ids()), trained, 1e-4, 1e-4) == "");
  for (const fs::directory_entry& entry : fs::directory_iterator(sample.folder.path())) {
    CHECK_FALSE(entry.path().filename().string().starts_with("."));
  }
}

TEST_CASE("finetune: all weights, with the same losses on a mesh and by accumulation") {
  const Sample sample;
  const std::string layouts = sample.folder / "layouts.json";
  test::write_file(
      layouts,
      R"({"mesh": {"batch": 2, "model": 2}, "data": {"x": ["batch", null], "y": ["batch", null]},
      "layouts": [{"match": "words/embeddings", "layout": ["model", null]},
                  {"match": "block_\\d+/(up|gate)/kernel", "layout": [null, "model"]}]})");
  const std::vector<std::string> arguments = {
      "--batch-size", "4",       "--learning-rate", "0.01",
      "--no-shuffle", "--dtype", "float64",         "--save"};
  const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> all = arguments;
    all.push_back(sample.folder / name);
    all.insert(all.end(), more.begin(), more.end());
    return sample.losses(all);
  };
  const std::vector<double> losses = run("one", {});
  CHECK(losses.back() < losses.front());
  const std::vector<double> on_mesh = run("mesh", {"--layouts", layouts});
  REQUIRE(on_mesh.size() == losses.size());
  for (size_t i = 0; i < losses.size(); ++i) CHECK(on_mesh[i] == Approx(losses[i]).epsilon(1e-6));
  CHECK(test::difference(load_pretrained(sample.folder / "mesh").predict(ids()),
                         load_pretrained(sample.folder / "one").predict(ids()), 1e-5, 1e-5) == "");
  // Weights change after every second batch only.
  const std::vector<double> accumulated = run("two", {"--gradient-accumulation-steps", "2"});
  CHECK(accumulated[0] == losses[0]);
  CHECK(accumulated[2] != losses[2]);
}

TEST_CASE("finetune: held-out documents, and a learning rate that rises and falls") {
  const Sample sample;
  const test::ProgramRun run =
      finetune({sample.base, sample.data, "--lora", "2", "--length", "24", "--validation-split",
                "0.25", "--warmup", "0.5", "--verbose", "2", "--save", sample.out});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("27 documents in") && Contains("; 9 held out") &&
                          Contains("validation loss") && Contains("adapters in " + sample.out));
}

TEST_CASE("finetune: what is wrong is a line, before training") {
  const Sample sample;
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {sample.base, sample.data, "--save", sample.out});
    const test::ProgramRun run = finetune(arguments);
    CHECK(run.exit_code == 1);
    CHECK(run.err.find('\n') == run.err.size() - 1);
    CHECK_FALSE(fs::exists(sample.out));
    return run.err;
  };
  CHECK_THAT(error({"--merge"}), Contains("[--merge] adapters, with --lora"));
  CHECK_THAT(error({"--lora", "2", "--lora-layers", "nothing"}), Contains("nothing"));
  CHECK_THAT(error({"--save", sample.base}), Contains("[--save]"));
  test::write_file(sample.data, "{\"text\": \"a\"}\n{\"txt\": \"a\"}\n");
  CHECK_THAT(error({}), Contains("data.jsonl:2]"));
  test::write_file(sample.data, "\n");
  CHECK_THAT(error({}), Contains("no document"));
  test::write_file(sample.base + "/tokenizer.json", test::small_tokenizer_json({}));
  test::write_file(sample.data,
                   "\n{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}\n");
  CHECK_THAT(error({}), Contains("data.jsonl:2, chat]"));
  fs::remove(sample.base + "/tokenizer.json");
  CHECK_THAT(error({}), Contains("tokenizer.json"));
}

}  // namespace finetune_test
