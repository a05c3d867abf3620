#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/files.hpp"

namespace checkpoint_errors_test {

using namespace tessera;
using namespace tessera::detail;
using test::checkpoint_layouts;
using test::checkpoint_model;
using test::Everything;

namespace {

/// Returns the error of restoring; checks that nothing was changed.
template <class Kind = CheckpointMismatch>
std::string refused(const ModelHandle& model, const std::string& folder,
                    const CheckpointRestoreOptions& options = {}) {
  const Everything before(model);
  const int64_t seed = global_seed(), steps = model->optimizer()->steps();
  std::string text = "nothing was thrown";
  try {
    Checkpoint(model).restore(folder, options);
  } catch (const Kind& error) {
    text = error.what();
  }
  CHECK(text.find('\n') == std::string::npos);
  CHECK(global_seed() == seed);
  CHECK(model->optimizer()->steps() == steps);
  CHECK(Everything(model).difference(before) == "");
  return text;
}

ModelHandle small(const std::string& layer, int64_t units, const OptimizerHandle& optimizer,
                  const std::string& dtype = "float32") {
  const Sequential model({Dense(units, {.name = layer, .dtype = dtype})});
  model.build({-1, 3});
  model.compile({.optimizer = optimizer, .loss = "mse"});
  return model;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("mismatched tensors are refused by name, and nothing is changed") {
  const test::TempFolder folder;
  const std::string path = folder / "one";
  Checkpoint saving(small("hidden", 2, Adam(0.1)));
  saving.save(path);

  const std::string name = refused(small("hiden", 2, Adam(0.1)), path);
  CAPTURE(name);
  CHECK(has(name, path));
  CHECK(has(name, "\"hiden/kernel\""));
  CHECK(has(name, "the nearest is \"hidden/kernel\""));
  const std::string shape = refused(small("hidden", 4, Adam(0.1)), path);
  CAPTURE(shape);
  CHECK(has(shape, "\"hidden/kernel\" has shape (3, 4)"));
  CHECK(has(shape, "(3, 2)"));
  CHECK(has(refused(small("hidden", 2, Adam(0.1), "float64"), path), "F64"));
  const std::string other = refused(small("hidden", 2, SGD(0.1)), path);
  CAPTURE(other);
  CHECK(has(other, "\"Adam\""));
  CHECK(has(other, "SGD"));
  CHECK(has(refused(small("hidden", 2, Adam(0.1, {.use_ema = true})), path), "average"));
  CHECK(has(refused(small("hidden", 2, Adam(0.1, {.amsgrad = true})), path), "velocity_hat"));
  CHECK(has(refused(checkpoint_model(checkpoint_layouts("data", 1)), path), "hidden_1/kernel"));
}

TEST_CASE("tensors that the program lacks are refused, unless partial restoring is requested") {
  const test::TempFolder folder;
  const std::string path = folder / "one";
  const Mesh mesh = create_mesh({{"batch", 1}});
  const auto made = [&](const std::string& name, double value) {
    return Variable(name, filled({2}, value, at::kFloat, Layout::replicated(mesh, 1)));
  };
  Checkpoint({made("a", 1), made("b", 2)}).save(path);
  const Variable a = made("a", 0), c = made("c", 7);
  CHECK_THROWS_AS(Checkpoint({a}).restore(path), CheckpointMismatch);
  CHECK_THROWS_AS(Checkpoint({a, c}).restore(path), CheckpointMismatch);
  CHECK(a.value().full().sum().item<double>() == 0);
  CHECK(Checkpoint({a, c}).restore(path, {.expect_partial = true}).tensors == 1);
  CHECK(a.value().full().sum().item<double>() == 2);
  CHECK(c.value().full().sum().item<double>() == 14);
}

TEST_CASE("weights can be restored into a model with another optimizer") {
  const test::TempFolder folder;
  const ModelHandle model = small("hidden", 2, Adam(0.1));
  model->optimizer()->set_steps(5);
  test::fill(model, 1);
  Checkpoint(model).save(folder / "one");
  const ModelHandle other = small("hidden", 2, SGD(0.1, {.momentum = 0.5}));
  CHECK(Checkpoint(other).restore(folder / "one", {.weights_only = true}).tensors == 2);
  CHECK(other->optimizer()->steps() == 0);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(at::equal(other.weights()[i].value().full(), model.weights()[i].value().full()));
  }
}

TEST_CASE("a missing or damaged checkpoint changes nothing") {
  const test::TempFolder folder;
  const std::string path = folder / "one";
  const ModelHandle model = checkpoint_model(checkpoint_layouts("mixed", 4));
  const std::string missing = refused<FileError>(model, folder / "none");
  CAPTURE(missing);
  CHECK(has(missing, folder / "none"));
  CHECK(has(missing, "pass a folder that save() wrote"));
  Checkpoint(model).save(path);
  test::fill(model, 2);
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    const std::string bytes = test::read_file(file.path());
    std::string damaged = bytes;
    // The last byte before the file's trailer belongs to a tensor or to the index.
    damaged[damaged.size() - 3] = static_cast<char>(damaged[damaged.size() - 3] ^ 4);
    test::write_file(file.path(), damaged);
    CAPTURE(file.path().string());
    const std::string text = refused<FileError>(model, path);
    CHECK(has(text, "one"));
    test::write_file(file.path(), bytes);
  }
  CHECK_NOTHROW(Checkpoint(model).restore(path));
}

TEST_CASE("a model must be built, and variables must have distinct paths") {
  const test::TempFolder folder;
  const Sequential unbuilt({Dense(2)});
  CHECK_THROWS_AS(Checkpoint(unbuilt).save(folder / "one"), StateError);
  CHECK_THROWS_AS(Checkpoint(unbuilt).restore(folder / "one"), StateError);
  const Variable w("w", zeros({2}));
  CHECK_THROWS_AS(Checkpoint({w, w}).save(folder / "one"), ConfigError);
  CHECK_FALSE(exists(folder / "one"));
}

}  // namespace checkpoint_errors_test
