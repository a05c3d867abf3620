#include "apps/common/app_options.hpp"

#include <sstream>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace tessera;
using namespace tessera::app;

namespace {

/// An application with options of its own, as mnist has them.
struct Program {
  Program() {
    options.common().train_size = 5000;
    options.add({"model", "Model", "model to train", choice(model, {"core-api", "keras"})});
    options.add({"hidden", "Model", "sizes of the hidden layers", integers(hidden, 1)});
    options.add({"save", "Model", "file for the weights", output_file(save, "FILE")});
  }

  bool parse(std::vector<std::string> arguments) {
    std::vector<const char*> argv{"mnist"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    return options.parse(static_cast<int>(argv.size()), argv.data(), out);
  }

  std::string model = "core-api";
  std::vector<int64_t> hidden{700, 500};
  std::string save;
  AppOptions options{"mnist", "Trains on MNIST."};
  CommonOptions& common = options.common();
  std::ostringstream out;
};

/// The text of the error that the arguments cause; a config file may stand among them.
std::string error_of(const std::vector<std::string>& arguments) {
  Program program;
  try {
    program.parse(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The text of the error of a configuration file, with "FILE" for its path.
std::string error_of_config(const std::string& json) {
  const test::TempFolder folder;
  const std::string path = (folder / "run.json").string();
  test::write_file(path, json);
  std::string text = error_of({"--config", path});
  for (size_t at; (at = text.find(path)) != std::string::npos;)
    text.replace(at, path.size(), "FILE");
  CHECK(text.find('\n') == std::string::npos);
  return text;
}

}  // namespace

TEST_CASE("without arguments the options have their defaults", "[app_options]") {
  Program program;
  REQUIRE(program.parse({}));
  const CommonOptions& common = program.common;
  CHECK(common.device == "cpu");
  CHECK_FALSE(common.devices);
  CHECK(common.mesh.empty());
  CHECK(common.dtype == "float32");
  CHECK(common.train_size == 5000);
  CHECK_FALSE(common.test_size);
  CHECK(common.batch_size == 128);
  CHECK(common.epochs == 3);
  CHECK_FALSE(common.steps_per_epoch);
  CHECK_FALSE(common.learning_rate);
  CHECK(common.shuffle);
  CHECK(common.verbose == 1);
  CHECK(program.hidden == std::vector<int64_t>{700, 500});
}

TEST_CASE("every option is read from the command line", "[app_options]") {
  const test::TempFolder folder;
  const std::string layouts = (folder / "layouts.json").string();
  const std::string history = (folder / "history.json").string();
  test::write_file(layouts, "{}");
  Program program;
  REQUIRE(program.parse({"--device",
                         "cuda",
                         "--devices",
                         "8",
                         "--mesh",
                         "batch=4,model=2",
                         "--layouts",
                         layouts,
                         "--dtype=float64",
                         "--seed",
                         "7",
                         "--data-dir",
                         folder.path().string(),
                         "--train-size",
                         "all",
                         "--test-size",
                         "100",
                         "--batch-size",
                         "32",
                         "--epochs",
                         "0",
                         "--steps-per-epoch",
                         "5",
                         "--learning-rate",
                         "1e-2",
                         "--no-shuffle",
                         "--history",
                         history,
                         "--verbose",
                         "2",
                         "--model",
                         "keras",
                         "--hidden",
                         "3"}));
  const CommonOptions& common = program.common;
  CHECK(common.device == "cuda");
  CHECK(common.devices == 8);
  CHECK(common.mesh == MeshDims{{"batch", 4}, {"model", 2}});
  CHECK(common.layouts == layouts);
  CHECK(common.dtype == "float64");
  CHECK(common.seed == 7);
  CHECK(common.data_dir == folder.path().string());
  CHECK_FALSE(common.train_size);
  CHECK(common.test_size == 100);
  CHECK(common.batch_size == 32);
  CHECK(common.epochs == 0);
  CHECK(common.steps_per_epoch == 5);
  CHECK(common.learning_rate == 0.01);
  CHECK_FALSE(common.shuffle);
  CHECK(common.history == history);
  CHECK(common.verbose == 2);
  CHECK(program.model == "keras");
  CHECK(program.hidden == std::vector<int64_t>{3});
}

TEST_CASE("the command line beats the file, which beats the defaults", "[app_options]") {
  const test::TempFolder folder;
  const std::string path = (folder / "run.json").string();
  test::write_file(path, R"({"batch_size": 64, "epochs": 9, "shuffle": false, "train_size": "all",
    "test_size": 10, "learning_rate": 0.1, "mesh": {"model": 2, "batch": 4}, "model": "keras",
    "hidden": [30, 20]})");
  Program program;
  REQUIRE(program.parse({"--epochs", "1", "--config", path, "--hidden=5,6"}));
  CHECK(program.common.batch_size == 64);
  CHECK(program.common.epochs == 1);
  CHECK_FALSE(program.common.shuffle);
  CHECK_FALSE(program.common.train_size);
  CHECK(program.common.test_size == 10);
  CHECK(program.common.learning_rate == 0.1);
  CHECK(program.common.mesh == MeshDims{{"model", 2}, {"batch", 4}});
  CHECK(program.common.verbose == 1);
  CHECK(program.model == "keras");
  CHECK(program.hidden == std::vector<int64_t>{5, 6});

  Program shuffled;
  REQUIRE(shuffled.parse({"--config", path, "--shuffle"}));
  CHECK(shuffled.common.shuffle);
}

TEST_CASE("lists and meshes may be strings in the file", "[app_options]") {
  const test::TempFolder folder;
  const std::string path = (folder / "run.json").string();
  test::write_file(path, R"({"mesh": "batch=3", "hidden": "9,8"})");
  Program program;
  REQUIRE(program.parse({"--config", path}));
  CHECK(program.common.mesh == MeshDims{{"batch", 3}});
  CHECK(program.hidden == std::vector<int64_t>{9, 8});
}

TEST_CASE("the last of a repeated option counts", "[app_options]") {
  Program program;
  REQUIRE(program.parse({"--epochs", "1", "--epochs", "2", "--no-shuffle", "--shuffle"}));
  CHECK(program.common.epochs == 2);
  CHECK(program.common.shuffle);
}

TEST_CASE("a bad argument gives one line with what, received and what to do", "[app_options]") {
  const std::vector<std::vector<std::string>> bad{{"--batch-size", "0"},
                                                  {"--batch-size", "-1"},
                                                  {"--batch-size", "1.5"},
                                                  {"--batch-size", ""},
                                                  {"--batch-size", "12x"},
                                                  {"--batch-size", " 12"},
                                                  {"--epochs", "-1"},
                                                  {"--devices", "0"},
                                                  {"--devices", "99999999999999999999"},
                                                  {"--devices", "5000"},
                                                  {"--device", "tpu"},
                                                  {"--dtype", "float16"},
                                                  {"--seed", "-3"},
                                                  {"--train-size", "0"},
                                                  {"--train-size", "none"},
                                                  {"--test-size", "-5"},
                                                  {"--steps-per-epoch", "0"},
                                                  {"--learning-rate", "0"},
                                                  {"--learning-rate", "nan"},
                                                  {"--learning-rate", "inf"},
                                                  {"--learning-rate", "fast"},
                                                  {"--verbose", "3"},
                                                  {"--mesh", "batch"},
                                                  {"--mesh", "batch=0"},
                                                  {"--mesh", "batch=2,batch=4"},
                                                  {"--mesh", "batch=2,"},
                                                  {"--hidden", "700,,500"},
                                                  {"--hidden", "0"},
                                                  {"--hidden", "a\nb"},
                                                  {"--model", "resnet"},
                                                  {"--layouts", "/nowhere/x.json"},
                                                  {"--data-dir", "/nowhere"},
                                                  {"--history", "/nowhere/h.json"},
                                                  {"--history", "/"},
                                                  {"--history", "/dev/null"},
                                                  {"--config", "/nowhere/c.json"}};
  for (const auto& arguments : bad) {
    const std::string text = error_of(arguments);
    CAPTURE(arguments, text);
    CHECK(text.find('\n') == std::string::npos);
    CHECK(text.find("To fix: ") != std::string::npos);
    const bool named = text.rfind("[" + arguments[0] + "] ", 0) == 0;
    CHECK((named || arguments[0] == "--mesh" || arguments[0] == "--config"));
  }
  CHECK(error_of({"--batch-size", "0"}) ==
        "[--batch-size] must be an integer of at least 1. Received: \"0\". To fix: write for "
        "example 1.");
  CHECK(
      error_of({"--verbose", "3"}) ==
      "[--verbose] must be an integer from 0 to 2. Received: \"3\". To fix: write for example 2.");
  CHECK(error_of({"--hidden", "a\nb"}).find(R"(Received: "a\x0ab")") != std::string::npos);
}

TEST_CASE("an argument that is no option gives one line", "[app_options]") {
  CHECK(error_of({"--epoch", "3"}) ==
        "[command line] there is no such option. Received: --epoch. To fix: write \"--epochs\".");
  CHECK(error_of({"--hiden=3"}) ==
        "[command line] there is no such option. Received: --hiden. To fix: write \"--hidden\".");
  CHECK(error_of({"train"}) ==
        "[command line] every value follows its option. Received: \"train\" alone. To fix: put an "
        "option such as --epochs before it.");
  CHECK(error_of({"--epochs"}) ==
        "[--epochs] needs a value. Received: none. To fix: write the value after the "
        "option.");
  CHECK(error_of({"--epochs", "--seed", "3"}).rfind("[--epochs] ", 0) == 0);
  CHECK(error_of({"--shuffle=maybe"}).find("maybe") != std::string::npos);
}

TEST_CASE("devices and mesh must agree", "[app_options]") {
  CHECK(error_of({"--devices", "4", "--mesh", "batch=4,model=2"}) ==
        "[--devices] must be the number of devices in the mesh, 8. Received: 4 with mesh "
        "batch=4,model=2. To fix: leave --devices out or change the mesh.");
  CHECK(error_of({"--devices", "8", "--mesh", "batch=4,model=2"}) == "no error");
  CHECK(error_of({"--mesh", "batch=100000,model=100000"}) ==
        "[--mesh] must have at most 4096 devices. Received: "
        "batch=100000,model=100000. To fix: write smaller sizes.");
}

TEST_CASE("a bad configuration file gives one line with file and key", "[app_options]") {
  CHECK(error_of_config(R"({"batch_sise": 3})").find("batch_size") != std::string::npos);
  CHECK(error_of_config(R"({"config": "other.json"})").find("config") != std::string::npos);
  CHECK(error_of_config(R"({"batch_size": 0})") ==
        "[FILE: batch_size] must be an integer of at least 1. Received: \"0\". To fix: write for "
        "example 1.");
  CHECK(error_of_config(R"({"device": "tpu"})").rfind("[FILE: device] must be cpu or cuda.", 0) ==
        0);
  for (const char* json :
       {R"({"batch_size": "3"})", R"({"batch_size": 1.5})", R"({"shuffle": 1})",
        R"({"shuffle": "false"})", R"({"history": 3})", R"({"history": true})",
        R"({"train_size": 1.5})", R"({"learning_rate": "x"})", R"({"hidden": [3, "4"]})",
        R"({"hidden": {"a": 1}})", R"({"mesh": ["batch"]})", R"({"mesh": {"batch": "4"}})",
        R"({"batch-size": 3})", R"({"epochs": 1, "epochs": 2})", R"([1])", R"({"epochs": )", "",
        "3"}) {
    const std::string text = error_of_config(json);
    CAPTURE(json, text);
    CHECK(text.find("FILE") != std::string::npos);
    CHECK(text.find("To fix: ") != std::string::npos);
  }
}

TEST_CASE("a bad value in the file is refused though the command line beats it", "[app_options]") {
  const test::TempFolder folder;
  const std::string path = (folder / "run.json").string();
  test::write_file(path, R"({"epochs": -1})");
  CHECK(error_of({"--config", path, "--epochs", "3"}).find("epochs") != std::string::npos);
}

TEST_CASE("help lists every option in its group with its default", "[app_options]") {
  Program program;
  CHECK_FALSE(program.parse({"--help"}));
  const std::string help = program.out.str();
  for (const char* name : {"--device cpu|cuda",
                           "--devices N",
                           "--mesh DIM=N,...",
                           "--layouts FILE.json",
                           "--config FILE.json",
                           "--dtype float32|float64",
                           "--seed N",
                           "--data-dir DIR",
                           "--train-size N|all",
                           "--test-size N|all",
                           "--batch-size N",
                           "--epochs N",
                           "--steps-per-epoch N",
                           "--learning-rate X",
                           "--no-shuffle",
                           "--history FILE.json",
                           "--verbose N",
                           "--hidden N,N,...",
                           "--model core-api|keras",
                           "Trains on MNIST.",
                           "Training:",
                           "Model:",
                           "[default: 128]",
                           "[default: 5000]",
                           "[default: 700,500]"}) {
    CAPTURE(name);
    CHECK(help.find(name) != std::string::npos);
  }
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}

TEST_CASE("the mesh comes from the option, the layouts file, the devices, the program",
          "[app_options]") {
  const MeshDims file{{"batch", 2}, {"feature", 2}};
  const MeshDims fallback{{"batch", 8}};
  const auto chosen = [&](const std::vector<std::string>& arguments, const MeshDims& from_file) {
    Program program;
    program.parse(arguments);
    return choose_mesh(program.common, from_file, fallback);
  };
  CHECK(chosen({"--mesh", "model=3"}, file).dims() == MeshDims{{"model", 3}});
  CHECK(chosen({}, file).dims() == file);
  CHECK(chosen({}, {}).dims() == fallback);
  CHECK(chosen({"--devices", "5"}, {}).dims() == MeshDims{{"batch", 5}});
  CHECK(chosen({"--devices", "4"}, file).dims() == file);
  CHECK(chosen({"--device", "cuda"}, file).local_devices()[1] == Device{Device::Type::cuda, 1});
  CHECK_THROWS_AS(chosen({"--devices", "5"}, file), ConfigError);
}
