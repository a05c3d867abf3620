#include <tessera/tessera.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/io/internal/file_template.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_fit.hpp"

namespace model_checkpoint_test {

using namespace tessera;
using namespace tessera::detail;
using test::FitCases;
using test::FitModels;
using test::MakeFitRun;

namespace {

MakeFitRun saving(const std::string& name, ModelCheckpointOptions options, int64_t epochs = 3,
                  bool validated = true) {
  options.verbose = 1;
  return [=](const FitModels& models, const std::string& log) {
    const std::string path = std::filesystem::path(log).parent_path() / name;
    return test::regression_run(
        models, {.epochs = epochs, .callbacks = {ModelCheckpoint(path, options)}}, validated);
  };
}

const FitCases& checkpoint_cases() {
  static const FitCases cases = {
      {"save", saving("model", {})},
      {"save best", saving("best", {.save_best_only = true}, 5)},
      {"save best by name", saving("{epoch:02d}-{val_loss:.2f}", {.save_best_only = true})},
      {"save best at maximum",
       saving("m", {.monitor = "loss", .save_best_only = true, .mode = "max"})},
      {"save best under a threshold",
       saving("m", {.monitor = "loss", .save_best_only = true, .initial_value_threshold = 0.2}, 5,
              false)},
      {"save weights", saving("{epoch}{{}}{loss:09.3e}.safetensors", {.save_weights_only = true})},
      {"save every 3 batches", saving("{epoch}-{batch:03d}-{loss:8.1f}", {.save_freq = 3})},
  };
  return cases;
}

/// Sets "score" in the logs of each epoch to these values.
class Scores final : public Callback {
 public:
  explicit Scores(std::vector<double> scores) : scores_(std::move(scores)) {}
  void on_epoch_end(int64_t epoch, Logs& logs) override {
    set_value(logs, "score", scores_.at(static_cast<size_t>(epoch)));
  }

