#include "tests/apps/gpt_layouts.hpp"

#include <cstdio>
#include <map>

#include <ATen/ATen.h>

#include "apps/gpt/gpt_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/golden_text.hpp"

namespace gpt_received_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using namespace tessera::test;

namespace {

/// Sizes of batch and model that every mesh dimension divides.
struct Case {
  int64_t batch, length, width, hidden;
  double x() const { return 4.0 * double(batch * length * width); }   ///< bytes of activations
  double y() const { return 4.0 * double(batch * length * hidden); }  ///< between dense layers
  double a() const { return 4.0 * double(width * hidden); }           ///< bytes of a kernel
};

/// Returns the bytes that each device receives in a training step, by keys such as "block_2/up
/// all_gather row". Leaves out vectors, such as biases.
std::map<std::string, double> received(const Case& c, const LayoutMap& layouts) {
  const ModelSize size{.blocks = 2,
                       .heads = 4,
                       .head_dim = c.width / 4,
                       .width = c.width,
                       .hidden = c.hidden,
                       .length = c.length,
                       .vocabulary = 64,
                       .dropout = 0};
  const Functional model = gpt_model(size);
  model.compile({.optimizer = "adam",
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts});
  const at::Tensor words = at::zeros({c.batch, c.length}, at::kLong);
  const StepPlan plan = model.plan(TensorDataset(words, words), {.batch_size = c.batch});
  std::map<std::string, double> bytes;
  for (const CommEntry& entry : plan.collectives) {
    const bool is_vector = entry.bytes <= 4 * std::max(c.width, c.hidden);
    if (is_vector) continue;
    bytes[entry.place + " " + to_string(entry.op) + " " + entry.dims] += entry.received;
  }
  return bytes;
}

/// Returns the bytes received for a layer's inputs, kernel and outputs, forward and backward.
/// Leaves out all-reduces over `depth`: as in data parallelism, 2.5D replicates weights over it.
double of_layer(const std::map<std::string, double>& bytes, const std::string& layer) {
  double sum = 0;
  for (const auto& [what, received] : bytes) {
    const bool is_copies = what.ends_with("all_reduce depth");
    const bool is_its = what.starts_with(layer + "/") || what.starts_with(layer + " ");
    if (is_its && !is_copies) sum += received;
  }
  return sum;
}

/// Returns the bytes of activations' all-reduces per linear layer: each of 2 blocks has four.
double all_reduced(const std::map<std::string, double>& bytes) {
  double sum = 0;
  for (const auto& [what, received] : bytes) {
    if (what.ends_with("all_reduce model")) sum += received;
  }
  return sum / 8;
}

const std::vector<Case>& cases() {
  // In the first case |X| = |A| = |Y|.
  static const std::vector<Case> all = {{8, 32, 256, 256}, {16, 64, 256, 512}, {32, 16, 512, 128}};
  return all;
}

/// Loads a layouts file without "reshard": gathered tensors are saved for the backward pass.
LayoutMap without_reshard(const std::string& file, const MeshDims& dims) {
  LayoutFile layouts = layouts_file(file);
  for (LayoutRule& rule : layouts.rules) rule.reshard_after_forward = false;
  return make_layout_map(layouts, create_mesh(dims));
}

MeshDims square(int64_t q) { return {{"row", q}, {"col", q}}; }
MeshDims deep(int64_t q, int64_t d) { return {{"depth", d}, {"row", q}, {"col", q}}; }
MeshDims cube(int64_t q) { return {{"x", q}, {"y", q}, {"z", q}}; }

}  // namespace

TEST_CASE("gpt: 1D tensor parallelism receives one all-reduce per linear layer") {
  for (const Case& c : cases()) {
    for (const int64_t p : {2, 4, 8}) {
      const auto bytes = received(c, layouts_of("tensor", {{"batch", 1}, {"model", p}}));
      CAPTURE(c.width, c.hidden, p, bytes);
      CHECK(all_reduced(bytes) == Approx(2.0 * double(p - 1) / double(p) * c.x()));
    }
  }
}

// SUMMA's forward pass receives (q-1)/q² of |X| and of |A|, its backward pass twice as much because
// it gathers both again.
TEST_CASE("gpt: 2D tensor parallelism receives what SUMMA does") {
  for (const Case& c : cases()) {
    for (const int64_t side : {2, 4}) {
      const auto q = double(side);
      CAPTURE(c.width, c.hidden, q);
      const double part = (q - 1) / (q * q);
      const auto bytes = received(c, layouts_of("tensor_2d", square(side)));
      CHECK(of_layer(bytes, "block_2/up") == Approx(3 * part * (c.x() + c.a())));
      CHECK(of_layer(bytes, "block_2/down") == Approx(3 * part * (c.y() + c.a())));
      const auto saved = received(c, without_reshard("tensor_2d", square(side)));
      CHECK(of_layer(saved, "block_2/up") == Approx(2 * part * (c.x() + c.a())));
      CHECK(of_layer(saved, "block_2/down") == Approx(2 * part * (c.y() + c.a())));
    }
  }
}

