#include <tessera/tessera.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/owners.hpp"
#include "tests/support/warnings.hpp"

namespace checkpoint_manager_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// A variable whose value is the step at which it was saved.
struct Counter {
  Counter() : w("w", filled({100}, 0)), checkpoint({w}) {}
  void set(double value) { w.assign(filled({100}, value)); }
  double value() const { return w.value().full()[7].item<double>(); }

  Variable w;
  Checkpoint checkpoint;
};

std::vector<std::string> names(const CheckpointManager& manager) {
  std::vector<std::string> list;
  for (const std::string& folder : manager.checkpoints()) {
    list.push_back(std::filesystem::path(folder).filename());
  }
  return list;
}

void damage(const std::string& folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".safetensors") continue;
    std::string bytes = test::read_file(file.path());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    test::write_file(file.path(), bytes);
  }
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the newest checkpoints and the best one are kept") {
  for (const bool asynchronous : {false, true}) {
    const test::TempFolder folder;
    const std::string directory = folder / "run";
    Counter counter;
    const CheckpointManagerOptions options{
        .max_to_keep = 2, .monitor = "val_loss", .every_n_steps = 2, .asynchronous = asynchronous};
    CheckpointManager manager(counter.checkpoint, directory, options);
    CHECK_FALSE(manager.latest());
    CHECK_FALSE(manager.best());
    CHECK_FALSE(manager.restore_latest());
    const std::vector<double> losses = {NAN, 3, 1, NAN, 2, 5, 4};
    for (size_t i = 0; i < losses.size(); ++i) {
      const auto step = static_cast<int64_t>(2 * i);
      counter.set(static_cast<double>(step));
      CHECK(manager.save(step + 1, {{"val_loss", -9}}) == "");
      CHECK(manager.save(step, {{"loss", 0}, {"val_loss", losses[i]}}) != "");
    }
    manager.wait();
    CHECK(names(manager) == Names{"step-000004", "step-000010", "step-000012"});
    CHECK(manager.best() == directory + "/step-000004");
    CHECK(manager.latest() == directory + "/step-000012");
    // A restarted manager knows the best one too.
    Counter again;
    CheckpointManager next(again.checkpoint, directory, options);
    CHECK(next.best() == directory + "/step-000004");
    CHECK(next.restore_latest() == directory + "/step-000012");
    CHECK(again.value() == 12);
    next.save(14, {{"val_loss", 0.5}});
    next.wait();
    CHECK(names(next) == Names{"step-000012", "step-000014"});
    CHECK(next.best() == directory + "/step-000014");
    next.remove_all();
    CHECK_FALSE(exists(directory));
  }
}

TEST_CASE("the best may have the largest metric, and all may be kept") {
  const test::TempFolder folder;
  Counter counter;
  CheckpointManager manager(counter.checkpoint, folder / "run",
                            {.max_to_keep = 1, .monitor = "accuracy", .mode = "max"});
  for (int64_t step = 1; step < 5; ++step) {
    manager.save(step, {{"accuracy", step == 2 ? 0.9 : 0.5}});
  }
  CHECK(names(manager) == Names{"step-000002", "step-000004"});
  CheckpointManager all(counter.checkpoint, folder / "all", {.max_to_keep = std::nullopt});
  for (int64_t step = 1; step < 6; ++step) all.save(step);
  CHECK(names(all).size() == 5);
}

TEST_CASE("the newest checkpoint is the one saved last, whatever its step") {
  const test::TempFolder folder;
  const std::string directory = folder / "run";
  Counter counter;
  counter.checkpoint.save(directory + "/step-000900");
  CheckpointManager previous(counter.checkpoint, directory);
  for (const int64_t step : {100, 200, 300}) previous.save(step);
  for (const bool asynchronous : {false, true}) {
    CheckpointManager manager(counter.checkpoint, directory,
                              {.max_to_keep = 2, .asynchronous = asynchronous});
    for (const int64_t step : {10, 20, 30}) {
      counter.set(static_cast<double>(step));
      manager.save(step);
    }
    manager.wait();
    CHECK(names(manager) == Names{"step-000900", "step-000020", "step-000030"});
    CHECK(manager.latest() == directory + "/step-000030");
  }
  // A manager that was created earlier also finds the checkpoint that another one saved last.
  CHECK(previous.latest() == directory + "/step-000030");
  CheckpointManager next(counter.checkpoint, directory);
  next.save(25);
  CHECK(next.restore_latest() == directory + "/step-000025");
  CHECK(next.latest() == directory + "/step-000025");
  test::write_file(directory + "/step-000025/index.json", "{}");
  const test::Warnings warnings;
  CHECK(next.restore_latest() == directory + "/step-000030");
  CHECK(warnings.text().find("step-000025") != std::string::npos);
}

