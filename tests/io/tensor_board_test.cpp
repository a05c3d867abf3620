#include <tessera/framework/io/tensor_board.hpp>

#include <tessera/tessera.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>
#include <protozero/pbf_reader.hpp>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/warnings.hpp"

namespace tensor_board_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// A written value: its folder, tag and step.
using Written = std::tuple<std::string, std::string, int64_t>;

/// Adds the values of a record to `found`.
void read_event(const std::string& bytes, const std::string& part, std::vector<Written>& found) {
  int64_t step = 0;
  std::string tag;
  protozero::pbf_reader event(bytes);
  while (event.next()) {
    if (event.tag() == 2) {
      step = event.get_int64();
    } else if (event.tag() == 5) {
      protozero::pbf_reader summary(event.get_message());
      summary.next(1);
      protozero::pbf_reader value(summary.get_message());
      value.next(1);
      tag = value.get_string();
    } else {
      event.skip();
    }
  }
  if (!tag.empty()) found.emplace_back(part, tag, step);
}

/// Returns the values in a folder's event files, in order.
std::vector<Written> written(const std::filesystem::path& folder) {
  std::vector<Written> found;
  for (const std::string part : {"train", "validation"}) {
    if (!std::filesystem::exists(folder / part)) continue;
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / part)) {
      ++files;
      const std::string bytes = test::read_file(entry.path());
      for (size_t at = 0; at < bytes.size();) {
        uint64_t size = 0;
        std::memcpy(&size, bytes.data() + at, 8);
        read_event(bytes.substr(at + 12, size), part, found);
        at += size + 16;
      }
    }
    CHECK(files == 1);
  }
  return found;
}

std::vector<Written> golden(const std::string& board) {
  const Json all = read_json_file(test::golden_path("keras_callbacks.json").string());
  std::vector<Written> found;
  for (const Json& value : all.at("boards").at(board)) {
    found.emplace_back(value[0], value[1], value[2]);
  }
  return found;
}

/// Trains the golden file's model for two epochs of four steps, with validation.
void fit(const LayoutMap& layouts, const TensorBoardOptions& options,
         const CallbackHandle& other = LambdaCallback({})) {
  const Sequential model({Dense(4, {.name = "hidden"}), Dense(1, {.name = "out"})});
  model.compile({.optimizer = "sgd", .loss = "mse", .layouts = layouts});
  model.fit(at::ones({14, 3}), at::ones({14, 1}),
            {.batch_size = 4,
             .epochs = 2,
             .verbose = 0,
             .callbacks = {other, TensorBoard(options)},
             .validation_data = {at::ones({5, 3}), at::ones({5, 1})}});
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

TEST_CASE("TensorBoard files have Keras' tags and steps") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const auto fitted = [&](TensorBoardOptions options) {
    const test::TempFolder folder;
    options.log_dir = folder.path();
    fit(LayoutMap(mesh), options);
    return written(folder.path());
  };
  CHECK(fitted({}) == golden("epoch"));
  CHECK(fitted({.update_freq = "batch"}) == golden("batch"));
  CHECK(fitted({.histogram_freq = 1}) == golden("histograms"));
  std::vector<int64_t> steps;
  for (const auto& [part, tag, step] : fitted({.update_freq = 3})) {
    if (tag == "batch_loss") steps.push_back(step);
  }
  CHECK(steps == std::vector<int64_t>{3, 6});
}

TEST_CASE("only the first process writes for TensorBoard") {
  const test::TempFolder folder;
  test::run_ranks(2, [&](int, const std::shared_ptr<Communicator>& communicator) {
    fit(LayoutMap(test::rank_mesh({{"batch", 4}}, communicator)),
        {.log_dir = folder.path(), .histogram_freq = 1, .update_freq = 2});
  });
  const std::vector<Written> found = written(folder.path());
  CHECK(std::count(found.begin(), found.end(), Written{"train", "batch_loss", 2}) == 1);
  CHECK(std::count(found.begin(), found.end(), Written{"train", "out/bias/histogram", 1}) == 1);
}

