#include <tessera/framework/serving/internal/version_trial.hpp>

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>
#include <tessera/tessera.hpp>

#include "tests/serving/running_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace version_trial_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::RunningServer;

namespace {

const std::string predict = "/v1/models/imdb:predict";

/// Exports a model whose configuration has the rows' steps `size` times, of which the largest
/// applies. With `harm` only the configuration's size changes, with valid checksums.
void export_of_steps(const std::string& folder, int64_t size, int64_t harm = 0) {
  const Sequential model({UpSampling1D(size, {.name = "up"}), GlobalMaxPooling1D()});
  model.build({-1, 2, 1});
  if (harm == 0) {
    export_model(model, folder, {.sample = at::ones({1, 2, 1})});
    return;
  }
  const test::TempFolder good;
  export_model(model, good.path(), {.sample = at::ones({1, 2, 1})});
  NewVersion version(folder);
  Json manifest;
  for (const auto& entry : std::filesystem::directory_iterator(good / "000001")) {
    const std::string name = entry.path().filename();
    std::string bytes = test::read_file(entry.path());
    Json json;
    if (name.ends_with(".json")) json = parse_json(bytes, name);
    if (name == version_manifest) {
      manifest = json;
      continue;
    }
    if (name == "config.json") {
      json["config"]["layers"][0]["config"]["size"] = harm;
      bytes = to_json_text(json);
    }
    test::write_file(version.file(name), bytes);
  }
  manifest.erase("files");
  manifest.erase("checksum");
  version.commit(manifest);
}

const std::string steps = R"({"instances": [[[3], [4]]]})";

bool answers_four(const RunningServer& server) {
  const test::HttpAnswer answer = server.post(predict, steps);
  return answer.status == 200 &&
         parse_json(answer.body, "answer").at("predictions") == Json::array({{4}});
}

}  // namespace

TEST_CASE("a version that would exhaust memory is refused, and the previous one keeps serving") {
  for (const bool apart : {true, false}) {
    const test::TempFolder folder;
    export_of_steps(folder / "e", 2);
    RunningServer server(
        folder / "e",
        {.worker = {.max_activation_bytes = 1 << 30, .poll = 20ms, .isolate_trials = apart}});
    CHECK(answers_four(server));
    export_of_steps(folder / "e", 2, 2000000000);
    for (int i = 0; i < 1000 && server.warnings().empty(); ++i) {
      CHECK(answers_four(server));
      std::this_thread::sleep_for(10ms);
    }
    REQUIRE(server.warnings().size() == 1);
    CHECK_THAT(server.warnings()[0],
               Contains("version 2 is refused: [") && Contains("000002/config.json]") &&
                   Contains("Received: (1, 2, 2000000000, 1) of layer up, a total of "
                            "14.90 GB"));
    CHECK(server.version() == 1);
    CHECK(answers_four(server));
    export_of_steps(folder / "e", 3);
    for (int i = 0; i < 1000 && server.version() != 3; ++i) {
      CHECK(answers_four(server));
      std::this_thread::sleep_for(10ms);
    }
    CHECK(server.version() == 3);
    CHECK(answers_four(server));
    CHECK(server.warnings().size() == 1);
  }
}

TEST_CASE("a request whose call would exhaust memory is refused, others are answered") {
  const test::TempFolder folder;
  export_of_steps(folder / "e", 1000);
  // A row becomes 2000 numbers, counted twice as they are reshaped: about 16000 bytes.
  RunningServer server(folder / "e", {.worker = {.max_activation_bytes = 80000}});
  const auto ask = [&](int rows) {
    std::string body = "{\"instances\": [[[3], [4]]";
    for (int i = 1; i < rows; ++i) body += ", [[3], [4]]";
    return server.post(predict, body + "]}");
  };
  CHECK(ask(4).status == 200);
  const test::HttpAnswer answer = ask(6);
  CHECK(answer.status == 413);
  CHECK_THAT(answer.body,
             Contains("a call of the model needs at most 78.12 KB of activation memory. Received: "
                      "(6, 2000, 1) of layer up, a total of 93.75 KB. To fix: send "
                      "fewer instances at a time"));
  CHECK(ask(3).status == 200);
}

TEST_CASE("a version is refused if its trial process fails") {
  const test::TempFolder folder;
  const auto trial_of = [&](const std::string& script, std::chrono::milliseconds timeout = 20s) {
    const std::string program = folder / "trial.sh";
    test::write_file(program, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    try {
      try_version_in_process({.program = program,
                              .folder = "/exports",
                              .version = 7,
                              .max_activation_bytes = 5,
                              .timeout = timeout},
                             [] { return false; });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(trial_of("exit 0") == "");
  CHECK(trial_of("test \"$1 $2 $3\" = '/exports 7 5'") == "");
  CHECK_THAT(trial_of("kill -9 $$"), Contains("/exports/000007] a separate process can load") &&
                                         Contains("signal 9, as when memory runs out"));
  CHECK_THAT(trial_of("exec sleep 100", 100ms), Contains("no result within 100 ms"));
  CHECK(trial_of("echo '[x] no. Received: y.'; exit 1") == "[x] no. Received: y.");
  CHECK_THAT(trial_of("echo 'no memory'; exit 1"), Contains("Received: no memory"));
  // The trial process does not know this program's own layer.
  CHECK(trial_of("exit 4") == "");
  // No open file of this process, such as a client's connection, is open in the trial.
  REQUIRE(::dup2(2, 200) == 200);
  CHECK(trial_of("test ! -e /proc/$$/fd/200 || kill -9 $$") == "");
  ::close(200);
}

TEST_CASE("the trial ends with the server, and runs in less memory than the machine has") {
  REQUIRE_FALSE(find_trial_program().empty());
  const test::TempFolder folder;
  export_of_steps(folder / "e", 2);
  const auto trial = [&](int64_t bytes, bool stop) {
    try_version_in_process({.program = find_trial_program(),
                            .folder = folder / "e",
                            .version = 1,
                            .max_activation_bytes = bytes,
                            .timeout = 60s},
                           [stop] { return stop; });
  };
  trial(1 << 20, false);
  trial(0, false);
  trial(1, true);
  CHECK_THROWS_WITH(trial(1, false), Contains("000001/config.json]") && Contains("of layer up"));
}

}  // namespace version_trial_test
