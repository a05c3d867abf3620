#include "tests/apps/gpt_layouts.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <ATen/ATen.h>

#include "apps/gpt/gpt_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dtype_scope.hpp"
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

/// Returns the largest sum of columns of a plan on any device.
double most(const StepPlan& plan,
            const std::vector<std::vector<double> StepPlan::Row::*>& columns) {
  double largest = 0;
  for (size_t device = 0; device < static_cast<size_t>(plan.mesh.size()); ++device) {
    double sum = 0;
    for (const StepPlan::Row& layer : plan.layers) {
      for (const auto column : columns) sum += (layer.*column)[device];
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

/// Returns a row of the table in docs/transformers.md: what the fullest device holds, and what each
/// receives.
std::string row(const std::string& name, const StepPlan& plan) {
  using Row = StepPlan::Row;
  std::string text = "| `" + name + "` | " + to_string(plan.mesh.dims());
  for (const auto column :
       {&Row::weights, &Row::gathered, &Row::gradients, &Row::slots, &Row::activations}) {
    text += " | " + megabytes(most(plan, {column}));
  }
  double peak = 0, received = 0;
  for (const StepPlan::Peak& each : plan.peaks) peak = std::max(peak, each.total());
  text += " | " + megabytes(peak);
  for (const CommEntry& entry : plan.collectives) received += entry.received;
  return text + " | " + kinds(plan) + " | " + megabytes(received) + " |\n";
}

/// What a device holds of a model's weights, in bytes.
struct ModelState {
  double weights = 0, casts = 0, gathered = 0, gradients = 0, slots = 0;
  double total() const { return weights + casts + gathered + gradients + slots; }
};

/// Returns what ZeRO's stage (0: data parallelism) leaves on device 0 of `devices` with Adam,
/// computed from the weights' shapes alone: a weight's longest axis is cut, the first of equal
/// ones.
ModelState zero_state(const std::vector<Variable>& weights, int stage, int64_t devices,
                      bool mixed) {
  ModelState state;
  for (const Variable& weight : weights) {
    double whole = 1;
    int64_t longest = 0;
    for (int64_t extent : weight.shape()) {
      whole *= static_cast<double>(extent);
      longest = std::max(longest, extent);
    }
    const double shard = stage == 0 ? whole : whole / double(longest) * double(longest / devices);
    // Operations use weights in two bytes, except those of norms.
    const bool norm = weight.path().find("norm") != std::string::npos;
    const double used = mixed && !norm ? 2 : 4;
    state.weights += 4 * shard;
    state.slots += 8 * shard;
    state.gradients += used * (stage < 2 ? whole : shard);
    // Gradients do not read what is only added.
    const std::string& path = weight.path();
    if (path.ends_with("/bias") || path.ends_with("/beta") || path == "positions/embeddings")
      continue;
    if (stage == 1 || stage == 2) state.gathered += used * whole;
    if (stage == 0 && used == 2) state.casts += used * whole;
  }
  return state;
}

}  // namespace

TEST_CASE("gpt: the table of layouts in the documentation equals the plans") {
  const std::filesystem::path root = std::filesystem::path(TESSERA_TEST_DIR).parent_path();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root / "apps/gpt/layouts")) {
    names.push_back(entry.path().stem().string());
  }
  // The plan of a model in stages is another table.
  std::erase_if(names, has_stages);
  std::sort(names.begin(), names.end());
  ModelSize size;
  const TensorDataset rows(at::zeros({128, size.length}, at::kLong),
                           at::zeros({128, size.length}, at::kLong));
  std::string table =
      "| file | mesh | weights | gathered | gradients | slots | activations | peak | collectives | "
      "received |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
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

// DeepSpeed's ZeRO states 120, 31.4, 16.6 and 1.9 GB for 7.5 billion parameters on 64 devices, with
// float32 copies of two-byte weights; here the float32 shard is the weight.
TEST_CASE("gpt: each stage of ZeRO leaves what the shapes say of 7.5 billion parameters") {
  const ModelSize size = model_size({.size = "7.5b"});
  const at::Tensor rows = at::zeros({64, size.length}, at::kLong);
  const std::map<std::pair<std::string, int>, double> gigabytes = {
      {{"float32", 0}, 119.4},        {{"float32", 1}, 61.08},
      {{"float32", 2}, 31.70},        {{"float32", 3}, 1.87},
      {{"mixed_bfloat16", 0}, 119.4}, {{"mixed_bfloat16", 1}, 31.24},
      {{"mixed_bfloat16", 2}, 16.55}, {{"mixed_bfloat16", 3}, 1.63}};
  for (const auto& [key, stated] : gigabytes) {
    const auto& [dtype, stage] = key;
    CAPTURE(dtype, stage);
    const DTypeScope policy(dtype);
    const Functional model = gpt_model(size);
    model.compile({.optimizer = "adam",
                   .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                   .layouts = layouts_of(stage == 0 ? "data" : "zero" + std::to_string(stage),
                                         {{"batch", 64}})});
    const StepPlan plan = model.plan(TensorDataset(rows, rows), {.batch_size = 64});
    using Row = StepPlan::Row;
    ModelState planned;
    for (const Row& layer : plan.layers) {
      planned.weights += layer.weights[0];
      planned.casts += layer.casts[0];
      planned.gathered += layer.gathered[0];
      planned.gradients += layer.gradients[0];
      planned.slots += layer.slots[0];
    }
    const ModelState expected = zero_state(model.weights(), stage, 64, dtype != "float32");
    CHECK(planned.weights == expected.weights);
    CHECK(planned.casts == expected.casts);
    CHECK(planned.gathered == expected.gathered);
    CHECK(planned.gradients == expected.gradients);
    CHECK(planned.slots == expected.slots);
    // Device 0 has the least of an axis that 64 does not divide.
    const double fullest =
        most(plan, {&Row::weights, &Row::casts, &Row::gathered, &Row::gradients, &Row::slots}) /
        1e9;
    CHECK(std::abs(fullest / stated - 1) < 0.005);
  }
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
