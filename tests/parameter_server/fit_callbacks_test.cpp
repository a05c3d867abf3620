#include <cmath>
#include <filesystem>

#include <tessera/framework/base/error.hpp>

#include "tests/parameter_server/fit_jobs.hpp"
#include "tests/support/files.hpp"

namespace fit_callbacks_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test::fit_jobs;
using Catch::Matchers::Contains;

namespace {

/// Records batches and does not need weights.
struct Listener : Callback, OccasionalWeightReader {
  void on_train_batch_end(int64_t batch, const Logs&) override {
    ended.push_back(batch);
    if (stop_after == static_cast<int64_t>(ended.size())) model().set_stop_training(true);
  }
  std::optional<int64_t> batches_to_weights() override { return std::nullopt; }
  std::vector<int64_t> ended;
  int64_t stop_after = 0;
};

}  // namespace

TEST_CASE("parameter servers: with several workers every step is made once", "[fit]") {
  const auto listener = std::make_shared<Listener>();
  const Fit fit = [&](const ModelHandle& model) {
    return model.fit(test::small_data(rows), options_of({listener}));
  };
  const JobOutcome job = with_servers({.workers = 2, .servers = 2}, fit);
  CHECK(job.errors.all() == "");
  CHECK(job.chief.optimizer_steps == steps * epochs);
  CHECK(job.chief.history.steps.size() == steps * epochs);
  CHECK(listener->ended == std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
  for (const double loss : job.chief.history.steps) CHECK((loss > 0 && loss < 5));
  const auto& losses = job.chief.history.at("loss");
  CHECK(losses.back() < losses.front());
  // The rows of an epoch do not depend on who reads them: validation is exact.
  CHECK(job.chief.history.at("val_loss").back() ==
        Approx(find_value(job.chief.evaluated, "loss").value()));
  REQUIRE(job.workers.size() == 2);
  for (const History& history : job.workers) {
    CHECK(history.to_json() == job.chief.history.to_json());
  }
}

TEST_CASE("parameter servers: callbacks may change or save the model", "[fit]") {
  const test::TempFolder folder;
  const auto callbacks = [&](const std::string& prefix) -> std::vector<CallbackHandle> {
    const auto halved = [](int64_t, double rate) { return rate / 2; };
    return {LearningRateScheduler(halved),
            ModelCheckpoint(folder / (prefix + "-{epoch}-{batch}.safetensors"),
                            {.save_weights_only = true, .save_freq = 3}),
            EarlyStopping({.monitor = "val_loss", .patience = 5, .restore_best_weights = true}),
            TensorBoard({.log_dir = folder / (prefix + "-logs"), .update_freq = 2})};
  };
  const auto fit_in = [&](const std::string& prefix) -> Fit {
    return [&, prefix](const ModelHandle& model) {
      return model.fit(test::small_data(rows), options_of(callbacks(prefix)));
    };
  };
  const JobOutcome job = with_servers({}, fit_in("there"));
  CHECK(job.errors.chief == "");
  const Outcome here = ordinary(fit_in("here"));
  check_equal(job.chief, here);
  int64_t saved = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename();
    if (name.rfind("here-", 0) != 0 || entry.is_directory()) continue;
    CAPTURE(name);
    const std::string other = folder / ("there-" + name.substr(5));
    REQUIRE(std::filesystem::exists(other));
    const ModelHandle a = make_small(), b = make_small();
    a.build({-1, 18});
    b.build({-1, 18});
    a.load_weights(entry.path());
    b.load_weights(other);
    for (size_t i = 0; i < a.get_weights().size(); ++i) {
      CHECK(test::difference(b.get_weights()[i], a.get_weights()[i], 1e-10, 1e-10) == "");
    }
    ++saved;
  }
  CHECK(saved == steps * epochs / 3);
}

TEST_CASE("parameter servers: a failed fit resumes from its backup in a new job", "[fit]") {
  struct Failing : Callback, OccasionalWeightReader {
    void on_epoch_begin(int64_t number) override { epoch = number; }
    void on_train_batch_end(int64_t batch, const Logs&) override {
      if (epoch == 1 && batch == 3) throw std::runtime_error("the power is gone");
    }
    std::optional<int64_t> batches_to_weights() override { return std::nullopt; }
    int64_t epoch = 0;
  };
  const test::TempFolder folder;
  const auto fit_with = [&](const std::vector<CallbackHandle>& more) -> Fit {
    return [&, more](const ModelHandle& model) {
      std::vector<CallbackHandle> callbacks = {
          BackupAndRestore(folder / "backup", {.save_freq = 2})};
      callbacks.insert(callbacks.end(), more.begin(), more.end());
      return model.fit(test::small_data(rows), options_of(callbacks));
    };
  };
  const JobOutcome failed = with_servers({}, fit_with({Failing()}));
  CHECK(failed.errors.chief == "the power is gone");
  for (const std::string& error : failed.errors.workers) {
    CHECK_THAT(error, Contains("the power is gone"));
  }
  for (const std::string& error : failed.errors.servers) {
    CHECK_THAT(error, Contains("the power is gone"));
  }
  REQUIRE(std::filesystem::exists(folder / "backup"));
  const JobOutcome resumed = with_servers({}, fit_with({}));
  CHECK(resumed.errors.chief == "");
  check_equal(resumed.chief, ordinary([](const ModelHandle& model) {
                return model.fit(test::small_data(rows), options_of());
              }));
}

TEST_CASE("parameter servers: stop_training in the middle of an epoch", "[fit]") {
  const auto listener = std::make_shared<Listener>();
  listener->stop_after = steps + 1;
  FitOptions options = options_of({listener});
  options.batch_size = 4;
  const Fit fit = [&](const ModelHandle& model) {
    return model.fit(test::small_data(4 * steps), options);
  };
  options.epochs = 4;
  const JobOutcome job = with_servers({.workers = 2}, fit);
  CHECK(job.errors.all() == "");
  CHECK(job.chief.history.epoch == std::vector<int64_t>{0, 1});
  CHECK(job.chief.history.steps.size() == listener->ended.size());
  CHECK(job.chief.optimizer_steps == static_cast<int64_t>(listener->ended.size()));
}

TEST_CASE("parameter servers: a NaN loss ends the job", "[fit]") {
  const Fit fit = [](const ModelHandle& model) {
    Examples all{.x = {at::ones({rows, 18}, at::kDouble)}, .y = {at::zeros({rows}, at::kLong)}};
    all.x[0].select(0, 40).fill_(std::nan(""));
    FitOptions options = options_of();
    options.shuffle = false;
    return model.fit(all, options);
  };
  const JobOutcome job = with_servers({.workers = 2}, fit);
  CHECK_THAT(job.errors.chief, Contains("[fit] the loss stays finite. Received: ") &&
                                   Contains("nan at epoch 1, step"));
  for (const std::string& error : job.errors.workers) {
    CHECK_THAT(error, Contains("the loss stays finite"));
  }
  for (const std::string& error : job.errors.servers) {
    CHECK_THAT(error, Contains("the loss stays finite"));
  }
}

}  // namespace fit_callbacks_test
