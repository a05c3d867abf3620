#include <tessera/tessera.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/training/callbacks/callbacks.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/files.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/standard_output.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/warnings.hpp"

namespace callbacks_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

Mesh four() { return create_mesh({{"batch", 4}}); }

/// Records all events.
class Listener : public Callback {
 public:
  std::vector<std::string> told;

  void on_train_begin() override { tell("train begin"); }
  void on_train_end(const Logs& logs) override { tell("train end" + names(logs)); }
  void on_epoch_begin(int64_t epoch) override { tell(str("epoch ", epoch, " begin")); }
  void on_epoch_end(int64_t epoch, Logs& logs) override {
    tell(str("epoch ", epoch, " end", names(logs)));
  }
  void on_train_batch_begin(int64_t batch) override { tell(str("batch ", batch, " begin")); }
  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    tell(str("batch ", batch, " end", names(logs)));
  }
  void on_test_begin() override { tell("test begin"); }
  void on_test_end(const Logs& logs) override { tell("test end" + names(logs)); }
  void on_test_batch_begin(int64_t batch) override { tell(str("test ", batch, " begin")); }
  void on_test_batch_end(int64_t batch, const Logs& logs) override {
    tell(str("test ", batch, " end", names(logs)));
  }
  void on_predict_begin() override { tell("predict begin"); }
  void on_predict_end() override { tell("predict end"); }
  void on_predict_batch_begin(int64_t batch) override { tell(str("predict ", batch, " begin")); }
  void on_predict_batch_end(int64_t batch) override { tell(str("predict ", batch, " end")); }

 private:
  static std::string names(const Logs& logs) {
    std::string text = ":";
    for (const auto& [name, value] : logs) text += " " + name;
    return text;
  }
  void tell(const std::string& text) { told.push_back(text); }
};

/// Overrides only epoch events.
class EpochListener : public Callback {
 public:
  void on_epoch_end(int64_t, Logs& logs) override { set_value(logs, "added", 7); }
};

/// A dataset whose last row cannot be read.
class Unreadable : public Dataset {
 public:
  explicit Unreadable(bool fails) : fails_(fails) {}
  int64_t size() const override { return 12; }
  Examples get(std::span<const int64_t> rows) const override {
    if (++reads_ == 3 && fails_) throw FileError("part-2", "readable", "", "");
    return test::small_data(12).get(rows);
  }
  std::vector<Shape> input_shapes() const override { return {{18}}; }

 private:
  bool fails_;
  mutable int64_t reads_ = 0;
};

