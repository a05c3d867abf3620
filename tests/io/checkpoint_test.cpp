#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdlib>
#include <mutex>

#include <ATen/ATen.h>

#include <tessera/framework/io/format/checkpoint_reader.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/files.hpp"
#include "tests/support/seed_scope.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace checkpoint_test {

using namespace tessera;
using namespace tessera::detail;
using test::checkpoint_layouts;
using test::checkpoint_model;
using test::Everything;

namespace {

/// An initializer that fails if it is asked to draw.
class NeverDrawn final : public Initializer {
 public:
  std::string class_name() const override { return "NeverDrawn"; }
  Json config() const override { return Json::object(); }
  DTensor draw(const Shape&, at::ScalarType, Seed) const override {
    throw StateError("NeverDrawn", "nobody draws", "a draw", "");
  }
};

Variable variable(const std::string& path, const at::Tensor& full_value, const Mesh& mesh) {
  return Variable(path, pack(full_value, Layout::replicated(mesh, full_value.dim())));
}

bool equal(const Variable& variable, const at::Tensor& full_value) {
  return at::equal(variable.value().full(), full_value);
}

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> names = {"data", "model", "spatial", "mixed"};
  return names;
}

}  // namespace

TEST_CASE("64 pairs of meshes restore each other's saves bit for bit") {
  const test::TempFolder folder;
  std::map<std::pair<int64_t, std::string>, std::string> saved;
  const ModelHandle first = checkpoint_model(checkpoint_layouts("data", 1));
  test::fill(first, 3);
  const Everything expected(first);
  for (const int64_t devices : {1, 2, 4, 8}) {
    const std::string path = folder / str("from_", devices);
    // The layouts alternate as the source too.
    const std::string& source = kinds()[static_cast<size_t>(devices) % 3 + 1];
    const ModelHandle model = checkpoint_model(checkpoint_layouts(source, devices));
    test::fill(model, 3);
    Checkpoint(model).save(path);
    for (const int64_t to : {1, 2, 4, 8}) {
      for (const std::string& kind : kinds()) {
        CAPTURE(devices, to, kind);
        const ModelHandle other = checkpoint_model(checkpoint_layouts(kind, to));
        const Checkpoint::Restored restored = Checkpoint(other).restore(path);
        CHECK(restored.tensors == 18);
        CHECK(Everything(other).difference(expected) == "");
      }
    }
  }
}

TEST_CASE("a checkpoint holds each shard once") {
  const test::TempFolder folder;
  for (const BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
    const BlockPolicyScope scope(policy);
    const ModelHandle model = checkpoint_model(checkpoint_layouts("mixed", 8));
    Checkpoint(model).save(folder / "one");
    uintmax_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder / "one")) {
      if (file.path().extension() == ".safetensors") bytes += file.file_size();
    }
    // Weights, momentums and velocities in float32; the rest is headers.
    const auto least = static_cast<uintmax_t>(model.count_params()) * 3 * 4;
    CHECK(bytes > least);
    CHECK(bytes < least + 16384);
  }
}

TEST_CASE("steps, rate, seed, position and the user's values are restored") {
  const test::TempFolder folder;
  const ModelHandle model = checkpoint_model(checkpoint_layouts("data", 2));
  model->optimizer()->set_steps(12);
  model->optimizer()->set_learning_rate(0.125);
  model->set_fit_position({3, 4});
  const test::SeedScope old_seed;
  set_random_seed(99);
  Checkpoint saving(model);
  saving.extra() = {{"note", "mine"}, {"inf", -HUGE_VAL}, {"nan", {std::nan("")}}};
  saving.save(folder / "one");
  set_random_seed(0);

  const ModelHandle other = checkpoint_model(checkpoint_layouts("data", 2));
  Checkpoint loading(other);
  loading.restore(folder / "one");
  CHECK(other->optimizer()->steps() == 12);
  CHECK(other->optimizer()->learning_rate() == 0.125);
  CHECK(other->fit_position().epoch == 3);
  CHECK(other->fit_position().step == 4);
  CHECK(global_seed() == 99);
  CHECK(loading.extra()["note"] == "mine");
  CHECK(loading.extra()["inf"].get<double>() == -HUGE_VAL);
  CHECK(std::isnan(loading.extra()["nan"][0].get<double>()));
}

