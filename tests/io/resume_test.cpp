#include <tessera/tessera.hpp>

#include <csignal>
#include <cstdlib>
#include <memory>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>

#include "tests/io/resumable.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/thread_communicator.hpp"

namespace resume_test {

using namespace tessera;
using namespace tessera::detail;
using test::differs;
using test::dropout_model;
using test::Everything;
using test::Interruption;
using test::optimizer_named;
using test::per_epoch;
using test::Run;
using test::some_layouts;
using test::train;
using test::with_everything;

TEST_CASE("a run resumed in the middle of an epoch is bit-identical to an uninterrupted one") {
  for (const std::string& name : optimizer_names()) {
    for (const bool everything : {false, true}) {
      CAPTURE(name, everything);
      const Json optimizer =
          everything ? with_everything(optimizer_named(name)) : optimizer_named(name);
      const ModelHandle uninterrupted = dropout_model(optimizer, some_layouts());
      const Run expected = train(uninterrupted, {});
      REQUIRE(expected.steps == 21);

      const test::TempFolder folder;
      const BackupAndRestoreOptions options{.save_freq = 10, .asynchronous = everything};
      const ModelHandle first = dropout_model(optimizer, some_layouts());
      const std::string backup = folder / "backup";
      CHECK_THROWS_AS(train(first, {Interruption(13), BackupAndRestore(backup, options)}),
                      StateError);
      const ModelHandle second = dropout_model(optimizer, some_layouts());
      const Run resumed = train(second, {BackupAndRestore(folder / "backup", {.save_freq = 10})});
      CHECK(resumed.steps == 11);
      CHECK(differs(expected, resumed) == "");
      CHECK(Everything(second).difference(Everything(uninterrupted)) == "");
      CHECK_FALSE(exists(folder / "backup"));
    }
  }
}

TEST_CASE("an interruption between epochs, at an epoch's end or twice changes nothing") {
  const Json optimizer = with_everything(optimizer_named("adam"));
  const ModelHandle uninterrupted = dropout_model(optimizer, some_layouts());
  const Run expected = train(uninterrupted, {});
  for (const auto& [every, breaks] : std::vector<std::pair<SaveFreq, std::vector<int64_t>>>{
           {"epoch", {8}}, {"epoch", {9, 3, 8}}, {per_epoch, {8}}, {1, {2, 5, 9}}, {3, {15}}}) {
    CAPTURE(every.batches(), breaks.size());
    const test::TempFolder folder;
    const BackupAndRestoreOptions options{.save_freq = every, .double_checkpoint = true};
    for (const int64_t steps : breaks) {
      const ModelHandle broken = dropout_model(optimizer, some_layouts());
      // The backup is notified of a step after the interruption, whatever their order.
      CHECK_THROWS_AS(
          train(broken, {BackupAndRestore(folder / "backup", options), Interruption(steps)}),
          StateError);
    }
    const ModelHandle second = dropout_model(optimizer, some_layouts());
    const Run resumed = train(second, {BackupAndRestore(folder / "backup", options)});
    CHECK(resumed.steps < expected.steps);
    CHECK(differs(expected, resumed) == "");
    CHECK(Everything(second).difference(Everything(uninterrupted)) == "");
  }
}

TEST_CASE("other callbacks continue from their saved state") {
  const Json optimizer = {{"class_name", "Adam"}, {"config", {{"learning_rate", 0.01}}}};
  const test::TempFolder folder;
  // With mode max the first epoch is the best, so the kept weights are older than the interruption.
  struct Callbacks {
    explicit Callbacks(const std::string& path)
        : stopping({.monitor = "loss", .patience = 5, .mode = "max", .restore_best_weights = true}),
          best(path, {.monitor = "val_loss", .save_best_only = true}) {}
    std::vector<CallbackHandle> all(const CallbackHandle& last) const {
      return {stopping, best,
              LearningRateScheduler([](int64_t, double rate) { return rate * 0.9; }),
              ReduceLROnPlateau({.monitor = "loss", .factor = 0.5, .patience = 2, .mode = "max"}),
              last};
    }
    EarlyStopping stopping;
    ModelCheckpoint best;
  };
  const ModelHandle uninterrupted = dropout_model(optimizer, some_layouts());
  const Callbacks one(folder / "best_1");
  const Run expected = train(uninterrupted, one.all(Callback()), 12);
  REQUIRE(one.stopping.stopped_epoch() > 3);
  REQUIRE(one.stopping.best_epoch() < 2);

  const BackupAndRestoreOptions every{.save_freq = 2};
  const ModelHandle broken = dropout_model(optimizer, some_layouts());
  const Callbacks two(folder / "best_2");
  std::vector<CallbackHandle> interrupted = two.all(BackupAndRestore(folder / "backup", every));
  interrupted.emplace_back(Interruption(2 * per_epoch + 4));
  CHECK_THROWS_AS(train(broken, interrupted, 12), StateError);

  const ModelHandle second = dropout_model(optimizer, some_layouts());
  const Callbacks three(folder / "best_2");
  const Run resumed = train(second, three.all(BackupAndRestore(folder / "backup", every)), 12);
  CHECK(resumed.steps == expected.steps - 2 * per_epoch - 2);
  CHECK(differs(expected, resumed) == "");
  CHECK(Everything(second).difference(Everything(uninterrupted)) == "");
  CHECK(three.stopping.stopped_epoch() == one.stopping.stopped_epoch());
  CHECK(three.stopping.best_epoch() == one.stopping.best_epoch());
  CHECK(three.best.best() == one.best.best());
  CHECK(second->optimizer()->learning_rate() == uninterrupted->optimizer()->learning_rate());
}

TEST_CASE("a run that was stopped early before an interruption does not train further") {
  /// Fails when training is done.
  class FailsAtEnd final : public Callback {
    void on_train_end(const Logs&) override { throw StateError("FailsAtEnd", "power", "none", ""); }
  };
  const Json optimizer = optimizer_named("adam");
  const test::TempFolder folder;
  const std::string backup = folder / "backup";
  const auto stopping = [](int64_t patience) {
    return EarlyStopping({.monitor = "loss", .patience = patience, .mode = "max"});
  };
  const ModelHandle uninterrupted = dropout_model(optimizer, some_layouts());
  const Run expected = train(uninterrupted, {stopping(1)}, 9);
  const ModelHandle broken = dropout_model(optimizer, some_layouts());
  CHECK_THROWS_AS(train(broken, {FailsAtEnd(), stopping(1), BackupAndRestore(backup)}, 9),
                  StateError);
  for (const int64_t patience : {1, 2}) {
    const ModelHandle second = dropout_model(optimizer, some_layouts());
    const EarlyStopping again = stopping(patience);
    const Run resumed =
        train(second, {again, BackupAndRestore(backup, {.delete_checkpoint = false})}, 9);
    CHECK(resumed.steps == (patience - 1) * per_epoch);
    CHECK(again.stopped_epoch() == expected.history.epoch.back() + patience - 1);
    if (patience == 1) CHECK(differs(expected, resumed) == "");
  }
}

TEST_CASE("a callback that has state, or only tensors, from a later point on is restored") {
  /// Has nothing to save before its first epoch ends.
  class Late final : public Callback {
   public:
    explicit Late(bool keeps_tensors) : keeps_tensors_(keeps_tensors) {}
    std::string class_name() const override { return "Late"; }
    void on_epoch_end(int64_t epoch, Logs&) override {
      if (!keeps_tensors_) state_ = epoch;
      const Variable first = model().weights()[0];
      if (keeps_tensors_) tensors_ = {{first.path(), first.value()}};
    }
    Json state() const override { return state_; }
    NamedTensors tensors() const override { return tensors_; }
    void restore(const Json& state, const NamedTensors& tensors) override {
      restored = keeps_tensors_ ? tensors.size() == 1 : state == 0;
    }
    bool restored = false;

   private:
    bool keeps_tensors_;
    Json state_ = nullptr;
    NamedTensors tensors_ = {};
  };
  const Json optimizer = optimizer_named("adam");
  for (const bool keeps_tensors : {false, true}) {
    const test::TempFolder folder;
    const auto callbacks = [&](const std::shared_ptr<Late>& late) {
      return std::vector<CallbackHandle>{late, BackupAndRestore(folder / "backup")};
    };
    std::vector<CallbackHandle> broken = callbacks(std::make_shared<Late>(keeps_tensors));
    broken.emplace_back(Interruption(per_epoch + 2));
    CHECK_THROWS_AS(train(dropout_model(optimizer, some_layouts()), broken), StateError);
    const auto late = std::make_shared<Late>(keeps_tensors);
    train(dropout_model(optimizer, some_layouts()), callbacks(late));
    CHECK(late->restored);
  }
}

TEST_CASE("an epoch that was stopped early resumes with its own metrics, not validation's") {
  const Json optimizer = optimizer_named("adam");
  const ModelHandle uninterrupted = dropout_model(optimizer, some_layouts());
  const Run expected = train(uninterrupted, {});
  const test::TempFolder folder;
  const BackupAndRestoreOptions options{.delete_checkpoint = false};
  const ModelHandle first = dropout_model(optimizer, some_layouts());
  train(first, {Interruption(per_epoch + 3, Interruption::Kind::stop),
                BackupAndRestore(folder / "backup", options)});
  const ModelHandle second = dropout_model(optimizer, some_layouts());
  const Run resumed = train(second, {BackupAndRestore(folder / "backup", options)});
  CHECK(resumed.steps == 11);
  CHECK(differs(expected, resumed) == "");
  CHECK(Everything(second).difference(Everything(uninterrupted)) == "");
  CHECK(exists(folder / "backup"));
}

TEST_CASE("a run resumes on another mesh with the same losses up to rounding") {
  LayoutMap data(create_mesh({{"batch", 4}}));
  LayoutMap model(create_mesh({{"model", 2}}));
  model["hidden_1/kernel"] = {unsharded, "model"};
  model["hidden_2/kernel"] = {"model", unsharded};
  const Json optimizer = {{"class_name", "Adam"}, {"config", {{"learning_rate", 0.001}}}};
  const ModelHandle uninterrupted = dropout_model(optimizer, data);
  const Run expected = train(uninterrupted, {}, 9);
  const test::TempFolder folder;
  const ModelHandle first = dropout_model(optimizer, data);
  CHECK_THROWS_AS(
      train(first, {BackupAndRestore(folder / "backup", {.save_freq = 10}), Interruption(12)}, 9),
      StateError);
  const ModelHandle second = dropout_model(optimizer, model);
  const Run resumed = train(second, {BackupAndRestore(folder / "backup")}, 9);
  REQUIRE(resumed.steps == 53);
  const std::vector<double>&losses = resumed.history.steps,
        &expected_losses = expected.history.steps;
  CHECK(losses[10] == Approx(expected_losses[10]).epsilon(1e-5));
  for (size_t i = 10; i < expected_losses.size(); ++i)
    CHECK(losses[i] == Approx(expected_losses[i]).epsilon(1e-3));
}

TEST_CASE("two processes resume as if uninterrupted") {
  const Json optimizer = with_everything(optimizer_named("adam"));
  const MeshDims dims = {{"batch", 2}, {"model", 2}};
  const test::TempFolder folder;
  const auto run = [&](int, const std::shared_ptr<Communicator>& communicator) {
    LayoutMap layouts(test::rank_mesh(dims, communicator));
    layouts["hidden_1/kernel"] = {unsharded, "model"};
    const ModelHandle uninterrupted = dropout_model(optimizer, layouts);
    const Run expected = train(uninterrupted, {});
    const ModelHandle first = dropout_model(optimizer, layouts);
    train(first,
          {BackupAndRestore(folder / "backup",
                            {.save_freq = 5, .delete_checkpoint = false, .asynchronous = true}),
           Interruption(12, Interruption::Kind::stop)});
    const ModelHandle second = dropout_model(optimizer, layouts);
    const Run resumed = train(second, {BackupAndRestore(folder / "backup", {.save_freq = 5})});
    test::expect(resumed.steps == 11, "it began at another step");
    test::expect(differs(expected, resumed).empty(), differs(expected, resumed));
    const std::string weights = Everything(second).difference(Everything(uninterrupted));
    test::expect(weights.empty(), weights);
  };
  CHECK_NOTHROW(test::run_ranks(2, run));
}

TEST_CASE("a damaged backup stops the run, or the previous one is used") {
  const Json optimizer = optimizer_named("sgd");
  for (const bool twice : {false, true}) {
    const test::TempFolder folder;
    const BackupAndRestoreOptions options{.save_freq = 4, .double_checkpoint = twice};
    const ModelHandle first = dropout_model(optimizer, some_layouts());
    CHECK_THROWS_AS(train(first, {BackupAndRestore(folder / "backup", options), Interruption(10)}),
                    StateError);
    CHECK(exists(folder / "backup/step-000004") == twice);
    for (const auto& file : std::filesystem::directory_iterator(folder / "backup/step-000008")) {
      test::write_file(file.path(), test::read_file(file.path()).substr(0, 100));
    }
    const ModelHandle second = dropout_model(optimizer, some_layouts());
    const auto resume = [&] {
      return train(second, {BackupAndRestore(folder / "backup", options)});
    };
    if (twice) {
      CHECK(resume().steps == 17);
    } else {
      CHECK_THROWS_AS(resume(), FileError);
    }
  }
}

// Hidden: the test below runs it as a separate program, which kills itself.
TEST_CASE("a run that is killed", "[.killed_run]") {
  const char* folder = std::getenv("TESSERA_BACKUP");
  REQUIRE(folder);
  const ModelHandle model = dropout_model(with_everything(optimizer_named("adam")), some_layouts());
  train(model,
        {BackupAndRestore(folder, {.save_freq = 5}), Interruption(13, Interruption::Kind::kill)});
}

TEST_CASE("a run resumes after kill -9 in another process") {
  const Json optimizer = with_everything(optimizer_named("adam"));
  const ModelHandle uninterrupted = dropout_model(optimizer, some_layouts());
  const Run expected = train(uninterrupted, {});
  const test::TempFolder folder;
  const std::string backup = folder / "backup";
  const test::ProgramRun run = test::run_program(std::filesystem::read_symlink("/proc/self/exe"),
                                                 {"[.killed_run]"}, {{"TESSERA_BACKUP", backup}});
  CHECK(run.exit_code == 128 + SIGKILL);
  const ModelHandle second = dropout_model(optimizer, some_layouts());
  const Run resumed = train(second, {BackupAndRestore(backup, {.save_freq = 5})});
  CHECK(resumed.steps == 11);
  CHECK(differs(expected, resumed) == "");
  CHECK(Everything(second).difference(Everything(uninterrupted)) == "");
}

}  // namespace resume_test
