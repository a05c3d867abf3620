#include <algorithm>
#include <map>
#include <regex>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace bench_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Words = std::vector<std::string>;

test::ProgramRun bench(const Words& words) {
  return test::run_program(test::app_path("bench"), words);
}

std::string error_of(const Words& words) {
  const test::ProgramRun run = bench(words);
  CHECK(run.exit_code == 1);
  CHECK(run.out.empty());
  return run.err;
}

}  // namespace

TEST_CASE("bench refuses wrong arguments in one line", "[bench]") {
  CHECK(error_of({"stp"}) ==
        "bench: error: [command line] the command must be known. Received: \"stp\". To fix: see "
        "bench --help.\n");
  CHECK(
      error_of({"ops", "--op", "add,exq"}) ==
      "bench: error: [--op] every name must be known. Received: \"exq\". To fix: write \"exp\".\n");
  CHECK(error_of({"step", "--blocks", "per_shar"}) ==
        "bench: error: [--blocks] every name must be known. Received: \"per_shar\". To fix: write "
        "\"per_shard\".\n");
  CHECK(error_of({"step", "--devices", "0"}).find("[--devices] ") != std::string::npos);
  CHECK(error_of({"step", "--epochs", "1"}) ==
        "bench: error: [command line] every option must be known. Received: --epochs. To fix: see "
        "--help.\n");
  CHECK(error_of({"ops", "add"}).find("such as --op before it") != std::string::npos);
  CHECK(error_of({"compare", "--work", "mlp,dispach"}) ==
        "bench: error: [--work] every name must be known. Received: \"dispach\". To fix: write "
        "\"dispatch\".\n");
  CHECK(error_of({"compare", "--device", "cpu", "--work", "encodr"}) ==
        "bench: error: [--work] every name must be known. Received: \"encodr\". To fix: write "
        "\"encoder\".\n");
  CHECK(error_of({"compare", "--python", "/bin/true"}).find("[--python] each is a Python 3") !=
        std::string::npos);
}

