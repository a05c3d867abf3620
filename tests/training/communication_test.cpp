#include <tessera/tessera.hpp>

#include <algorithm>
#include <map>
#include <numeric>

#include <tessera/framework/comm/comm_log.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/small_model.hpp"

namespace communication_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// The communication of a model's steps.
struct Step {
  CommLog train;
  CommLog loss;  ///< log of reading the training step's loss

  Step(const ModelHandle& model, const LayoutMap& layouts) {
    model.compile(test::small_compile(layouts));
    const TensorDataset data = test::small_data(16);
    // Draws weights, creates slots and reads metrics before the measured step.
    model.fit(data, {.batch_size = 16, .verbose = 0});
    std::vector<int64_t> rows(16);
    std::iota(rows.begin(), rows.end(), 0);
    const Batch batch = pack_batch(data.get(rows), layouts);
    DTensor value;
    {
      const CommLogScope scope(train);
      value = model.model().train_step(batch).loss();
    }
    const CommLogScope scope(loss);
    value.full();
  }
};

Mesh mesh_of(const std::string& dims) { return create_mesh(parse_mesh_dims(dims)); }

/// Returns the bytes of the log's collectives of one kind over these dimensions, sorted.
std::vector<int64_t> bytes_of(const CommLog& log, CommOp op, const std::string& dims) {
  std::vector<int64_t> list;
  for (const CommEntry& entry : log.entries()) {
    if (entry.op == op && entry.dims == dims) list.push_back(entry.bytes);
  }
  std::sort(list.begin(), list.end());
  return list;
}

/// Returns the bytes of every weight, sorted; weights are float64.
std::vector<int64_t> weight_bytes(const ModelHandle& model) {
  std::vector<int64_t> list;
  for (const Variable& weight : model.weights()) list.push_back(8 * numel(weight.shape()));
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

TEST_CASE("data parallel: one reduction for each variable and one for the loss, nothing else") {
  for (const std::string mesh : {"batch=8", "batch=3", "batch=1"}) {
    CAPTURE(mesh);
    const Sequential model = test::small_model();
    const Step step(model, test::small_layouts("data", mesh_of(mesh)));
    INFO(step.train.to_string());
    const size_t expected = mesh == "batch=1" ? 0 : 6;
    CHECK(step.train.entries().size() == expected);
    CHECK(step.train.count(CommOp::all_reduce, "batch") == static_cast<int64_t>(expected));
    if (expected > 0) {
      CHECK(bytes_of(step.train, CommOp::all_reduce, "batch") == weight_bytes(model));
    }
    CHECK(step.loss.entries().size() == (expected > 0 ? 1 : 0));
    if (expected > 0) CHECK(bytes_of(step.loss, CommOp::all_reduce, "batch")[0] == 8);
  }
}

TEST_CASE("data parallel: fit adds one reduction for each loss and one to read the metrics") {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts("data", mesh_of("batch=8"))));
  CommLog log;
  const CommLogScope scope(log);
  model.fit(test::small_data(20), {.batch_size = 8, .epochs = 2, .verbose = 0});
  CHECK(log.count(CommOp::all_reduce, "batch") == 2 * (3 * (6 + 1) + 1));
  CHECK(log.entries().size() == 2 * (3 * (6 + 1) + 1));
}

TEST_CASE("a model-parallel pair costs one all-reduce over model each way") {
  const auto dense = [](int64_t units, const std::string& name) {
    return Dense(units, {.activation = "relu", .name = name, .dtype = "float64"});
  };
  const Sequential model(
      {dense(12, "before"), dense(14, "up"), dense(10, "down"), dense(5, "logits")});
  LayoutMap layouts(mesh_of("batch=4,model=2"));
  layouts["up/kernel"] = {unsharded, "model"};
  layouts["down/kernel"] = {"model", unsharded};
  const Step step(model, layouts);
  INFO(step.train.to_string());
  // Forward the pair's output of (16, 10), backward the gradient of its input of (16, 12), both
  // sharded over batch.
  CHECK(bytes_of(step.train, CommOp::all_reduce, "model") ==
        std::vector<int64_t>{8 * 4 * 10, 8 * 4 * 12});
  // Gradients over batch only, in the shards that each device holds.
  std::vector<int64_t> gradients;
  for (int64_t count : {18 * 12, 12, 12 * 7, 7, 7 * 10, 10, 10 * 5, 5}) {
    gradients.push_back(8 * count);
  }
  std::sort(gradients.begin(), gradients.end());
  CHECK(bytes_of(step.train, CommOp::all_reduce, "batch") == gradients);
  CHECK(step.train.entries().size() == 10);
  CHECK(step.loss.entries().size() == 1);
}

TEST_CASE("mnist's model.json: the first layer's input needs no gradient") {
  const Sequential model = test::small_model();
  const Step step(model, test::small_layouts("model", mesh_of("batch=4,model=2")));
  INFO(step.train.to_string());
  CHECK(bytes_of(step.train, CommOp::all_reduce, "model") == std::vector<int64_t>{8 * 4 * 9});
  CHECK(step.train.count(CommOp::all_reduce, "batch") == 6);
  CHECK(step.train.entries().size() == 7);
}

TEST_CASE("fully sharded weights are gathered for use, their gradients reduced into shards") {
  const Sequential model = test::small_model();
  const Step step(model, test::small_layouts("fsdp", mesh_of("batch=8")));
  INFO(step.train.to_string());
  // Every weight forward; for the gradients of their inputs, the second and third kernel again.
  std::vector<int64_t> gathers = weight_bytes(model);
  gathers.insert(gathers.end(), {8 * 14 * 9, 8 * 9 * 5});
  std::sort(gathers.begin(), gathers.end());
  CHECK(bytes_of(step.train, CommOp::all_gather, "batch") == gathers);
  CHECK(bytes_of(step.train, CommOp::reduce_scatter, "batch") == weight_bytes(model));
  CHECK(step.train.entries().size() == gathers.size() + 6);
  CHECK(step.loss.entries().size() == 1);
}

TEST_CASE("weights of one layer that are gathered for use are gathered as one, also again") {
  const Sequential model = test::small_model();
  LayoutMap layouts(mesh_of("batch=4"));
  layouts.fully_shard("batch");
  const Step step(model, layouts);
  INFO(step.train.to_string());
  std::map<std::string, int64_t> layers;
  const auto layer_of = [](const std::string& path) { return path.substr(0, path.find('/')); };
  for (const Variable& weight : model.weights()) {
    layers[layer_of(weight.path())] += 8 * numel(weight.shape());
  }
  std::map<std::string, std::vector<int64_t>> gathers;
  std::map<std::string, double> received;
  for (const CommEntry& entry : step.train.entries()) {
    const std::string layer = layer_of(entry.place);
    if (entry.op == CommOp::all_gather) gathers[layer].push_back(entry.bytes);
    received[layer] += entry.received;
  }
  for (const auto& [layer, bytes] : layers) {
    CAPTURE(layer);
    // The first layer's input needs no gradient.
    const bool again = layer != "hidden_1";
    CHECK(gathers[layer] == std::vector<int64_t>(again ? 2 : 1, bytes));
    // 3 of 4 parts of all weights for each gather, and for the reduce-scatters of the gradients.
    CHECK(received[layer] == (again ? 3 : 2) * double(bytes) * 3 / 4);
  }
  CHECK(bytes_of(step.train, CommOp::reduce_scatter, "batch") == weight_bytes(model));
  CHECK(step.train.entries().size() == 5 + 6);
  CHECK(step.loss.entries().size() == 1);
}

}  // namespace communication_test
