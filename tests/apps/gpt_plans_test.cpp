#include "tests/apps/gpt_layouts.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <ATen/ATen.h>

#include "apps/gpt/gpt_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/golden_text.hpp"

namespace gpt_plans_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using namespace tessera::test;

namespace {

std::string megabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", bytes / 1e6);
  return text;
}

/// Returns the counts by kind, most frequent first: "3 all_reduce, 2 all_gather".
std::string kinds(const StepPlan& plan) {
  std::map<std::string, int64_t> counts;
  for (const CommEntry& entry : plan.collectives) ++counts[to_string(entry.op)];
  std::vector<std::pair<std::string, int64_t>> list(counts.begin(), counts.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [kind, count] : list) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  }
  return text;
}

/// Returns a row of the table in docs/transformers.md: what the fullest device holds, and what each
/// receives.
std::string row(const std::string& name, const StepPlan& plan) {
  double weights = 0, slots = 0, activations = 0, received = 0;
  for (int64_t device = 0; device < plan.mesh.size(); ++device) {
    double w = 0, s = 0, a = 0;
    for (const StepPlan::Row& layer : plan.layers) {
      const auto at = static_cast<size_t>(device);
      w += layer.weights[at] + layer.gradients[at];
      s += layer.slots[at];
      a += layer.activations[at];
    }
    weights = std::max(weights, w);
    slots = std::max(slots, s);
    activations = std::max(activations, a);
  }
  for (const CommEntry& entry : plan.collectives) received += entry.received;
  return "| `" + name + "` | " + to_string(plan.mesh.dims()) + " | " + megabytes(weights) + " | " +
         megabytes(slots) + " | " + megabytes(activations) + " | " + kinds(plan) + " | " +
         megabytes(received) + " |\n";
}

}  // namespace

TEST_CASE("gpt: the table of layouts in the documentation equals the plans") {
  const std::filesystem::path root = std::filesystem::path(TESSERA_TEST_DIR).parent_path();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root / "apps/gpt/layouts")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  ModelSize size;
  const TensorDataset rows(at::zeros({128, size.length}, at::kLong),
                           at::zeros({128, size.length}, at::kLong));
  std::string table =
      "| file | mesh | weights, gradients | slots | activations | collectives | received |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const std::string& name : names) {
    const LayoutFile file =
        read_layout_file((root / "apps/gpt/layouts" / (name + ".json")).string());
    size.experts = name.starts_with("experts") ? 8 : 0;
    const Functional model = gpt_model(size);
    model.compile({.optimizer = "adam",
                   .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                   .layouts = make_layout_map(file, create_mesh(*file.mesh))});
    table += row(name, model.plan(rows, {.batch_size = 128}));
  }
  const std::string page = test::read_file(root / "docs/transformers.md");
  const size_t begin = page.find("| file | mesh |");
  REQUIRE(begin != std::string::npos);
  const std::string shown = page.substr(begin, page.find("\n\n", begin) + 1 - begin);
  INFO("the table is\n" << table);
  CHECK(first_difference(shown, table) == "");
}

// Saved for the backward pass are: the inputs of both norms with two numbers per word each, the
// norms' outputs, queries, keys, values, the attention's result with one number per head, relu's
// result, and the seeds of dropouts.
TEST_CASE("gpt: a block of 22B and 175B saves what formulas say, an eighth on 8 devices at best") {
  for (const char* const name : {"22b", "175b"}) {
    ModelSize size = model_size({.size = name, .blocks = 2});
    size.dropout = 0.1;
    const auto saved_bytes = [&](const std::string& file, const MeshDims& mesh) {
      const Functional model = gpt_model(size);
      model.compile({.optimizer = "adam",
                     .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                     .layouts = layouts_of(file, mesh)});
      const at::Tensor row = at::zeros({1, size.length}, at::kLong);
      double bytes = 0;
      const StepPlan plan = model.plan(TensorDataset(row, row), {.batch_size = 1});
      for (const StepPlan::Row& layer : plan.layers) {
        if (layer.path.starts_with("block_2")) bytes += layer.activations[0];
      }
      return bytes;
    };
    const double t = 8, word = 4.0 * double(size.length), h = double(size.width),
                 a = double(size.heads), seeds = 32;
    const MeshDims mesh = {{"batch", 1}, {"model", 8}};
    CAPTURE(name);
    CHECK(saved_bytes("data", {{"batch", 1}}) == word * (12 * h + a + 4) + seeds);
    const double tensor = saved_bytes("tensor", mesh), megatron = saved_bytes("megatron", mesh);
    CHECK(tensor == word * (4 * h + 8 * h / t + a / t + 4) + seeds);
    CHECK(saved_bytes("sequence", mesh) == word * (2 * h + 10 * h / t + a / t + 4 / t) + seeds);
    CHECK(megatron == word * (12 * h + a + 4) / t + seeds);
    // Compared with tensor parallelism that saves the scores, 5 a s bytes with 2-byte numbers
    // (arXiv 2205.05198): the saving of the paper's sequence parallelism with selective
    // recomputation.
    const double scores = word * 2.5 * a * double(size.length) / t;
    CHECK(megatron <= 0.25 * (tensor + scores));
  }
}

}  // namespace gpt_plans_test