 private:
  std::vector<double> scores_;
};

std::string filled(const std::string& text) {
  return fill_template("x", text, 7, 12, {{"loss", 0.12345}, {"big", -1234.5}});
}

History train(const ModelHandle& model, const std::vector<CallbackHandle>& callbacks,
              int64_t epochs = 2) {
  return model.fit(test::fit_data("x"), test::fit_data("y"),
                   {.batch_size = 4, .epochs = epochs, .verbose = 0, .callbacks = callbacks});
}

}  // namespace

TEST_CASE("ModelCheckpoint prints and does what Keras' does, on every mesh") {
  test::check_fit_cases("checkpoints", checkpoint_cases());
}

TEST_CASE("a path is formatted as in Python") {
  // The right sides are Python's output.
  CHECK(filled("a/{epoch:02d}-{loss:.2f}") == "a/07-0.12");
  CHECK(filled("{epoch}{batch:4d}{loss}") == "7  120.12345");
  CHECK(filled("{{{epoch}}}") == "{7}");
  CHECK(filled("{big:012.3f}|{big:g}|{big:.2e}|{loss:.1%}|{loss:9}") ==
        "-0001234.500|-1234.5|-1.23e+03|12.3%|  0.12345");
  CHECK(filled("{epoch:.1f}") == "7.0");
  for (const char* bad : {"{los}", "{loss:d}", "{epoch", "epoch}", "{}", "{epoch:x}",
                          "{epoch:999999d}", "{loss:.3}", "{epoch:.2d}", "{epoch!r}"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(filled(bad), ConfigError);
  }
  CHECK_THROWS_WITH(fill_template("x", "{batch}", 1, std::nullopt, {}),
                    Catch::Matchers::Contains("\"epoch\""));
}

TEST_CASE("the saved model is the one at that time") {
  const test::TempFolder folder;
  const FitModels models(LayoutMap(create_mesh({{"batch", 2}})));
  const ModelHandle model = models.regression();
  train(model,
        {ModelCheckpoint(folder / "runs/{epoch}"),
         ModelCheckpoint(folder / "weights/{epoch}.safetensors", {.save_weights_only = true})});
  const std::vector<at::Tensor> end = model.get_weights();
  const ModelHandle other = models.regression(), third = models.regression();
  Checkpoint(other).restore(folder / "runs/2");
  third.load_weights(folder / "weights/2.safetensors");
  CHECK(other->optimizer()->steps() == 8);
  CHECK(other->fit_position().epoch == 2);
  for (size_t i = 0; i < end.size(); ++i) {
    CHECK(at::equal(other.get_weights()[i], end[i]));
    CHECK(at::equal(third.get_weights()[i], end[i]));
  }
  Checkpoint(other).restore(folder / "runs/1");
  CHECK_FALSE(at::equal(other.get_weights()[0], end[0]));
}

TEST_CASE("the extension selects what ModelCheckpoint writes, on every mesh") {
  for (const MeshDims& dims :
       {MeshDims{{"batch", 1}}, MeshDims{{"batch", 2}}, MeshDims{{"batch", 3}}}) {
    const test::TempFolder folder;
    const FitModels models(LayoutMap(create_mesh(dims)));
    const ModelHandle model = models.regression();
    const std::vector<const char*> weights = {".weights.h5", ".weights.json", ".safetensors"};
    std::vector<CallbackHandle> callbacks = {
        ModelCheckpoint(folder / "models/{epoch}.keras"), Scores({2, 1}),
        ModelCheckpoint(folder / "best.keras",
                        {.monitor = "score", .save_best_only = true, .mode = "min"})};
    for (const char* ending : weights) {
      callbacks.push_back(
          ModelCheckpoint(folder / str("{epoch}", ending), {.save_weights_only = true}));
      callbacks.push_back(ModelCheckpoint(folder / str("plain", ending)));
    }
    train(model, callbacks);
    const std::vector<at::Tensor> end = model.get_weights();
    const auto check_same = [&](const ModelHandle& other) {
      for (size_t i = 0; i < end.size(); ++i) CHECK(at::equal(other.get_weights()[i], end[i]));
    };
    for (const char* path : {"models/2.keras", "best.keras"}) {
      CAPTURE(path);
      CHECK(std::filesystem::is_regular_file(folder / path));
      const ModelHandle loaded = load_model(folder / path);
      check_same(loaded);
      CHECK(loaded->optimizer()->steps() == 8);
      const ModelHandle other = models.regression();
      other.load_weights(folder / path);
      check_same(other);
    }
    CHECK_FALSE(at::equal(load_model(folder / "models/1.keras").get_weights()[0], end[0]));
    for (const char* ending : weights) {
      for (const char* name : {"2", "plain"}) {
        const ModelHandle other = models.regression();
        other.load_weights(folder / str(name, ending));
        check_same(other);
      }
    }
    CHECK_THROWS_WITH(model.save_weights(folder / "w.keras"),
                      Catch::Matchers::Contains("write the model with save()"));
  }
}

TEST_CASE("NaN is never the best") {
  const test::TempFolder folder;
  const ModelHandle model = FitModels(LayoutMap(create_mesh({{"batch", 1}}))).regression();
  const ModelCheckpoint best(folder / "{epoch}",
                             {.monitor = "score", .save_best_only = true, .mode = "min"});
  train(model, {Scores({NAN, 3, NAN, 2, NAN, 5}), best}, 6);
  CHECK(best.best() == 2);
  for (const int epoch : {1, 2, 3, 4, 5, 6}) {
    CAPTURE(epoch);
    CHECK(exists(folder / str(epoch)) == (epoch == 2 || epoch == 4));
  }
  EarlyStopping stopping({.monitor = "score", .patience = 9, .mode = "min"});
  train(model, {Scores({NAN, 3, NAN, 2, NAN, 5}), stopping}, 6);
  CHECK(stopping.best_epoch() == 3);
}

TEST_CASE("a model that cannot be saved ends training, or warns") {
  const test::TempFolder folder;
  test::write_file(folder / "file", "not a folder");
  const ModelHandle model = FitModels(LayoutMap(create_mesh({{"batch", 1}}))).regression();
  for (const bool weights_only : {false, true}) {
    const std::string path = folder / (weights_only ? "file/x.safetensors" : "file/x");
    CHECK_THROWS_AS(train(model, {ModelCheckpoint(path, {.save_weights_only = weights_only})}),
                    FileError);
    CHECK(train(model, {ModelCheckpoint(path, {.save_weights_only = weights_only,
                                               .save_failure = SaveFailure::warn})})
              .steps.size() == 8);
  }
  // A user's own folder is not replaced.
  std::filesystem::create_directory(folder / "mine");
  test::write_file(folder / "mine/notes.txt", "mine");
  CHECK_THROWS_AS(train(model, {ModelCheckpoint(folder / "mine")}), FileError);
  CHECK(test::read_file(folder / "mine/notes.txt") == "mine");
}

TEST_CASE("a model that could not be saved does not count as the best so far") {
  const test::TempFolder folder;
  const ModelHandle model = FitModels(LayoutMap(create_mesh({{"batch", 1}}))).regression();
  /// Frees the path of the first epoch's model after saving it failed.
  class Freed final : public Callback {
   public:
    explicit Freed(std::string path) : path_(std::move(path)) {}
    void on_epoch_end(int64_t epoch, Logs&) override {
      if (epoch == 0) std::filesystem::remove(path_);
    }

   private:
    std::string path_;
  };
  const std::string path = folder / "best";
  test::write_file(path, "in the way");
  const ModelCheckpoint best(path, {.monitor = "score",
                                    .save_best_only = true,
                                    .mode = "min",
                                    .save_failure = SaveFailure::warn});
  train(model, {Scores({1, 2}), best, Freed(path)});
  CHECK(best.best() == 2);
  CHECK(std::filesystem::is_directory(path));
}

TEST_CASE("wrong arguments of ModelCheckpoint are refused at once") {
  CHECK_THROWS_AS(ModelCheckpoint(""), ConfigError);
  CHECK_THROWS_AS(ModelCheckpoint("folder/"), ConfigError);
  CHECK_THROWS_AS(ModelCheckpoint("x", {.save_weights_only = true}), ConfigError);
  CHECK_THROWS_AS(ModelCheckpoint("x.keras", {.save_weights_only = true}), ConfigError);
  for (const char* earlier : {"x.h5", "x-{epoch}.hdf5"}) {
    CAPTURE(earlier);
    CHECK_THROWS_AS(ModelCheckpoint(earlier), ConfigError);
    CHECK_THROWS_AS(ModelCheckpoint(earlier, {.save_weights_only = true}), ConfigError);
  }
  CHECK_THROWS_AS(ModelCheckpoint("x", {.mode = "best"}), ConfigError);
  CHECK_THROWS_AS(ModelCheckpoint("x", {.save_freq = "batch"}), ConfigError);
  CHECK_THROWS_AS(ModelCheckpoint("x", {.save_freq = 0}), ConfigError);
  CHECK_THROWS_AS(BackupAndRestore(""), ConfigError);
}

}  // namespace model_checkpoint_test
