#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/metrics.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

std::shared_ptr<Metric> make_case(const std::string& name, const Json& options) {
  if (name == "BinaryAccuracy") {
    return BinaryAccuracy({.threshold = option(options, "threshold", 0.5)}).made();
  }
  return make_metric(name, name);
}

bool has_integers(const Json& tensor) {
  const Json& values = tensor.at("values");
  return !values.empty() && values[0].is_number_integer();
}

/// A golden tensor, its first axis cut over the mesh dimensions `over`, a second over `inner`.
DTensor place(const Json& batch, const std::string& key, const Mesh& mesh,
              const std::vector<int>& over, const std::vector<int>& inner = {}) {
  if (!batch.contains(key)) return {};
  const at::Tensor whole =
      golden_tensor(batch.at(key), has_integers(batch.at(key)) ? at::kLong : at::kFloat);
  std::vector<std::vector<int>> axes(static_cast<size_t>(whole.dim()));
  if (!axes.empty()) axes[0] = over;
  if (axes.size() > 1) axes[1] = inner;
  return pack(whole, Layout::from_axes(mesh, axes));
}

void check_case(const Json& golden, const Mesh& mesh, const std::vector<int>& over,
                const std::vector<int>& inner) {
  INFO(golden.at("name") << " " << golden.at("options").dump() << " on " << mesh.describe());
  const std::shared_ptr<Metric> metric = make_case(golden.at("name"), golden.at("options"));
  CHECK(metric->result() == 0);
  for (const Json& batch : golden.at("batches")) {
    metric->update(place(batch, "y_true", mesh, over), place(batch, "y_pred", mesh, over, inner),
                   place(batch, "sample_weight", mesh, over));
    CHECK(metric->result() == Approx(batch.at("result").get<double>()).epsilon(2e-6).margin(1e-7));
  }
}

const Mesh mesh = create_mesh({{"batch", 4}});

DTensor labels(std::vector<int64_t> values) {
  return pack(at::tensor(values), Layout::batch_sharded(mesh, "batch", 1));
}

DTensor scores() { return pack(at::eye(5), Layout::batch_sharded(mesh, "batch", 2)); }

}  // namespace

TEST_CASE("metrics are Keras' over several batches, whatever the layout") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Json& golden : keras_core("metrics")) {
      check_case(golden, create_mesh({{"batch", 1}}), {}, {});
      check_case(golden, create_mesh({{"batch", 4}}), {0}, {});
      check_case(golden, create_mesh({{"batch", 8}}), {0}, {});
      check_case(golden, create_mesh({{"batch", 2}, {"model", 2}}), {0}, {1});
      check_case(golden, create_mesh({{"batch", 2}, {"model", 2}}), {}, {1, 0});
    }
  }
}

TEST_CASE("updating metrics of a sharded batch does not communicate, reading all reduces once") {
  const std::vector<std::shared_ptr<Metric>> metrics = {
      SparseCategoricalAccuracy().made(), Mean().made(), CategoricalAccuracy().made()};
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

TEST_CASE("counts stay exact where float32 would not count on") {
  const Mean mean;
  const DTensor one = scalar(1, mesh);
  mean.update(one, double(int64_t{1} << 40));
  mean.update(scalar(0, mesh), 1);
  const std::vector<double> totals = Metric::totals({mean.made().get()})[0];
  CHECK(totals == std::vector<double>{std::ldexp(1.0, 40), std::ldexp(1.0, 40) + 1});
}

TEST_CASE("a loss is averaged over the rows of its batches") {
  const Mean mean({.name = "loss"});
  mean.update(scalar(2, mesh), 128);
  mean.update(scalar(5, mesh), 8);
  CHECK(mean.made()->name() == "loss");
  CHECK(mean.result() == Approx((2.0 * 128 + 5.0 * 8) / 136));
}

TEST_CASE("reset starts anew, restore goes on from stored totals") {
  const std::shared_ptr<Metric> metric = SparseCategoricalAccuracy().made();
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

TEST_CASE("metrics are known by Keras' names") {
  CHECK(SparseCategoricalAccuracy().made()->name() == "sparse_categorical_accuracy");
  CHECK(SparseCategoricalAccuracy({.name = "acc"}).made()->name() == "acc");
  for (const char* kind :
       {"Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "Mean", "SparseCategoricalAccuracy"}) {
    CHECK(make_metric(kind, "mine")->class_name() == kind);
    CHECK(make_metric(kind, "mine")->name() == "mine");
  }
  CHECK(make_metric("sparse_categorical_accuracy", "a")->class_name() ==
        "SparseCategoricalAccuracy");
  CHECK_THROWS_WITH(make_metric("acuracy", "a"), Catch::Contains("\"accuracy\""));
  CHECK(MetricRef("accuracy").text() == "accuracy");
  CHECK(BinaryAccuracy().made()->config().at("threshold") == 0.5);
}

TEST_CASE("what a metric cannot take is named") {
  CHECK_THROWS_AS(BinaryAccuracy({.threshold = 1}), ConfigError);
  const std::shared_ptr<Metric> metric = SparseCategoricalAccuracy().made();
  CHECK_THROWS_AS(metric->update(labels({0, 1, 0}), scores()), ShapeError);
  CHECK_THROWS_AS(metric->update(labels({0, 1, 0, 0, 4}), scores(), labels({1, 1})), ShapeError);
  CHECK(metric->result() == 0);
}