TEST_CASE("a missing metric keeps no best checkpoint, with one warning") {
  const test::TempFolder folder;
  Counter counter;
  CheckpointManager manager(counter.checkpoint, folder / "run", {.monitor = "val_loss"});
  {
    const test::Warnings warnings;
    manager.save(1, {{"val_loss", 2}});
    CHECK(warnings.lines() == 0);
    manager.save(2, {{"accuracy", 1}, {"loss", 2}});
    manager.save(3, {{"loss", 2}});
    CHECK(warnings.lines() == 1);
    CHECK(warnings.text() ==
          "Warning: Can keep the best checkpoint only with val_loss available. "
          "There are: accuracy, loss.\n");
  }
  CheckpointManager without(counter.checkpoint, folder / "run", {.monitor = "val_loss"});
  const test::Warnings warnings;
  without.save(4);
  CHECK(warnings.text().find("There are: none.") != std::string::npos);
}

TEST_CASE("a manager changes nothing in a directory before its first save") {
  const test::TempFolder folder;
  const std::string directory = folder / "run";
  Counter counter;
  counter.checkpoint.save(directory + "/step-000001");
  counter.set(1);
  std::filesystem::copy(directory + "/step-000001", directory + "/tmp.step-000002.former");
  const std::string ended = directory + "/tmp.step-000003." + test::ended_number();
  const std::string elsewhere = directory + "/tmp.step-000003." + test::elsewhere_number();
  for (const std::string& name : {ended, elsewhere}) {
    std::filesystem::copy(directory + "/step-000001", name);
  }
  CheckpointManager manager(counter.checkpoint, directory);
  CHECK(manager.restore_latest() == directory + "/step-000002");
  CHECK(counter.value() == 0);
  CHECK(exists(directory + "/tmp.step-000002.former"));
  CHECK(exists(ended));
  manager.save(4);
  CHECK_FALSE(exists(directory + "/tmp.step-000002.former"));
  CHECK(exists(directory + "/step-000002"));
  CHECK_FALSE(exists(ended));
  CHECK(exists(elsewhere + "/index.json"));
}