int64_t reductions(const std::vector<CallbackHandle>& callbacks) {
  const Sequential model = test::compiled_small(four());
  CommLog log;
  const CommLogScope scope(log);
  model.fit(test::small_data(12), {.batch_size = 4, .verbose = 0, .callbacks = callbacks});
  return static_cast<int64_t>(log.entries().size());
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("callbacks are called in Keras' order") {
  const Sequential model = test::compiled_small(four());
  const auto listener = std::make_shared<Listener>();
  model.fit(test::small_data(8), {.batch_size = 4,
                                  .verbose = 0,
                                  .callbacks = {listener},
                                  .validation_data = test::small_data(4)});
  CHECK(listener->told ==
        std::vector<std::string>{"train begin", "epoch 0 begin", "batch 0 begin",
                                 "batch 0 end: accuracy loss", "batch 1 begin",
                                 "batch 1 end: accuracy loss", "test begin", "test 0 begin",
                                 "test 0 end: accuracy loss", "test end: accuracy loss",
                                 "epoch 0 end: accuracy loss val_accuracy val_loss",
                                 "train end: accuracy loss val_accuracy val_loss"});
  listener->told.clear();
  model.evaluate(test::small_data(4), {.verbose = 0, .callbacks = {listener}});
  CHECK(listener->told == std::vector<std::string>{"test begin", "test 0 begin",
                                                   "test 0 end: accuracy loss",
                                                   "test end: accuracy loss"});
  listener->told.clear();
  model.predict(test::small_data(4), {.batch_size = 3, .callbacks = {listener}});
  CHECK(listener->told == std::vector<std::string>{"predict begin", "predict 0 begin",
                                                   "predict 0 end", "predict 1 begin",
                                                   "predict 1 end", "predict end"});
}

TEST_CASE("metrics are read after a batch only for a callback that overrides its event") {
  const int64_t alone = reductions({});
  CHECK(reductions({EpochListener(), TerminateOnNaN(), EarlyStopping({.monitor = "loss"}),
                    LambdaCallback({.on_epoch_end = [](int64_t, Logs&) {}})}) == alone);
  // One more reduction for each of three batches.
  CHECK(reductions({std::make_shared<Listener>()}) == alone + 3);
  CHECK(reductions({LambdaCallback({.on_train_batch_end = [](int64_t, const Logs&) {}})}) ==
        alone + 3);
}

TEST_CASE("values that a callback adds to an epoch's logs go into the history") {
  const Sequential model = test::compiled_small(four());
  const FitOptions options{
      .batch_size = 4, .epochs = 2, .verbose = 0, .callbacks = {EpochListener()}};
  const History history = model.fit(test::small_data(8), options);
  CHECK(history.at("added") == std::vector<double>{7, 7});
}

TEST_CASE("a callback may recompile the model during training") {
  const Sequential model = test::compiled_small(four());
  const CallbackHandle again = LambdaCallback({.on_epoch_begin = [&](int64_t) {
    model.compile(test::small_compile(test::small_layouts("data", four())));
  }});
  const History history = model.fit(
      test::small_data(8), {.batch_size = 4, .epochs = 2, .verbose = 0, .callbacks = {again}});
  CHECK(history.at("loss").size() == 2);
}

TEST_CASE("a callback ends training after its batch") {
  const Sequential model = test::compiled_small(four());
  const CallbackHandle stop =
      LambdaCallback({.on_train_batch_end = [&](int64_t batch, const Logs&) {
        if (batch == 1) model->set_stop_training(true);
      }});
  const FitOptions options{.batch_size = 4, .epochs = 3, .verbose = 0, .callbacks = {stop}};
  const History history = model.fit(test::small_data(20), options);
  CHECK(history.steps.size() == 2);
  CHECK(history.epoch == std::vector<int64_t>{0});
  CHECK(model->stop_training());
  // The next fit starts over.
  CHECK(model.fit(test::small_data(20), {.batch_size = 4, .verbose = 0}).steps.size() == 5);
}

TEST_CASE("one process' request to stop ends training on all in the same step") {
  std::mutex mutex;
  std::map<int, History> histories;
  test::run_ranks(2, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    const Sequential model = test::compiled_small(test::rank_mesh({{"batch", 4}}, communicator));
    const CallbackHandle stop =
        LambdaCallback({.on_train_batch_end = [&](int64_t batch, const Logs&) {
          if (rank == 1 && batch == 2) model->set_stop_training(true);
        }});
    const History history = model.fit(
        test::small_data(20), {.batch_size = 4, .epochs = 3, .verbose = 0, .callbacks = {stop}});
    const std::lock_guard<std::mutex> lock(mutex);
    histories[rank] = history;
  });
  for (const int rank : {0, 1}) {
    CHECK(histories[rank].steps.size() == 3);
    CHECK(histories[rank].epoch.size() == 1);
  }
}