TEST_CASE("gpt: 2.5D tensor parallelism receives 2D's share for its part of the batch") {
  for (const Case& c : cases()) {
    for (const auto& [side, depth] : {std::pair(2, 2), std::pair(2, 4), std::pair(4, 2)}) {
      const auto bytes = received(c, layouts_of("tensor_2p5d", deep(side, depth)));
      const auto q = double(side), d = double(depth);
      CAPTURE(c.width, c.hidden, q, d, bytes);
      const double part = 3 * (q - 1) / (q * q);
      CHECK(of_layer(bytes, "block_2/up") == Approx(part * (c.x() / d + c.a())));
      CHECK(of_layer(bytes, "block_2/down") == Approx(part * (c.y() / d + c.a())));
      CHECK(bytes.at("block_2/up/kernel all_reduce depth") ==
            Approx(2 * (d - 1) / d * c.a() / (q * q)));
    }
  }
}

TEST_CASE("gpt: 3D tensor parallelism receives shards of inputs, kernel and outputs") {
  for (const Case& c : cases()) {
    for (const int64_t side : {2, 4}) {
      const auto bytes = received(c, layouts_of("tensor_3d", cube(side)));
      const auto q = double(side);
      CAPTURE(c.width, c.hidden, q, bytes);
      const double each = 2 * (q - 1) / (q * q * q) * (c.x() + c.a() + c.y());
      CHECK(of_layer(bytes, "block_2/up") == Approx(each));
      CHECK(of_layer(bytes, "block_2/down") == Approx(each));
    }
  }
}

// ColossalAI's documentation counts 2D and 2.5D in units of a row of q blocks, |X| / q, and the
// others in units of |X|.
TEST_CASE("gpt: ColossalAI's table in the documentation equals the plans") {
  const Case c = cases()[0];
  const double s = c.x();
  std::string table =
      "| | mesh | received | formula | ColossalAI's | in units of |\n|---|---|---|---|---|---|\n";
  const auto row = [&](const char* name, const std::string& file, const MeshDims& mesh,
                       const char* formula, double unit, double theirs, bool is_1d = false) {
    const auto bytes = received(c, layouts_of(file, mesh));
    const double ours = (is_1d ? all_reduced(bytes) : of_layer(bytes, "block_2/up")) / (s * unit);
    char line[200];
    std::snprintf(line, sizeof line, "| %s | %s | %.4g | %s | %.4g | %s |\n", name,
                  to_string(mesh).c_str(), ours, formula, theirs, unit == 1 ? "S" : "S/q");
    table += line;
    return ours;
  };
  const auto theirs_2p5d = [](double q, double d) { return 3 * (q - 1) * (d + 1) / (d * q); };
  for (const int64_t p : {4, 8}) {
    const double theirs = 2 * double(p - 1) / double(p);
    CHECK(row("1D", "tensor", {{"batch", 1}, {"model", p}}, "2(P−1)/P", 1, theirs, true) ==
          Approx(theirs));
  }
  for (const int64_t side : {2, 4}) {
    const auto q = double(side);
    CHECK(row("2D", "tensor_2d", square(side), "6(q−1)/q", 1 / q, 6 * (q - 1) / q) ==
          Approx(6 * (q - 1) / q));
    const double theirs = theirs_2p5d(q, 2);
    CHECK(row("2.5D", "tensor_2p5d", deep(side, 2), "3(q−1)(d+1)/(dq)", 1 / q, theirs) ==
          Approx(theirs));
    CHECK(row("3D", "tensor_3d", cube(side), "6(q−1)/q³", 1, 6 * (q - 1) / (q * q * q)) ==
          Approx(6 * (q - 1) / (q * q * q)));
  }
  const std::string page = test::read_file(
      layouts_folder().parent_path().parent_path().parent_path() / "docs/transformers.md");
  const size_t begin = page.find("| | mesh | received |");
  INFO("the table is\n" << table);
  REQUIRE(begin != std::string::npos);
  CHECK(first_difference(page.substr(begin, page.find("\n\n", begin) + 1 - begin), table) == "");
}

}  // namespace gpt_received_test
