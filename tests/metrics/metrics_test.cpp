// Every metric against Keras, and what all metrics share: they communicate only when read, and then
// once for all of them. What is particular to a family is in the file of its name.
#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/metrics.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"

namespace metrics_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns the cases of keras_core.json and keras_metrics.json in which Tessera computes Keras'
/// value, or the others.
std::vector<Json> cases_of_metrics(bool others) {
  std::vector<Json> list;
  const Json& core = keras_core("metrics");
  for (size_t row = 0; row < core.size(); ++row) {
    if (other_than_keras("keras_core.json", "metrics", row) == others) list.push_back(core[row]);
  }
  const Json file = read_json_file(golden_path("keras_metrics.json").string());
  const Json& metrics = file.at("metrics");
  for (size_t row = 0; row < metrics.size(); ++row) {
    const bool other = other_than_keras("keras_metrics.json", "metrics", row);
    if (other == others) list.push_back(metrics[row]);
  }
  return list;
}

/// Every case in which Tessera computes Keras' value.
const std::vector<Json>& goldens() {
  static const std::vector<Json> all = cases_of_metrics(false);
  return all;
}

bool has_integers(const Json& tensor) {
  const Json& values = tensor.at("values");
  return !values.empty() && values[0].is_number_integer();
}

/// Returns a golden tensor whose first axis is sharded over the mesh dimensions `over`, its second
/// over `inner`.
DTensor packed(const Json& batch, const std::string& key, const Mesh& mesh,
               const std::vector<int>& over, const std::vector<int>& inner = {}) {
  if (!batch.contains(key)) return {};
  const at::Tensor full =
      golden_tensor(batch.at(key), has_integers(batch.at(key)) ? at::kLong : at::kFloat);
  std::vector<std::vector<int>> axes(static_cast<size_t>(full.dim()));
  if (!axes.empty()) axes[0] = over;
  if (axes.size() > 1) axes[1] = inner;
  return pack(full, Layout::from_axes(mesh, axes));
}

/// Returns one number or, where Keras gives an array, several.
std::vector<double> expected_of(const Json& batch) {
  const Json& result = batch.at("result");
  return result.is_array() ? result.get<std::vector<double>>()
                           : std::vector<double>{result.get<double>()};
}

void check_case(const Json& golden, const Mesh& mesh, const std::vector<int>& over,
                const std::vector<int>& inner) {
  INFO(golden.at("name") << " " << golden.at("options").dump() << " on " << mesh.describe());
  const std::shared_ptr<Metric> metric =
      metric_from_config({{"class_name", golden.at("name")}, {"config", golden.at("options")}});
  CHECK(metric->result() == 0);
  for (const Json& batch : golden.at("batches")) {
    metric->update(packed(batch, "y_true", mesh, over), packed(batch, "y_pred", mesh, over, inner),
                   packed(batch, "sample_weight", mesh, over));
    const std::vector<double> expected = expected_of(batch);
    std::vector<double> values = metric->result_values();
    if (expected.size() == 1) values = {metric->result()};
    REQUIRE(values.size() == expected.size());
    double mean = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(values[i] == Approx(expected[i]).epsilon(3e-6).margin(3e-7));
      mean += expected[i] / double(expected.size());
    }
    CHECK(metric->result() == Approx(mean).epsilon(3e-6).margin(3e-7));
  }
}

const Mesh mesh = create_mesh({{"batch", 4}});

DTensor labels(std::vector<int64_t> values) {
  return pack(at::tensor(values), Layout::batch_sharded(mesh, "batch", 1));
}

DTensor scores() { return pack(at::eye(5), Layout::batch_sharded(mesh, "batch", 2)); }

}  // namespace