TEST_CASE("an error on one process ends training on all, each with its own error") {
  const auto errors = [](const std::function<FitOptions(int)>& options,
                         const std::function<DatasetHandle(int)>& data) {
    std::mutex mutex;
    std::map<int, std::string> texts;
    test::run_ranks(2, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
      const Sequential model = test::compiled_small(test::rank_mesh({{"batch", 4}}, communicator));
      const std::string text = error_of([&] { model.fit(data(rank), options(rank)); });
      const std::lock_guard<std::mutex> lock(mutex);
      texts[rank] = text;
    });
    return texts;
  };
  const auto good = [](int) { return DatasetHandle(test::small_data(12)); };
  auto texts = errors(
      [](int) {
        return FitOptions{.batch_size = 4, .verbose = 0, .callbacks = {CSVLogger("/no/log.csv")}};
      },
      good);
  CHECK_THAT(texts[0], Contains("[/no/log.csv]"));
  CHECK_THAT(texts[1],
             Contains("[step] every process goes on. Received: an error on rank 0: [/no/log.csv]"));
  texts = errors([](int) { return FitOptions{.batch_size = 4, .verbose = 0}; },
                 [&](int rank) { return DatasetHandle(Unreadable(rank == 1)); });
  CHECK_THAT(texts[0], Contains("an error on rank 1: [part-2] readable."));
  CHECK_THAT(texts[1], Contains("[part-2] readable"));
}

TEST_CASE("only the first process prints and writes") {
  const test::TempFolder folder;
  const std::string log = folder / "log.csv";
  const test::StandardOutput output;
  test::run_ranks(2, [&](int, const std::shared_ptr<Communicator>& communicator) {
    const Sequential model = test::compiled_small(test::rank_mesh({{"batch", 4}}, communicator));
    model.fit(
        test::small_data(8),
        {.batch_size = 4,
         .epochs = 4,
         .verbose = 2,
         .callbacks = {
             CSVLogger(log),
             EarlyStopping({.monitor = "loss", .patience = 1, .verbose = 1, .mode = "max"})}});
  });
  const std::string text = output.text();
  CHECK_THAT(text, Contains("Epoch 2/4") && Contains("Epoch 2: early stopping\n"));
  CHECK(text.find("early stopping") == text.rfind("early stopping"));
  CHECK(text.find("Epoch 2/4") == text.rfind("Epoch 2/4"));
  const std::string lines = test::read_file(log);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 3);
}

TEST_CASE("CSVLogger continues on a full disk and writes later lines") {
  const test::TempFolder folder;
  const std::string log = folder / "log.csv";
  const Sequential model = test::compiled_small(four());
  std::optional<test::FileSizeLimit> full;
  std::vector<std::string> texts;
  const CallbackHandle disk =
      LambdaCallback({.on_epoch_begin =
                          [&](int64_t epoch) {
                            if (epoch > 0) texts.push_back(test::read_file(log));
                            // Room for part of a line.
                            if (epoch == 2) full.emplace(std::filesystem::file_size(log) + 5);
                            if (epoch == 4) full.reset();
                          },
                      .on_train_end = [&](const Logs&) { texts.push_back(test::read_file(log)); }});
  const test::Warnings warnings;
  const History history =
      model.fit(test::small_data(8),
                {.batch_size = 4, .epochs = 6, .verbose = 0, .callbacks = {CSVLogger(log), disk}});
  CHECK(history.epoch.size() == 6);
  CHECK(warnings.lines() == 1);
  CHECK_THAT(warnings.text(), Contains("[" + log + "]") && Contains("CSVLogger wait until") &&
                                  Contains("File too large"));
  std::vector<int64_t> lines;
  for (const std::string& text : texts) {
    CHECK(text.ends_with("\r\n"));
    lines.push_back(std::count(text.begin(), text.end(), '\n'));
  }
  CHECK(lines == std::vector<int64_t>{2, 3, 3, 3, 6, 7});
  CHECK_THAT(texts.back(), Contains("\n2,") && Contains("\n3,") && Contains("\n5,"));
}