TEST_CASE("a custom training loop saves variables and optimizers") {
  const test::TempFolder folder;
  const Mesh mesh = create_mesh({{"batch", 2}});
  const auto run = [&](const Variable& kernel, const Variable& bias,
                       const OptimizerHandle& optimizer, int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      optimizer->apply({kernel.value(), bias.value()}, {kernel, bias});
    }
  };
  Variable kernel = variable("kernel", at::arange(6).reshape({2, 3}).to(at::kFloat), mesh);
  Variable bias = variable("bias", at::ones({3}), mesh);
  const OptimizerHandle adam = Adam(0.1), sgd = SGD(0.5);
  run(kernel, bias, adam, 3);
  Checkpoint checkpoint({kernel, bias}, {adam, sgd});
  checkpoint.extra()["epoch"] = 3;
  checkpoint.save(folder / "loop");
  run(kernel, bias, adam, 2);

  Variable kernel_2 = variable("kernel", at::zeros({2, 3}), mesh);
  Variable bias_2 = variable("bias", at::zeros({3}), mesh);
  const OptimizerHandle adam_2 = Adam(0.1, {.name = "second"}), sgd_2 = SGD(0.5);
  Checkpoint again({kernel_2, bias_2}, {adam_2, sgd_2});
  again.restore(folder / "loop");
  CHECK(again.extra()["epoch"] == 3);
  run(kernel_2, bias_2, adam_2, 2);
  CHECK(equal(kernel_2, kernel.value().full()));
  CHECK(equal(bias_2, bias.value().full()));
}

TEST_CASE("a model that is compiled but not yet placed saves its weights and slots") {
  const test::TempFolder folder;
  const ModelHandle model = checkpoint_model(checkpoint_layouts("mixed", 8));
  test::fill(model, 4);
  Checkpoint(model).save(folder / "one");
  const Sequential late({Dense(32, {.activation = "relu", .name = "hidden_1"}),
                         Dense(24, {.activation = "relu", .name = "hidden_2"}),
                         Dense(10, {.name = "logits"})});
  late.compile({.optimizer = Adam(1e-2), .loss = "mse", .layouts = checkpoint_layouts("mixed", 4)});
  late.build({-1, 64});
  Checkpoint(late).restore(folder / "one");
  late.predict(TensorDataset(at::zeros({2, 64})));
  CHECK(late.weights()[0].layout().mesh().size() == 4);
  CHECK(Everything(late).difference(Everything(model)) == "");
}

TEST_CASE("restoring does not draw weights that were not drawn yet") {
  const test::TempFolder folder;
  const Mesh mesh = create_mesh({{"batch", 2}});
  const at::Tensor full_value = at::rand({3, 2});
  Checkpoint({variable("w", full_value, mesh)}).save(folder / "one");
  const Variable fresh(
      VariableSpec{"w", {3, 2}, at::kFloat, InitializerHandle(std::make_shared<NeverDrawn>())});
  Checkpoint({fresh}).restore(folder / "one");
  CHECK(equal(fresh, full_value));
}

TEST_CASE("an asynchronous save has the state at the call") {
  const test::TempFolder folder;
  const ModelHandle model = checkpoint_model(checkpoint_layouts("mixed", 8));
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    test::fill(model, round);
    const Everything then(model);
    Checkpoint checkpoint(model);
    checkpoint.save(folder / "async", {.asynchronous = true});
    test::fill(model, 100 + round);
    const c10::InferenceMode inference;
    for (Variable weight : model.weights()) {
      for (const at::Tensor& block : weight.writable()) at::Tensor(block).fill_(-1);
    }
    checkpoint.wait();
    CHECK(Everything(model).difference(then) != "");
    checkpoint.restore(folder / "async");
    CHECK(Everything(model).difference(then) == "");
  }
}

TEST_CASE("an error in the background is thrown by the next call") {
  const test::TempFolder folder;
  test::write_file(folder / "file", "not a folder");
  const Variable w = variable("w", at::ones({2}), create_mesh({{"batch", 1}}));
  Checkpoint checkpoint({w});
  const std::string bad = folder / "file/one", good = folder / "good";
  checkpoint.save(bad, {.asynchronous = true});
  CHECK_THROWS_AS(checkpoint.wait(), FileError);
  CHECK_NOTHROW(checkpoint.wait());
  checkpoint.save(bad, {.asynchronous = true});
  CHECK_THROWS_AS(checkpoint.save(good), FileError);
  CHECK_NOTHROW(checkpoint.save(good));
  CHECK_THROWS_AS(checkpoint.save(bad), FileError);
}

