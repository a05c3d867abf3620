#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/device.hpp>

#include "tests/support/catch.hpp"

namespace device_test {

using namespace tessera;

TEST_CASE("virtual_cpus and cuda_devices count from zero") {
  const std::vector<Device> cpus = virtual_cpus(3);
  REQUIRE(cpus.size() == 3);
  CHECK(cpus[0] == Device{Device::Type::cpu, 0});
  CHECK(cpus[2] == Device{Device::Type::cpu, 2});
  CHECK(cuda_devices(2)[1] == Device{Device::Type::cuda, 1});
  CHECK_FALSE(cuda_devices(1)[0] == virtual_cpus(1)[0]);
}

TEST_CASE("a device count below one or absurdly large is refused") {
  for (int64_t n : {int64_t{0}, int64_t{-1}, int64_t{65537}, INT64_MAX, INT64_MIN}) {
    CHECK_THROWS_AS(virtual_cpus(n), MeshError);
    CHECK_THROWS_AS(cuda_devices(n), MeshError);
  }
  CHECK(virtual_cpus(65536).size() == 65536);
}

TEST_CASE("a device's text round-trips") {
  for (const char* text : {"cpu:0", "cpu:7", "cuda:0", "cuda:12"}) {
    CHECK(to_string(device_from_string(text)) == text);
  }
  CHECK(device_from_string("cuda") == Device{Device::Type::cuda, 0});
}

TEST_CASE("any other device text is refused") {
  for (const char* text : {"", "gpu:0", "cpu:", "cpu:x", "cpu:-1", "cpu:1x", "cpu:999999", ":1",
                           "CPU:0", "cpu:0 ", "cpu:1:2"}) {
    INFO(text);
    CHECK_THROWS_AS(device_from_string(text), MeshError);
  }
  CHECK_THROWS_WITH(device_from_string("tpu:0"),
                    Catch::Contains("\"tpu:0\"") && Catch::Contains("cpu:N"));
}

}  // namespace device_test