TEST_CASE("CSVLogger tries again at the end of training, and says how many lines are lost") {
  for (const bool stays_full : {false, true}) {
    const test::TempFolder folder;
    const std::string log = folder / "log.csv";
    const Sequential model = test::compiled_small(four());
    std::optional<test::FileSizeLimit> full;
    const CallbackHandle disk =
        LambdaCallback({.on_epoch_begin =
                            [&](int64_t epoch) {
                              if (epoch == 2) full.emplace(std::filesystem::file_size(log) + 5);
                            },
                        // Before CSVLogger, which comes later in the list.
                        .on_train_end =
                            [&](const Logs&) {
                              if (!stays_full) full.reset();
                            }});
    const test::Warnings warnings;
    model.fit(test::small_data(8),
              {.batch_size = 4, .epochs = 5, .verbose = 0, .callbacks = {disk, CSVLogger(log)}});
    full.reset();
    const std::string lines = test::read_file(log);
    CHECK(std::count(lines.begin(), lines.end(), '\n') == (stays_full ? 3 : 6));
    CHECK(warnings.lines() == (stays_full ? 2 : 1));
    if (stays_full) CHECK_THAT(warnings.text(), Contains("the last 3 lines are lost"));
  }
}

TEST_CASE("early stopping knows the direction of a value") {
  const TensorDataset data = test::small_data(8);
  const auto fit = [&](const EarlyStoppingOptions& options) {
    const Sequential model = test::compiled_small(four());
    return error_of([&] {
      model.fit(data, {.batch_size = 4,
                       .epochs = 2,
                       .verbose = 0,
                       .callbacks = {EarlyStopping(options)},
                       .validation_data = data});
    });
  };
  CHECK(fit({.monitor = "val_accuracy"}) == "no error");
  CHECK(fit({.monitor = "val_loss"}) == "no error");
  CHECK_THAT(fit({.mode = "mni"}), Contains("[EarlyStopping] mode is one of") &&
                                       Contains("\"mni\"") && Contains("write \"min\""));
  const CallbackHandle add =
      LambdaCallback({.on_epoch_end = [](int64_t, Logs& logs) { set_value(logs, "size", 1); }});
  const Sequential model = test::compiled_small(four());
  CHECK_THAT(error_of([&] {
               model.fit(data, {.batch_size = 4,
                                .verbose = 0,
                                .callbacks = {add, EarlyStopping({.monitor = "size"})}});
             }),
             Contains("[EarlyStopping] mode \"auto\"") && Contains("\"size\""));
}

TEST_CASE("early stopping ends at the best accuracy's patience and reports it") {
  const Sequential model = test::compiled_small(four());
  // A learning rate of 0 improves nothing.
  CompileOptions compile = test::small_compile(test::small_layouts("data", four()));
  compile.optimizer = SGD(0.0);
  model.compile(compile);
  const EarlyStopping stop({.monitor = "accuracy", .patience = 3});
  const FitOptions options{.batch_size = 4, .epochs = 9, .verbose = 0, .callbacks = {stop}};
  const History history = model.fit(test::small_data(8), options);
  CHECK(history.epoch.size() == 4);
  CHECK(stop.stopped_epoch() == 3);
  CHECK(stop.best_epoch() == 0);
}

TEST_CASE("invalid options of callbacks are refused in one line") {
  CHECK_THAT(error_of([] { ReduceLROnPlateau({.factor = 1.5}); }),
             Contains("[ReduceLROnPlateau] factor is less than 1. Received: 1.5."));
  CHECK_THAT(error_of([] { CSVLogger("x", {.separator = "--"}); }),
             Contains("[CSVLogger] separator is one character. Received: \"--\"."));
  CHECK_THAT(error_of([] { LearningRateScheduler(nullptr); }), Contains("[LearningRateScheduler]"));
  const Sequential model = test::compiled_small(four());
  const auto fit = [&](const CallbackHandle& callback) {
    return error_of([&] {
      model.fit(test::small_data(8), {.batch_size = 4, .verbose = 0, .callbacks = {callback}});
    });
  };
  CHECK_THAT(fit(CSVLogger("/no/such/folder/log.csv")), Contains("/no/such/folder/log.csv"));
  CompileOptions compile = test::small_compile(test::small_layouts("data", four()));
  compile.optimizer = SGD(1e200);
  model.compile(compile);
  CHECK_THAT(fit(TerminateOnNaN({.raise_error = true})),
             Contains("[TerminateOnNaN] the loss stays finite.") && Contains("at batch 1"));
}

}  // namespace callbacks_test