TEST_CASE("bench ops grows inputs whose extents depend on each other", "[bench]") {
  const test::TempFolder folder;
  const std::string file = folder / "times.json";
  // Heads of a query are a multiple of the key's.
  const test::ProgramRun run = bench({"ops", "--op", "attention", "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const Json rows = read_json_file(file)["ops"];
  REQUIRE(rows.size() > 2);
  for (const Json& row : rows) {
    CAPTURE(row["inputs"]);
    CHECK(row["scaled"] == true);
  }
}

TEST_CASE("bench ops times an operation's samples, original or scaled", "[bench]") {
  const test::TempFolder folder;
  for (const bool scale : {false, true}) {
    const std::string file = folder / "times.json";
    const test::ProgramRun run =
        bench({"ops", "--op", "matmul,reshape", scale ? "--scale" : "--no-scale", "--json", file});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const Json rows = read_json_file(file)["ops"];
    REQUIRE(rows.size() > 2);
    CHECK(rows[0]["op"] == "matmul");
    CHECK(rows[0]["scaled"] == scale);
    CHECK((rows[0]["inputs"] == "(4, 3) (3, 5)") == !scale);
    for (const char* key : {"aten_us", "one_device_us", "eight_devices_us"}) {
      CHECK(rows[0][key].get<double>() > 0);
    }
    size_t with_bar = 0, met = 0;
    for (const Json& row : rows) {
      if (!row.contains("aten_us")) continue;
      const double at_most = row["at_most_us"].get<double>();
      CHECK(at_most == Approx(1.3 * row["aten_us"].get<double>() + 2));
      CHECK(row["met"] == (row["one_device_us"].get<double>() <= at_most));
      ++with_bar;
      met += row["met"].get<bool>();
    }
    CHECK_THAT(run.out, Catch::Contains(str("plus 2 us: met by ", met, " of ", with_bar, ".\n")));
    // reshape has a shape as its attribute.
    CHECK(rows.back()["op"] == "reshape");
    CHECK(rows.back()["scaled"] == false);
    CHECK_FALSE(rows.back().contains("aten_us"));
    CHECK_FALSE(rows.back().contains("met"));
    CHECK((run.out.find("Not scaled") != std::string::npos) == scale);
  }
}

TEST_CASE("bench step times every configuration the requested number of times", "[bench]") {
  const test::TempFolder folder;
  const std::string file = folder / "times.json";
  const test::ProgramRun run = bench({"step", "--devices", "1,2,8", "--blocks", "per_worker",
                                      "--rounds", "2", "--steps", "1", "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const Json rows = read_json_file(file)["step"];
  std::vector<int> devices;
  for (const Json& row : rows) {
    devices.push_back(row["devices"].get<int>());
    CHECK(row["rounds_ms"].size() == 2);
    CHECK(row["fastest_ms"].get<double>() > 0);
  }
  // 0 stands for the hand-written step; one device is listed once.
  CHECK(devices == std::vector<int>{0, 1, 2, 8});
  CHECK(rows[1]["to_one_device"] == 1.0);
  CHECK(run.out.find("8 devices, per_worker: ") != std::string::npos);
}

TEST_CASE("bench generate times tokens, which make no plans", "[bench]") {
  const test::TempFolder folder;
  const std::string file = folder / "times.json";
  const test::ProgramRun run = bench({"generate", "--rounds", "1", "--json", file});
  CAPTURE(run.out, run.err);
  REQUIRE(run.exit_code == 0);
  const Json times = read_json_file(file);
  CHECK(times.size() == 4);
  for (const auto& [name, seconds] : times.items()) CHECK(seconds.get<double>() > 0);
  for (const char* title :
       {"a token behind 16", "a token behind 300", "8 tokens, of texts of 300"}) {
    CHECK(std::regex_search(run.out, std::regex(std::string(title) + R"(\s+\d+\s+0\s)")));
  }
}

TEST_CASE("bench text times every pass", "[bench]") {
  const test::TempFolder folder;
  for (const std::string split : {"train", "test"}) {
    for (const std::string kind : {"neg", "pos"}) {
      const auto class_folder = folder / ("aclImdb/" + split + "/" + kind);
      std::filesystem::create_directories(class_folder);
      test::write_file(class_folder / "0_1.txt", "a film of " + kind + " words");
    }
  }
  const std::string file = folder / "times.json";
  const test::ProgramRun run = bench({"text", "--data-dir", folder.path().string(), "--max-tokens",
                                      "5", "--rounds", "2", "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("2 texts of imdb, 0.0 MB") == 0);
  const Json passes = read_json_file(file)["text"];
  CHECK(passes.size() == 5);
  for (const Json& pass : passes) CHECK(pass["ms"].get<double>() > 0);
}

TEST_CASE("bench compare times Tessera alone if no peer framework is installed", "[bench]") {
  const test::TempFolder folder;
  const std::string file = folder / "times.json";
  const test::ProgramRun run =
      bench({"compare", "--work", "dispatch", "--rounds", "2", "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("JAX: not found, see --python\n") != std::string::npos);
  const Json rows = read_json_file(file)["compare"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["own"] == true);
  for (const Json& row : rows) {
    CHECK(row["work"] == "dispatch of an operation");
    CHECK(row["rounds"].size() == 2);
    CHECK(row["least"].get<double>() > 0);
    CHECK(row["least"] <= row["median"]);
  }
  CHECK(rows[1]["at_most"] == 2.0);
  CHECK(rows[1]["met"] == (rows[1]["ours_to_it"] <= rows[1]["at_most"]));
}

TEST_CASE("bench compare alternates between peers and drops those that exit", "[bench]") {
  const test::TempFolder folder;
  const std::string python = folder / "python";
  // A Python with JAX, whose programs exit, and PyTorch, whose steps take an hour.
  test::write_file(python, R"(#!/bin/sh
case "$1" in
  *packages.py) echo '{"torch": "2.0", "jax": "0.1", "optax": "0.1"}' ;;
  *torch_*) while read count; do echo "told $count"; echo '{"milliseconds": [3600000]}'; done ;;
esac
)");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const std::string file = folder / "times.json";
  const test::ProgramRun run = bench({"compare", "--work", "imdb", "--rounds", "2", "--steps", "1",
                                      "--python", python, "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.err.find("left out: JAX, 8 virtual devices: ") != std::string::npos);
  CHECK(run.out.find("PyTorch 2.0\nTensorFlow: not found, see --python\n") == 0);
  const Json rows = read_json_file(file)["compare"];
  REQUIRE(rows.size() == 6);
  for (size_t i = 0; i < rows.size(); i += 2) {
    CHECK(rows[i]["rounds"].size() == 2);
    CHECK(rows[i + 1]["who"] == "PyTorch, 1 device");
    CHECK(rows[i + 1]["rounds"] == std::vector<double>{3600000, 3600000});
    CHECK(rows[i + 1]["met"] == true);
  }
}

TEST_CASE("bench compare times steps that keep less, which need less memory", "[bench][nightly]") {
  const test::TempFolder folder;
  const std::string file = folder / "times.json";
  const test::ProgramRun run =
      bench({"compare", "--work", "remat,logits", "--rounds", "1", "--steps", "1", "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  // Two works: the times and the memory of both ways.
  const Json rows = read_json_file(file)["compare"];
  REQUIRE(rows.size() == 8);
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].dump());
    CHECK(rows[i]["own"] == (i % 2 == 0));
    CHECK(rows[i]["unit"] == (i % 4 < 2 ? "ms" : "MB"));
    CHECK(rows[i]["rounds"].size() == 1);
    CHECK(rows[i]["least"].get<double>() > 0);
    if (i % 4 == 3) CHECK(rows[i]["ours_to_it"].get<double>() < 1);
  }
  CHECK(rows[1]["at_most"] == 1.4);
  CHECK_FALSE(rows[5].contains("at_most"));
}

TEST_CASE("bench compare times steps with world_size_invariant beside others", "[bench][nightly]") {
  const test::TempFolder folder;
  const std::string file = folder / "times.json";
  const test::ProgramRun run =
      bench({"compare", "--work", "invariant", "--rounds", "1", "--steps", "1", "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  // Two models, each in three ways.
  const Json rows = read_json_file(file)["compare"];
  REQUIRE(rows.size() == 6);
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].dump());
    CHECK(rows[i]["own"] == (i % 3 == 0));
    CHECK(rows[i]["least"].get<double>() > 0);
    if (i % 3 != 0) CHECK(rows[i]["ours_to_it"].get<double>() > 0);
  }
}

TEST_CASE("bench compare times a pipeline beside steps without stages", "[bench][nightly]") {
  const test::TempFolder folder;
  const std::string file = folder / "times.json";
  const test::ProgramRun run =
      bench({"compare", "--work", "pipeline", "--rounds", "1", "--steps", "1", "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const Json rows = read_json_file(file)["compare"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["own"] == true);
  CHECK(rows[1]["ours_to_it"].get<double>() > 0);
  CHECK(rows[1]["at_most"] == 1.25);
}

TEST_CASE("bench compare times texts and training steps of language models", "[bench][nightly]") {
  const test::TempFolder folder;
  const std::string file = folder / "times.json";
  const test::ProgramRun run =
      bench({"compare", "--work", "generate", "--rounds", "1", "--steps", "1", "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("transformers: not found, see --python\n") != std::string::npos);
  const Json rows = read_json_file(file)["compare"];
  REQUIRE(rows.size() == 4);
  for (const Json& row : rows) CHECK(row["least"].get<double>() > 0);
}

TEST_CASE("bench compare --work serving says that it needs wrk", "[bench]") {
  const test::ProgramRun run = test::run_program(
      test::app_path("bench"), {"compare", "--work", "serving"}, {{"PATH", "/none"}});
  CHECK(run.exit_code == 0);
  CHECK(run.err.find("left out: serving: it needs wrk in PATH") != std::string::npos);
}

TEST_CASE("bench compare --work serving puts the same load on both servers", "[bench]") {
  const test::TempFolder folder;
  const std::string python = folder / "python", wrk = folder / "wrk";
  test::write_file(python, R"sh(#!/bin/sh
case "$1" in
  *packages.py) echo '{"uvicorn": "0.1", "starlette": "1", "uvloop": "1", "httptools": "1",' \
                     '"orjson": "1", "onnxruntime": "1", "torch": "2.0"}' ;;
  *onnx_server.py) while read count; do echo '{"port": 1}'; done ;;
esac
)sh");
  test::write_file(wrk, R"sh(#!/bin/sh
test -s "${10}" || exit 1
case "$8" in
  *:1/*) echo '{"per_second": 100, "p50": 5, "p99": 20, "failed": 0}' ;;
  *) echo '{"per_second": 500, "p50": 1, "p99": 10, "failed": 0}' ;;
esac
)sh");
  for (const std::string& program : {python, wrk}) {
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  const std::string file = folder / "times.json";
  const test::ProgramRun run = test::run_program(
      test::app_path("bench"),
      {"compare", "--work", "serving", "--rounds", "2", "--python", python, "--json", file},
      {{"PATH", folder.path().string() + ":/usr/bin:/bin"}});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  // Two models, 1 and 16 connections, the time of a request and p99: of us and of two peers.
  const Json rows = read_json_file(file)["compare"];
  REQUIRE(rows.size() == 24);
  for (size_t i = 0; i < rows.size(); i += 3) {
    CHECK(rows[i]["who"].get<std::string>().starts_with("ours"));
    CHECK(rows[i]["least"] == (i % 2 == 0 ? 2.0 : 10.0));
    CHECK(rows[i + 1]["ours_to_it"] == (i % 2 == 0 ? 0.2 : 0.5));
    CHECK(rows[i + 2]["who"].get<std::string>().starts_with(
        "uvicorn with ONNX Runtime, processes: 2"));
  }
}

TEST_CASE("bench compare --device reports a missing GPU in one line", "[bench]") {
  const test::ProgramRun run = test::run_program(
      test::app_path("bench"), {"compare", "--device", "cuda"}, {{"CUDA_VISIBLE_DEVICES", ""}});
  CHECK(run.exit_code == 1);
  CHECK(run.err.starts_with("bench: error: [device] "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
}

TEST_CASE("bench compare --device times the one-device workloads against all peers", "[bench]") {
  const test::TempFolder folder;
  const std::string python = folder / "python";
  // A Python that has all frameworks, prints its arguments, and returns at once.
  test::write_file(python, R"sh(#!/bin/sh
case "$1" in
  *packages.py) echo '{"torch": "2.0", "jax": "0.1", "optax": "0.1"}' ;;
  *) program=$(basename "$1")
     data=$3
     shift
     echo "$program $1 $3 $4 $(cat "$data.json" | tr -d ' \n')" >>"${0%/*}/told"
     while read count; do echo '{"milliseconds": [0.5]}'; done ;;
esac
)sh");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const std::string file = folder / "times.json";
  const test::ProgramRun run =
      bench({"compare", "--device", "cpu", "--rounds", "1", "--steps", "1", "--python", python,
             "--peers", folder.path().string(), "--json", file});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  std::map<std::string, std::vector<std::string>> who;
  const Json rows = read_json_file(file)["compare"];
  for (const Json& row : rows) {
    who[row["work"]].push_back(row["who"]);
    CHECK(row["least"].get<double>() > 0);
  }
  REQUIRE(who.size() == 7);
  const std::vector<std::string> all = {"ours", "PyTorch, eager", "PyTorch, compiled",
                                        "PyTorch, compiled, CUDA graphs", "JAX, jitted"};
  CHECK(who["encoder 1 x 16, length 8, batch 2, dropout, float32"] == all);
  CHECK(who["fit, images of 32 pixels, batch 2"] ==
        std::vector<std::string>{"ours, fit", "ours, data on the device", "PyTorch, a loop by hand",
                                 "PyTorch, data on the device"});
  CHECK(who["dropout alone"] == std::vector<std::string>{"ours", "a copy"});
  const std::string told = test::read_file(folder / "told");
  for (const char* line : {"torch_step.py mlp cpu graphs {\"batch\":128}\n",
                           "torch_step.py upload cpu resident {\"batch\":2,\"pixels\":32}\n",
                           "jax_step.py lstm 1  {\"batch\":2,"}) {
    CHECK(told.find(line) != std::string::npos);
  }
}

}  // namespace bench_test
