#include "apps/common/app_options.hpp"

#include <sstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>

#include "apps/common/processes.hpp"
#include "tests/apps/sample_program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace app_options_test {

using namespace tessera;
using namespace tessera::detail;
using app::CommonOptions;
using test::SampleProgram;

TEST_CASE("without arguments the options have their defaults", "[app_options]") {
  SampleProgram program;
  REQUIRE(program.parse({}));
  const CommonOptions& common = program.common;
  CHECK(common.device == "auto");
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
  SampleProgram program;
  REQUIRE(program.parse({"--device",
                         "cuda",
                         "--virtual-devices",
                         "2",
                         "--matmul-precision",
                         "high",
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
                         "4",
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
  CHECK(common.virtual_devices == 2);
  CHECK(common.matmul_precision == "high");
  CHECK(to_string(common.mesh) == "batch=4,model=2");
  CHECK(common.layouts == layouts);
  CHECK(common.dtype == "float64");
  CHECK(common.seed == 7);
  CHECK(common.data_dir == folder.path().string());
  CHECK_FALSE(common.train_size);
  CHECK(common.test_size == 100);
  CHECK(common.batch_size == 32);
  CHECK(common.epochs == 4);
  CHECK(common.steps_per_epoch == 5);
  CHECK(common.learning_rate == 0.01);
  CHECK_FALSE(common.shuffle);
  CHECK(common.history == history);
  CHECK(common.verbose == 2);
  CHECK(program.model == "keras");
  CHECK(program.hidden == std::vector<int64_t>{3});
}

TEST_CASE("the command line overrides the file, which overrides the defaults", "[app_options]") {
  const test::TempFolder folder;
  const std::string path = (folder / "run.json").string();
  test::write_file(path, R"({"batch_size": 64, "epochs": 9, "shuffle": false, "train_size": "all",
    "test_size": 10, "learning_rate": 0.1, "mesh": {"model": 2, "batch": 4}, "model": "keras",
    "hidden": [30, 20]})");
  SampleProgram program;
  REQUIRE(program.parse({"--epochs", "1", "--config", path, "--hidden=5,6"}));
  CHECK(program.common.batch_size == 64);
  CHECK(program.common.epochs == 1);
  CHECK_FALSE(program.common.shuffle);
  CHECK_FALSE(program.common.train_size);
  CHECK(program.common.test_size == 10);
  CHECK(program.common.learning_rate == 0.1);
  CHECK(to_string(program.common.mesh) == "model=2,batch=4");
  CHECK(program.common.verbose == 1);
  CHECK(program.model == "keras");
  CHECK(program.hidden == std::vector<int64_t>{5, 6});

  SampleProgram shuffled;
  REQUIRE(shuffled.parse({"--config", path, "--shuffle"}));
  CHECK(shuffled.common.shuffle);
}

TEST_CASE("lists and meshes may be strings in the file", "[app_options]") {
  const test::TempFolder folder;
  const std::string path = (folder / "run.json").string();
  test::write_file(path, R"({"mesh": "batch=3", "hidden": "9,8"})");
  SampleProgram program;
  REQUIRE(program.parse({"--config", path}));
  CHECK(to_string(program.common.mesh) == "batch=3");
  CHECK(program.hidden == std::vector<int64_t>{9, 8});
}

TEST_CASE("the last occurrence of a repeated option counts", "[app_options]") {
  SampleProgram program;
  REQUIRE(program.parse({"--epochs", "1", "--epochs", "2", "--no-shuffle", "--shuffle"}));
  CHECK(program.common.epochs == 2);
  CHECK(program.common.shuffle);
}

TEST_CASE("help lists every option in its group with its default", "[app_options]") {
  SampleProgram program;
  CHECK_FALSE(program.parse({"--help"}));
  const std::string help = program.out.str();
  for (const char* name : {"--device auto|cpu|cuda",
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
                           "--profile FILE.json",
                           "--verbose 0|1|2",
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
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE("the mesh comes from the option, the layouts file, the devices, the program",
          "[app_options]") {
  const MeshDims file{{"batch", 2}, {"feature", 2}};
  const MeshDims fallback{{"batch", 8}};
  const auto mesh_of = [&](const std::vector<std::string>& arguments, const MeshDims& from_file) {
    SampleProgram program;
    program.parse(arguments);
    return app::choose_mesh(program.common, from_file, fallback);
  };
  CHECK(to_string(mesh_of({"--mesh", "model=3"}, file).dims()) == "model=3");
  CHECK(to_string(mesh_of({}, file).dims()) == to_string(file));
  CHECK(to_string(mesh_of({}, {}).dims()) == to_string(fallback));
  CHECK(to_string(mesh_of({"--devices", "5"}, {}).dims()) == "batch=5");
  CHECK(to_string(mesh_of({"--devices", "4"}, file).dims()) == to_string(file));
  if (gpu_count() < 4) {
    CHECK_THROWS_WITH(mesh_of({"--device", "cuda"}, file),
                      Catch::Contains(gpu_count() == 0 ? "--device cpu" : "--virtual-devices"));
  } else {
    CHECK(to_string(mesh_of({"--device", "cuda"}, file).local_devices()[1]) == "cuda:1");
  }
  CHECK_THROWS_AS(mesh_of({"--devices", "5"}, file), ConfigError);
}

TEST_CASE("arguments without flags are read in order", "[app_options]") {
  const auto parse = [](std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    std::string folder;
    std::vector<std::string> texts;
    bool json = false;
    app::AppOptions options = app::AppOptions::bare("program", "Does something.");
    options.add_argument("DIR", "folder", folder);
    options.add_arguments("TEXT", "texts", texts);
    options.add({"json", "Output", "as JSON", app::toggle(json)});
    std::ostringstream out;
    options.parse(static_cast<int>(words.size()), words.data(), out);
    return folder + ":" + join(texts, ",") + (json ? "!" : "") + out.str();
  };
  CHECK(parse({"a"}) == "a:");
  CHECK(parse({"a", "b c", "", "d"}) == "a:b c,,d");
  CHECK(parse({"a", "--json", "b"}) == "a:b!");
  CHECK(parse({"a", "b", "--", "--json", "-x"}) == "a:b,--json,-x");
  CHECK_THROWS_WITH(parse({}), Catch::Contains("[DIR] must be given"));
  CHECK_THROWS_WITH(parse({"a", "-x"}), Catch::Contains("every option must be known"));
  const std::string help = parse({"--help"});
  CHECK(help.find("DIR") != std::string::npos);
  CHECK(help.find("TEXT") != std::string::npos);
}

TEST_CASE("the mesh is distributed over several processes", "[app_options]") {
  const auto mesh_of = [](std::vector<std::string> arguments, const MeshDims& from_file = {}) {
    arguments.insert(arguments.begin(), {"--coordinator", "h:1", "--rank", "1"});
    SampleProgram program;
    program.parse(arguments);
    return to_string(app::choose_mesh_dims(program.common, from_file, {{"batch", 8}}));
  };
  CHECK(mesh_of({"--processes", "2"}) == "batch=8");
  CHECK(mesh_of({"--processes", "3"}) == "batch=3");
  CHECK(mesh_of({"--processes", "3", "--devices", "2"}) == "batch=6");
  CHECK(mesh_of({"--processes", "2", "--devices", "2"}, {{"batch", 2}, {"model", 2}}) ==
        "batch=2,model=2");
  CHECK(mesh_of({"--processes", "2", "--devices", "2", "--mesh", "model=4"}) == "model=4");
  CHECK_THROWS_WITH(mesh_of({"--processes", "2", "--devices", "4", "--mesh", "batch=4"}),
                    "[--devices] must be those of one process: 2 processes share the 4 devices of "
                    "the mesh. Received: 4 with mesh batch=4. To fix: leave --devices out or "
                    "change the mesh.");
  CHECK_THROWS_WITH(mesh_of({"--processes", "4", "--mesh", "batch=2"}),
                    Catch::StartsWith("[--mesh] must have a device for each of 4 processes"));
  CHECK_THROWS_WITH(mesh_of({}), Catch::StartsWith("[--processes] must be given"));
}

TEST_CASE("only the first process prints", "[app_options]") {
  for (const auto& [rank, prints] : {std::pair("0", true), std::pair("2", false)}) {
    SampleProgram program;
    program.parse({"--coordinator", "h:1", "--rank", rank, "--processes", "3", "--verbose", "2"});
    CHECK(app::is_first_process(program.common) == prints);
    CHECK(app::verbosity(program.common) == (prints ? 2 : 0));
  }
}

TEST_CASE("the options of several processes reach the run", "[app_options]") {
  SampleProgram program;
  program.parse({"--timeout", "7", "--connect-timeout", "9", "--check-collectives",
                 "--world-size-invariant", "--no-shared-memory", "--devices", "2", "--device",
                 "cuda", "--virtual-devices", "3", "--elastic-snapshot-every", "4"});
  const DistributedOptions options = app::distributed_options(program.common);
  CHECK(options.timeout == std::chrono::seconds(7));
  CHECK(options.connect_timeout == std::chrono::seconds(9));
  CHECK(options.always_check);
  CHECK_FALSE(options.shared_memory);
  CHECK(program.common.world_size_invariant);
  CHECK(app::elastic_options(program.common).snapshot_every == 4);
  CHECK(options.devices == 2);
  CHECK(options.device_type == Device::Type::cuda);
  CHECK(options.virtual_devices == 3);
  CHECK_FALSE(app::distributed_options(SampleProgram().common).device_type);
}

}  // namespace app_options_test
