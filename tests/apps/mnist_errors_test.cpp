#include <tessera/framework/base/json.hpp>

#include <algorithm>
#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"

namespace mnist_errors_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::idx_bytes;

namespace {

using Words = std::vector<std::string>;

const std::string train_images = "train-images-idx3-ubyte";
const std::string train_labels = "train-labels-idx1-ubyte";

/// A folder with 40 training and 20 test images in `data`, and runs of mnist on them.
class Workplace {
 public:
  Workplace() { test::write_mnist(folder_ / "data", 40, 20); }

  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  std::string file(const std::string& name, const std::string& text) const {
    test::write_file(folder_ / name, text);
    return folder_ / name;
  }

  /// Returns the arguments for the data, a small model and a mesh of two devices; `words` override
  /// these.
  Words words(const Words& more) const {
    Words all = {"--data-dir",   folder_ / "data",
                 "--train-size", "all",
                 "--test-size",  "all",
                 "--hidden",     "8,6",
                 "--batch-size", "16",
                 "--epochs",     "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Runs mnist with words().
  test::ProgramRun run(const Words& more) const {
    return test::run_program(test::app_path("mnist"), words(more));
  }

  /// Returns the error of a run, which must be one line.
  std::string error_of(const Words& words) const {
    const test::ProgramRun outcome = run(words);
    CHECK(outcome.exit_code == 1);
    REQUIRE(!outcome.err.empty());
    CHECK(outcome.err.rfind("mnist: error: ", 0) == 0);
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    CHECK(outcome.err.find("Received: ") != std::string::npos);
    return outcome.err;
  }

  size_t files() const {
    const std::filesystem::recursive_directory_iterator all(folder_.path());
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

 private:
  test::TempFolder folder_;
};

/// Returns the error for a layouts file with this text, by default on the mesh batch=2,model=2.
std::string layouts_error(const std::string& text,
                          const Words& more = {"--mesh", "batch=2,model=2"}) {
  const Workplace here;
  Words words = {"--layouts", here.file("layouts.json", text)};
  words.insert(words.end(), more.begin(), more.end());
  return here.error_of(words);
}

}  // namespace

TEST_CASE("mnist: missing and corrupt data files") {
  const Workplace here;
  const std::string labels = test::read_file(here / "data" / train_labels);
  const std::string images = test::read_file(here / "data" / train_images);
  const auto with = [&](const std::string& name, const std::string& bytes) {
    const std::string good = name == train_labels ? labels : images;
    test::write_file(here / "data" / name, bytes);
    const std::string text = here.error_of({});
    test::write_file(here / "data" / name, good);
    return text;
  };
  CHECK_THAT(with(train_images, images.substr(0, images.size() / 2)),
             Contains(train_images + ", byte "));
  CHECK_THAT(with(train_images, "\x01" + images.substr(1)), Contains("magic number"));
  CHECK_THAT(with(train_labels, idx_bytes({39}, labels.substr(8, 39))), Contains("40 images"));
  CHECK_THAT(with(train_labels, labels.substr(0, 20) + '\x0a' + labels.substr(21)),
             Contains("byte 20") && Contains("Received: 10 for image 12"));
  std::filesystem::remove(here / "data" / train_labels);
  CHECK_THAT(here.error_of({}), Contains(train_labels));
  CHECK_THAT(here.error_of({"--data-dir", here / "nothing"}), Contains("--data-dir"));
  CHECK_THAT(Workplace().error_of({"--train-size", "41"}), Contains("Received: 41"));
}

TEST_CASE("mnist: a mesh that does not fit") {
  const Workplace here;
  CHECK_THAT(here.error_of({"--mesh", "batch=8", "--devices", "4"}),
             Contains("--devices") && Contains("4 with mesh batch=8"));
  CHECK_THAT(here.error_of({"--mesh", "batch=0"}), Contains("--mesh") && Contains("batch=0"));
  CHECK_THAT(here.error_of({"--mesh", "batch"}), Contains("--mesh") && Contains("\"batch\""));
  CHECK_THAT(here.error_of({"--device", "cuda"}), Contains("cuda"));
  CHECK_THAT(here.error_of({"--device", "tpu"}), Contains("--device") && Contains("tpu"));
}

TEST_CASE("mnist: layouts that do not fit the model") {
  const auto rule = [](const std::string& match, const std::string& layout) {
    return R"({"match": ")" + match + R"(", "layout": )" + layout + "}";
  };
  const auto rules = [](const std::string& list) { return R"({"layouts": [)" + list + "]}"; };
  CHECK_THAT(layouts_error(rules(rule("hidden_1/kernel", R"([null, "modle"])"))),
             Contains("modle") && Contains("batch=2, model=2") && Contains("\"model\""));
  CHECK_THAT(layouts_error(rules(rule("hidden_1/kernel", R"(["model"])"))),
             Contains("hidden_1/kernel") && Contains("(model)"));
  CHECK_THAT(layouts_error(rules(rule("hiden_1/kernel", R"([null, "model"])"))),
             Contains("hiden_1/kernel") && Contains("hidden_1/kernel"));
  CHECK_THAT(layouts_error(rules(rule("hidden_1/.*", R"([null, "model"])") + "," +
                                 rule(".*/kernel", R"([null, "model"])"))),
             Contains("hidden_1/.*") && Contains(".*/kernel"));
  CHECK_THAT(layouts_error(rules(rule("hidden_1/kernel", R"(["model", "model"])"))),
             Contains("model"));
  CHECK_THAT(layouts_error(rules(rule("(a", R"([null, "model"])"))), Contains("(a"));
  CHECK_THAT(layouts_error(R"({"data": {"x": ["batch"]}})"), Contains("(batch)"));
  CHECK_THAT(layouts_error(rules(rule("hidden_1/kernel", R"([null, "model"])")), {}),
             Contains("model") && Contains("mesh batch=8"));
}

TEST_CASE("mnist: invalid JSON files, with the position of the error") {
  CHECK_THAT(layouts_error("{\"layouts\": [\n  {\"match\" \"x\"}]}"), Contains("layouts.json:2:"));
  CHECK_THAT(layouts_error(R"({"layout": []})"), Contains("layout") && Contains("layouts"));
  CHECK_THAT(layouts_error(R"({"layouts": [{"mach": "x", "layout": []}]})"),
             Contains("layouts[0]") && Contains("\"mach\""));
  CHECK_THAT(layouts_error(R"({"layouts": {"hidden/kernel": ["model"]}})"), Contains("layouts"));
  const Workplace here;
  const auto config_error = [&](const std::string& text) {
    return here.error_of({"--config", here.file("config.json", text)});
  };
  CHECK_THAT(config_error("{\"epochs\": 2,\n}"), Contains("config.json:2:"));
  CHECK_THAT(config_error(R"({"epoch": 2})"), Contains("epoch") && Contains("epochs"));
  CHECK_THAT(config_error(R"({"batch_size": 0})"), Contains("batch_size"));
  CHECK_THAT(config_error(R"({"batch_size": "many"})"), Contains("batch_size"));
  CHECK_THAT(here.error_of({"--layouts", here / "none.json"}), Contains("none.json"));
}

TEST_CASE("mnist: values that training cannot use") {
  const Workplace here;
  CHECK_THAT(here.error_of({"--batch-size", "0"}), Contains("--batch-size") && Contains("0"));
  CHECK_THAT(here.error_of({"--learning-rate", "0"}), Contains("--learning-rate"));
  CHECK_THAT(here.error_of({"--hidden", "8,0"}), Contains("--hidden"));
  CHECK_THAT(here.error_of({"--epochs", "-1"}), Contains("--epochs"));
  CHECK_THAT(here.error_of({"--bathc-size", "8"}), Contains("--bathc-size"));
  const std::string text = here.error_of({"--learning-rate", "1e30", "--verbose", "0"});
  CHECK_THAT(text, Contains("[fit] the loss stays finite") && Contains("step ") &&
                       (Contains("nan") || Contains("inf")));
}

TEST_CASE("mnist: outputs that cannot be written; errors leave no partial files") {
  const Workplace here;
  const size_t before = here.files();
  for (const std::string flag : {"--save", "--history", "--profile"}) {
    CHECK_THAT(here.error_of({flag, here / "none" / "file"}), Contains(flag) && Contains("none"));
    CHECK_THAT(here.error_of({flag, here / "data"}), Contains(flag) && Contains("data"));
  }
  here.error_of(
      {"--learning-rate", "1e30", "--save", here / "w.safetensors", "--history", here / "h.json"});
  CHECK(here.files() == before);
}

TEST_CASE("mnist: a checkpoint that cannot be written ends the run, or is left out") {
  const Workplace here;
  const auto run = [&](const Words& more, const std::string& limit) {
    // Files of at most 8 blocks; an ignored signal stays ignored in the program.
    Words shell = {"-c", "trap '' XFSZ; " + limit + " exec \"$@\"", "sh",
                   test::app_path("mnist").string()};
    for (const std::string& word :
         here.words({"--checkpoint-dir", here / "ck", "--verbose", "0"})) {
      shell.push_back(word);
    }
    shell.insert(shell.end(), more.begin(), more.end());
    return test::run_program("/bin/sh", shell);
  };
  const std::string full = "ulimit -f 8;";
  const test::ProgramRun ended = run({}, full);
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.err, Contains("mnist: error: ") && Contains("File too large"));
  const test::ProgramRun warned = run({"--save-failure", "warn"}, full);
  CHECK(warned.exit_code == 0);
  CHECK_THAT(warned.err, Contains("Warning: the checkpoint was not saved: "));
  CHECK(std::count(warned.err.begin(), warned.err.end(), '\n') == 2);
  CHECK(run({"--save-failure", "warn"}, "").exit_code == 0);

  // The newer one of the two checkpoints is damaged.
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(here / "ck")) {
    newest = std::max(newest, entry.path());
  }
  const std::filesystem::path shard = newest / "shard-00000.safetensors";
  std::string bytes = test::read_file(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_file(shard, bytes);
  const test::ProgramRun strict = run({"--resume", "--strict", "--epochs", "3"}, "");
  CHECK(strict.exit_code == 1);
  CHECK_THAT(strict.err, Contains(newest.filename().string()));
  const test::ProgramRun older = run({"--resume", "--epochs", "3"}, "");
  CHECK(older.exit_code == 0);
  CHECK_THAT(older.err, Contains(newest.filename().string()));
  CHECK_THAT(here.error_of({"--strict"}), Contains("[--strict] needs a folder of checkpoints"));
  CHECK_THAT(here.error_of({"--save-failure", "warn"}),
             Contains("[--save-failure] needs a folder"));
  CHECK_THAT(here.error_of({"--save-failure", "none"}), Contains("must be raise or warn"));
}

TEST_CASE("mnist: loaded weights equal the saved ones") {
  const Workplace here;
  const std::string weights = here / "w.safetensors";
  // Returns the final loss on the test images.
  const auto loss_of = [&](const Words& words) -> double {
    const std::string history = here / "h.json";
    Words all = {"--verbose", "0", "--history", history};
    all.insert(all.end(), words.begin(), words.end());
    const test::ProgramRun run = here.run(all);
    CHECK(run.err == "");
    REQUIRE(run.exit_code == 0);
    return read_json_file(history).at("history").at("val_loss").back();
  };
  const double trained = loss_of({"--mesh", "batch=2", "--save", weights});
  const std::string bytes = test::read_file(weights);
  // At this rate no weight changes.
  const Words load = {"--load", weights, "--learning-rate", "1e-30", "--mesh"};
  const auto loaded = [&](const std::string& mesh) {
    Words words = load;
    words.push_back(mesh);
    return loss_of(words);
  };
  CHECK(loss_of({"--mesh", "batch=2", "--learning-rate", "1e-30"}) != trained);
  CHECK(loaded("batch=2") == trained);
  CHECK(loaded("batch=1") == Approx(trained).epsilon(1e-6));
  CHECK(test::read_file(weights) == bytes);
  // A file may be read and replaced in one run.
  loss_of({"--load", weights, "--save", weights});
  CHECK(test::read_file(weights) != bytes);

  const std::string foreign = here.file("foreign", "PK\x03\x04 no safetensors at all");
  CHECK_THAT(here.error_of({"--load", foreign}), Contains("foreign"));
  CHECK_THAT(here.error_of({"--load", here.file("cut", bytes.substr(0, bytes.size() - 8))}),
             Contains("cut"));
  CHECK_THAT(here.error_of({"--load", weights, "--hidden", "9,6"}), Contains("hidden_1/kernel"));
  CHECK_THAT(here.error_of({"--load", weights, "--hidden", "8"}), Contains(weights));
}

TEST_CASE("mnist: strategies with incompatible options") {
  const Workplace here;
  const auto error = [&](const std::string& strategy, const Words& more) {
    Words words = {"--strategy", strategy};
    words.insert(words.end(), more.begin(), more.end());
    return here.error_of(words);
  };
  CHECK_THAT(error("mirrored", {"--mesh", "batch=2"}), Contains("mirrored with --mesh"));
  CHECK_THAT(error("central_storage", {"--layouts", here.file("layouts.json", "{}")}),
             Contains("central_storage with --layouts"));
  CHECK_THAT(error("one_device", {"--devices", "2"}), Contains("one_device with --devices 2"));
  CHECK_THAT(error("mirrored", {"--processes", "1"}), Contains("it has one process"));
  CHECK_THAT(error("parameter_server", {"--rank", "1"}), Contains("TF_CONFIG"));
  CHECK_THAT(error("parameter_server", {"--device", "cuda"}), Contains("workers compute on CPUs"));
  CHECK_THAT(error("mirrored", {"--max-part-bytes", "8"}), Contains("--strategy parameter_server"));
  CHECK_THAT(error("mirored", {}), Contains("\"mirored\""));
}

}  // namespace mnist_errors_test
