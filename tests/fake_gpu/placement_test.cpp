#include <tessera/tessera.hpp>

#include <tessera/framework/base/json.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace placement_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;

/// Returns the GPU of each device of a mesh.
std::vector<int> gpus(const Mesh& mesh) {
  std::vector<int> list;
  for (Device device : mesh.local_devices()) {
    CHECK(device.type == Device::Type::cuda);
    list.push_back(device.index);
  }
  return list;
}

/// Runs mnist; returns its first lines and the end of its error.
test::ProgramRun mnist(Words words) {
  const test::TempFolder folder;
  words.insert(words.end(), {"--train-size", "64", "--test-size", "32", "--epochs", "1"});
  return test::run_program(test::app_path("mnist"), words,
                           {{"LD_PRELOAD", FAKE_GPU_LIBRARY},
                            {"TESSERA_FAKE_GPUS", "2"},
                            {"TESSERA_DATA", ""},
                            {"XDG_CACHE_HOME", folder.path()}});
}

}  // namespace

TEST_CASE("a mesh is placed on the machine's GPUs, several devices on each if requested") {
  CHECK(gpus(create_distributed_mesh({{"batch", 2}})) == std::vector{0, 1});
  CHECK(gpus(create_distributed_mesh({{"batch", -1}})) == std::vector{0, 1});
  CHECK(gpus(create_distributed_mesh({{"batch", 1}})) == std::vector{0});
  const DistributedOptions three{.virtual_devices = 3};
  CHECK(gpus(create_distributed_mesh({{"x", 3}, {"y", 2}}, three)) ==
        std::vector{0, 0, 0, 1, 1, 1});
  CHECK(gpus(create_distributed_mesh({{"x", -1}, {"y", 2}}, three)) ==
        std::vector{0, 0, 0, 1, 1, 1});
  CHECK(gpus(create_distributed_mesh({{"x", 4}}, three)) == std::vector{0, 0, 0, 1});
  const Mesh cpus = create_distributed_mesh({{"x", 4}}, {.device_type = Device::Type::cpu});
  CHECK(cpus.local_devices() == virtual_cpus(4));
}

TEST_CASE("a mesh that does not fit on the machine's GPUs is an error that says what would") {
  CHECK_THAT(test::error_line([] {
               create_distributed_mesh({{"batch", 3}});
             }),
             Contains("this host has 2 GPUs") && Contains("3 devices on GPUs 0 to 2") &&
                 Contains("--virtual-devices"));
  CHECK_THAT(test::error_line([] {
               create_distributed_mesh({{"batch", 5}}, {.virtual_devices = 2});
             }),
             Contains("5 devices on GPUs 0 to 2"));
  CHECK_THAT(
      test::error_line([] {
        create_distributed_mesh({{"batch", 2}}, {.virtual_devices = 0});
      }),
      Contains("each GPU has at least one device of the mesh") && Contains("virtual_devices 0"));
  CHECK_THAT(test::error_line([] { gpu(2); }),
             Contains("this process may use 2 GPUs") && Contains("cuda:2"));
}

TEST_CASE("mnist trains on all GPUs of the machine, and with several devices on each") {
  struct Case {
    Words words;
    std::string mesh;
  };
  for (const auto& [words, mesh] :
       {Case{{}, "mesh batch=2"}, Case{{"--device", "auto"}, "mesh batch=2"},
        Case{{"--virtual-devices", "2"}, "mesh batch=4"},
        Case{{"--device", "cpu"}, "mesh batch=8"}}) {
    const test::ProgramRun run = mnist(words);
    INFO(run.out << run.err);
    CHECK(run.exit_code == 0);
    CHECK(run.err == "");
    CHECK_THAT(run.out, Contains(mesh));
  }
  const test::ProgramRun refused = mnist({"--mesh", "batch=4"});
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, Contains("this host has 2 GPUs") && Contains("--virtual-devices"));
}

}  // namespace placement_test