TEST_CASE("a manager whose directory another machine took over reclaims it, or fails") {
  const test::TempFolder folder;
  const std::string directory = folder / "run";
  Counter counter;
  CheckpointManager manager(counter.checkpoint, directory);
  manager.save(1);
  const auto claims = [&] {
    Names found;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(".tessera-claim-")) found.push_back(name);
    }
    return found;
  };
  const Names first = claims();
  REQUIRE(first.size() == 1);
  manager.save(2);
  CHECK(claims() == first);
  // Does what a machine that takes the directory over does.
  std::filesystem::remove(directory + "/" + first[0]);
  manager.save(3);
  REQUIRE(claims().size() == 1);
  std::filesystem::rename(directory + "/" + claims()[0],
                          directory + "/.tessera-claim-" + test::elsewhere_number());
  std::atomic<bool> ends{false};
  std::thread beating([&] {
    while (!ends) {
      std::filesystem::last_write_time(directory + "/.tessera-claim-" + test::elsewhere_number(),
                                       std::filesystem::file_time_type::clock::now());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  CHECK_THROWS_WITH(manager.save(4), Catch::Matchers::Contains("one run at a time") &&
                                         Catch::Matchers::Contains("4711"));
  ends = true;
  beating.join();
  CHECK_FALSE(exists(directory + "/step-000004"));
}

TEST_CASE("a manager keeps files that it did not create") {
  const test::TempFolder folder;
  const std::string directory = folder / "run";
  Counter counter;
  counter.checkpoint.save(directory + "/step-000001");
  std::filesystem::create_directory(directory + "/step-000002");
  test::write_file(directory + "/notes.txt", "mine");
  CheckpointManager manager(counter.checkpoint, directory, {.max_to_keep = 1});
  manager.save(3);
  test::write_file(directory + "/step-000003/mine.txt", "mine");
  {
    const test::Warnings warnings;
    manager.save(4);
    CHECK(warnings.text().find("step-000003") != std::string::npos);
  }
  manager.save(5);
  for (const char* name : {"/step-000001", "/step-000002", "/notes.txt", "/step-000003/mine.txt"}) {
    CAPTURE(name);
    CHECK(exists(directory + name));
  }
  CHECK_FALSE(exists(directory + "/step-000004"));
}

TEST_CASE("if the newest checkpoint is damaged, the previous one is used, with one warning") {
  const test::TempFolder folder;
  const std::string directory = folder / "run";
  Counter counter;
  CheckpointManager manager(counter.checkpoint, directory);
  for (int64_t step = 1; step < 4; ++step) {
    counter.set(static_cast<double>(step));
    manager.save(step);
  }
  damage(directory + "/step-000003");
  damage(directory + "/step-000002");
  CheckpointManager strict(counter.checkpoint, directory, {.strict = true});
  CHECK_THROWS_AS(strict.restore_latest(), FileError);
  CHECK(counter.value() == 3);

  CheckpointManager next(counter.checkpoint, directory, {.max_to_keep = 1});
  {
    const test::Warnings warnings;
    CHECK(next.restore_latest() == directory + "/step-000001");
    CHECK(warnings.lines() == 1);
    CHECK(warnings.text().find("step-000003") != std::string::npos);
  }
  CHECK(counter.value() == 1);
  CHECK(next.latest() == directory + "/step-000001");
  // The next checkpoint has a smaller step but is kept as the newest.
  next.save(2);
  CHECK(names(next) == Names{"step-000002"});
  damage(directory + "/step-000002");
  CHECK_THROWS_AS(next.restore_latest(), FileError);
}

TEST_CASE("a checkpoint of another model is not treated as damaged") {
  const test::TempFolder folder;
  Counter counter;
  CheckpointManager manager(counter.checkpoint, folder / "run");
  manager.save(1);
  manager.save(2);
  const Variable other("w", filled({7}, 0));
  CheckpointManager wrong(Checkpoint({other}), folder / "run");
  CHECK_THROWS_AS(wrong.restore_latest(), CheckpointMismatch);
}

TEST_CASE("a save that fails ends the run, or warns") {
  for (const bool asynchronous : {false, true}) {
    CAPTURE(asynchronous);
    const test::TempFolder folder;
    const std::string directory = folder / "run";
    Counter counter;
    CheckpointManager manager(counter.checkpoint, directory, {.asynchronous = asynchronous});
    CheckpointManager lenient(counter.checkpoint, directory,
                              {.asynchronous = asynchronous, .save_failure = SaveFailure::warn});
    test::write_file(directory, "not a folder");
    const auto save = [&] {
      manager.save(1);
      manager.wait();
    };
    CHECK_THROWS_AS(save(), FileError);
    const test::Warnings warnings;
    lenient.save(1);
    lenient.wait();
    CHECK(warnings.lines() == 1);
    CHECK(warnings.text().find("run") != std::string::npos);
    std::filesystem::remove(directory);
    CHECK(lenient.save(2) != "");
    lenient.wait();
    CHECK(names(lenient) == Names{"step-000002"});
  }
}

TEST_CASE("an error that can no longer be thrown becomes a warning") {
  const test::TempFolder folder;
  test::write_file(folder / "file", "not a folder");
  const test::Warnings warnings;
  {
    Counter counter;
    counter.checkpoint.save(folder / "file/one", {.asynchronous = true});
  }
  CHECK(warnings.lines() == 1);
  CHECK(warnings.text().find("file") != std::string::npos);
}

TEST_CASE("a manager's options are checked") {
  const test::TempFolder folder;
  Counter counter;
  const auto with = [&](const CheckpointManagerOptions& options) {
    CheckpointManager(counter.checkpoint, folder / "run", options);
  };
  CHECK_THROWS_AS(with({.max_to_keep = 0}), ConfigError);
  CHECK_THROWS_AS(with({.monitor = "accuracy"}), ConfigError);
  CHECK_THROWS_AS(with({.monitor = "loss", .mode = "least"}), ConfigError);
  CHECK_THROWS_AS(with({.every_n_steps = 0}), ConfigError);
  CHECK_THROWS_AS(CheckpointManager(counter.checkpoint, ""), ConfigError);
}

}  // namespace checkpoint_manager_test
