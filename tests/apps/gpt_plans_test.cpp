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

/// "3 all_reduce, 2 all_gather", most first.
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

/// A row of the table of docs/transformers.md: what the fullest device holds, and what each
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

TEST_CASE("gpt: the table of layouts in the documentation is what plans say") {
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
    size.experts = name == "experts" ? 8 : 0;
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

}  // namespace gpt_plans_test