TEST_CASE("two processes save and restore like one") {
  const test::TempFolder folder;
  for (const std::string& kind : kinds()) {
    CAPTURE(kind);
    const MeshDims dims = test::checkpoint_mesh(kind, 8);
    const ModelHandle one = checkpoint_model(checkpoint_layouts(kind, 8));
    test::fill(one, 5);
    const Everything expected(one);
    Checkpoint(one).save(folder / ("one_" + kind));
    std::mutex mutex;
    std::string wrong;
    const auto half = [&](int, const std::shared_ptr<Communicator>& communicator) {
      const Mesh mesh = test::rank_mesh(dims, communicator);
      const ModelHandle model = checkpoint_model(checkpoint_layouts(kind, mesh));
      test::fill(model, 5);
      Checkpoint(model).save(folder / ("two_" + kind));
      const ModelHandle other = checkpoint_model(checkpoint_layouts(kind, mesh));
      Checkpoint checkpoint(other);
      checkpoint.restore(folder / ("one_" + kind));
      const std::string text = Everything(other).difference(expected);
      checkpoint.save(folder / ("async_" + kind), {.asynchronous = true});
      checkpoint.wait();
      const std::lock_guard<std::mutex> lock(mutex);
      wrong += text;
    };
    CHECK_NOTHROW(test::run_ranks(2, half));
    CHECK(wrong == "");
    for (const std::string from : {"two_", "async_"}) {
      const ModelHandle back = checkpoint_model(checkpoint_layouts("data", 1));
      Checkpoint(back).restore(folder / (from + kind));
      CHECK(Everything(back).difference(expected) == "");
    }
  }
}

TEST_CASE("a process reads only the slices that it needs") {
  const test::TempFolder folder;
  const Shape shape = {2048, 1024};
  const uint64_t all = 2048 * 1024 * 4;
  const at::Tensor full_value = at::rand(shape);
  Checkpoint({variable("w", full_value, create_mesh({{"batch", 1}}))}).save(folder / "one");
  for (const LayoutSpec& spec : {LayoutSpec{"x", unsharded}, LayoutSpec{unsharded, "x"},
                                 LayoutSpec{{"y", "x"}, unsharded}}) {
    std::mutex mutex;
    std::vector<uint64_t> bytes;
    const auto half = [&](int, const std::shared_ptr<Communicator>& communicator) {
      const Mesh mesh = test::rank_mesh({{"x", 4}, {"y", 2}}, communicator);
      const Variable w("w", filled(shape, 0, at::kFloat, Layout(spec, mesh)));
      Checkpoint checkpoint({w});
      const Checkpoint::Restored restored = checkpoint.restore(folder / "one");
      test::expect(equal(w, full_value), "other values");
      checkpoint.save(folder / "two");
      const std::lock_guard<std::mutex> lock(mutex);
      bytes.push_back(restored.bytes_read);
    };
    CHECK_NOTHROW(test::run_ranks(2, half));
    REQUIRE(bytes.size() == 2);
    CAPTURE(to_string(spec), bytes[0], bytes[1]);
    const bool rows = spec[0].dims() == std::vector<std::string>{"x"};
    if (rows) CHECK(bytes == std::vector<uint64_t>{all / 2, all / 2});
    const Variable back = variable("w", at::zeros(shape), create_mesh({{"batch", 1}}));
    CHECK(Checkpoint({back}).restore(folder / "two").bytes_read == all);
    CHECK(equal(back, full_value));
  }
}

// Hidden: tests/scripts/read_safetensors.py runs it and reads the files with the Python package.
TEST_CASE("writes files for the Python package and reads its own", "[.safetensors_sample]") {
  const char* name = std::getenv("TESSERA_SAMPLE_FOLDER");
  REQUIRE(name);
  const std::filesystem::path folder = name;
  const bool has_theirs = std::filesystem::exists(folder / "theirs.safetensors");
  const ModelHandle model = checkpoint_model(checkpoint_layouts("mixed", 4));
  double number = 0;
  std::vector<at::Tensor> values;
  for (const Variable& weight : model.weights()) {
    const at::Tensor ramp = at::arange(numel(weight.shape()), at::kFloat) * 0.5 + number++;
    values.push_back(ramp.reshape(weight.shape()));
  }
  if (has_theirs) {
    model.load_weights(folder / "theirs.safetensors");
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(at::equal(model.get_weights()[i], -values[i]));
    }
    return;
  }
  model.set_weights(values);
  model.save_weights(folder / "ours.safetensors");
  Checkpoint(model).save(folder / "checkpoint");
}

}  // namespace checkpoint_test