TEST_CASE("metrics match Keras over several batches, in every layout") {
  REQUIRE(goldens().size() > 270);
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Json& golden : goldens()) {
      check_case(golden, create_mesh({{"batch", 1}}), {}, {});
      check_case(golden, create_mesh({{"batch", 4}}), {0}, {});
      check_case(golden, create_mesh({{"batch", 8}}), {0}, {});
      check_case(golden, create_mesh({{"batch", 2}, {"model", 2}}), {0}, {1});
      check_case(golden, create_mesh({{"batch", 2}, {"model", 2}}), {}, {1, 0});
    }
  }
}

TEST_CASE("metrics that docs/keras.md says are other than Keras' differ or are refused") {
  const Mesh one = create_mesh({{"batch", 1}});
  for (const Json& golden : cases_of_metrics(true)) {
    INFO(golden.at("name") << " " << golden.at("options").dump());
    const std::shared_ptr<Metric> metric =
        metric_from_config({{"class_name", golden.at("name")}, {"config", golden.at("options")}});
    bool differs = false;
    try {
      for (const Json& batch : golden.at("batches")) {
        metric->update(packed(batch, "y_true", one, {}), packed(batch, "y_pred", one, {}),
                       packed(batch, "sample_weight", one, {}));
        differs = differs || std::abs(metric->result() - expected_of(batch)[0]) > 1e-4;
      }
    } catch (const Error&) {
      differs = true;
    }
    CHECK(differs);
  }
}

TEST_CASE("updating metrics of a sharded batch does not communicate; reading all reduces once") {
  const std::vector<std::shared_ptr<Metric>> metrics = {SparseCategoricalAccuracy().get(),
                                                        Mean().get(), CategoricalAccuracy().get()};
  CommLog log;
  const CommLogScope scope(log);
  for (int batch = 0; batch < 3; ++batch) {
    metrics[0]->update(labels({0, 1, 0, 0, 4}), scores());
    metrics[1]->update(DTensor(), scores(), labels({1, 0, 0, 1, 1}));
    metrics[2]->update(scores(), scores());
  }
  CHECK(log.entries().empty());
  const std::vector<double> values = results(metrics);
  CHECK(log.entries().size() == 1);
  CHECK(log.count(CommOp::all_reduce, "batch") == 1);
  CHECK(values[0] == Approx(0.6));
  CHECK(values[1] == Approx(0.2));
  CHECK(values[2] == 1);
}

TEST_CASE("reset starts over, restore continues from stored totals") {
  const std::shared_ptr<Metric> metric = SparseCategoricalAccuracy().get();
  metric->update(labels({0, 1, 0, 0, 4}), scores());
  const std::vector<double> totals = Metric::totals({metric.get()})[0];
  metric->reset();
  CHECK(metric->result() == 0);
  metric->update(labels({1, 1, 1, 1, 1}), scores());
  CHECK(metric->result() == Approx(0.2));
  metric->restore(totals);
  CHECK(metric->result() == Approx(0.6));
  metric->update(labels({1, 1, 1, 1, 1}), scores());
  CHECK(metric->result() == Approx(0.4));
}

TEST_CASE("counts at thresholds of a sharded batch stay partial sums until read") {
  const std::vector<std::shared_ptr<Metric>> metrics = {AUC().get(),
                                                        Precision().get(),
                                                        TruePositives().get(),
                                                        F1Score().get(),
                                                        R2Score().get(),
                                                        PrecisionAtRecall(0.5).get(),
                                                        OneHotMeanIoU(8).get(),
                                                        BinaryIoU().get()};
  const DTensor hot = pack(at::eye(8), Layout::batch_sharded(mesh, "batch", 2));
  CommLog log;
  const CommLogScope scope(log);
  for (int batch = 0; batch < 3; ++batch) {
    for (const auto& metric : metrics) metric->update(hot, hot);
  }
  CHECK(log.entries().empty());
  const std::vector<double> values = results(metrics);
  CHECK(std::vector<double>(values.begin(), values.begin() + 3) == std::vector<double>{1, 1, 24});
  for (size_t i = 3; i < values.size(); ++i) CHECK(values[i] == Approx(1));
  CHECK(log.entries().size() == 1);
}

}  // namespace metrics_test