TEST_CASE("an error of writing for TensorBoard ends training on every process") {
  const test::TempFolder folder;
  test::write_file(folder / "train", "no folder");
  std::array<std::string, 2> errors;
  test::run_ranks(2, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    LayoutMap layouts(test::rank_mesh({{"batch", 4}}, communicator));
    layouts["hidden/kernel"] = {unsharded, "batch"};
    errors[static_cast<size_t>(rank)] =
        error_of([&] { fit(layouts, {.log_dir = folder.path(), .histogram_freq = 1}); });
  });
  CHECK_THAT(errors[0], Contains(folder / "train"));
  CHECK_THAT(errors[1], Contains("[step] every process goes on. Received: an error on rank 0: ["));
}

TEST_CASE("a full disk does not end training, and TensorBoard's records are written later") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const test::TempFolder folder;
  std::optional<test::FileSizeLimit> full;
  size_t records_before = 0;
  const CallbackHandle disk = LambdaCallback({.on_epoch_begin =
                                                  [&](int64_t epoch) {
                                                    if (epoch == 1)
                                                      records_before =
                                                          written(folder.path()).size();
                                                  },
                                              .on_epoch_end =
                                                  [&](int64_t epoch, Logs&) {
                                                    // The validation files are shorter.
                                                    if (epoch == 0) full.emplace(700);
                                                    if (epoch == 1) full.reset();
                                                  }});
  const test::Warnings warnings;
  fit(LayoutMap(mesh), {.log_dir = folder.path(), .histogram_freq = 1}, disk);
  CHECK(warnings.lines() == 1);
  CHECK_THAT(warnings.text(),
             Contains("TensorBoard could not write its values and will retry: [") &&
                 Contains("/train/events.") && Contains("File too large"));
  const std::vector<Written> all = golden("histograms");
  // The records in between were complete; otherwise they could not be read.
  CHECK(records_before < all.size() / 2);
  CHECK(written(folder.path()) == all);
}

TEST_CASE("TensorBoard says at the end of training how many records are lost") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const test::TempFolder folder;
  std::optional<test::FileSizeLimit> full;
  const CallbackHandle disk =
      LambdaCallback({.on_epoch_begin = [&](int64_t) { full.emplace(100); }});
  const test::Warnings warnings;
  fit(LayoutMap(mesh), {.log_dir = folder.path()}, disk);
  full.reset();
  CHECK_THAT(warnings.text(),
             Contains("TensorBoard could not write its values and will retry: [") &&
                 Contains("/train: ") && Contains(" records are lost"));
}

TEST_CASE("TensorBoard's histograms leave out values that are not finite, with one warning") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const test::TempFolder folder;
  struct Spoiler : Callback {
    void on_epoch_end(int64_t, Logs&) override {
      at::Tensor values = model().weights()[0].value().full().clone();
      values.view(-1).slice(0, 0, 5) = NAN;
      const Variable weight = model().weights()[0];
      Variable(weight).assign(copy_to_mesh(values, weight.layout()));
    }
  };
  const Sequential model({Dense(4, {.name = "hidden"}), Dense(1, {.name = "out"})});
  model.compile({.optimizer = "sgd", .loss = "mse", .layouts = LayoutMap(mesh)});
  const test::Warnings warnings;
  model.fit(
      at::ones({4, 3}), at::ones({4, 1}),
      {.verbose = 0,
       .callbacks = {Spoiler(), TensorBoard({.log_dir = folder.path(), .histogram_freq = 1})}});
  CHECK(warnings.lines() == 1);
  CHECK_THAT(warnings.text(), Contains("leave out values that are not finite numbers") &&
                                  Contains("for example 5 of hidden/kernel in epoch 1"));
  const std::vector<Written> found = written(folder.path());
  for (const char* tag : {"hidden/kernel/histogram", "out/bias/histogram"}) {
    CHECK(std::count(found.begin(), found.end(), Written{"train", tag, 0}) == 1);
  }
}

TEST_CASE("wrong options of TensorBoard are refused") {
  CHECK_THAT(error_of([] { TensorBoard({.update_freq = "step"}); }),
             Contains("[TensorBoard] update_freq is") && Contains("\"step\""));
  CHECK_THAT(error_of([] { TensorBoard({.update_freq = 0}); }), Contains("Received: 0."));
  CHECK_THAT(error_of([] { TensorBoard({.histogram_freq = -1}); }), Contains("Received: -1."));
}

}  // namespace tensor_board_test
