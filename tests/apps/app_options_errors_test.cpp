#include <tessera/framework/base/error.hpp>

#include "tests/apps/sample_program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace app_options_errors_test {

using namespace tessera;
using test::SampleProgram;

namespace {

/// Returns the error text for these arguments, which may include a config file.
std::string error_of(const std::vector<std::string>& arguments) {
  SampleProgram program;
  try {
    program.parse(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Returns the error text for a configuration file, with "FILE" in place of its path.
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

TEST_CASE("a bad argument gives one line: rule, received value and fix", "[app_options]") {
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
                                                  {"--config", "--seed"}};
  for (const auto& arguments : bad) {
    const std::string text = error_of(arguments);
    CAPTURE(arguments, text);
    CHECK(text.find('\n') == std::string::npos);
    CHECK(text.find("To fix: ") != std::string::npos);
    CHECK(text.rfind("[" + arguments[0] + "] ", 0) == 0);
  }
  CHECK(error_of({"--batch-size", "0"}) ==
        "[--batch-size] must be an integer of at least 1. Received: \"0\". To fix: write for "
        "example 1.");
  CHECK(
      error_of({"--verbose", "3"}) ==
      "[--verbose] must be an integer from 0 to 2. Received: \"3\". To fix: write for example 2.");
  CHECK(error_of({"--hidden", "a\nb"}).find(R"(Received: "a\x0ab")") != std::string::npos);
}

TEST_CASE("an unknown argument gives one line", "[app_options]") {
  CHECK(error_of({"-x"}) ==
        "[command line] every option must be known. Received: -x. To fix: see --help.");
  CHECK(error_of({"--epoch", "3"}) ==
        "[command line] every option must be known. Received: --epoch. To fix: write --epochs.");
  CHECK(error_of({"--hiden=3"}) ==
        "[command line] every option must be known. Received: --hiden. To fix: write --hidden.");
  CHECK(error_of({"train"}) ==
        "[command line] every value follows its option. Received: \"train\" alone. To fix: put an "
        "option such as --device before it.");
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

TEST_CASE("a missing configuration file gives one line", "[app_options]") {
  CHECK_THROWS_AS(SampleProgram().parse({"--config", "/nowhere/c.json"}), FileError);
  CHECK(error_of({"--config", "/nowhere/c.json"}).find("/nowhere/c.json") != std::string::npos);
}

TEST_CASE("a bad configuration file gives one line with file and key", "[app_options]") {
  CHECK(error_of_config(R"({"batch_sise": 3})").find("batch_size") != std::string::npos);
  CHECK(error_of_config(R"({"config": "other.json"})").find("config") != std::string::npos);
  CHECK(error_of_config(R"({"batch_size": 0})") ==
        "[FILE: batch_size] must be an integer of at least 1. Received: \"0\". To fix: write for "
        "example 1.");
  CHECK(error_of_config(R"({"device": "tpu"})")
            .rfind("[FILE: device] must be auto or cpu or cuda.", 0) == 0);
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

TEST_CASE("a bad value in the file is refused even if the command line overrides it",
          "[app_options]") {
  const test::TempFolder folder;
  const std::string path = (folder / "run.json").string();
  test::write_file(path, R"({"epochs": -1})");
  CHECK(error_of({"--config", path, "--epochs", "3"}).find("epochs") != std::string::npos);
}

}  // namespace app_options_errors_test
