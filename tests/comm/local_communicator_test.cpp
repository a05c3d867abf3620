#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/local_group.hpp"

namespace local_communicator_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const std::vector<at::Tensor> parts = {at::tensor({1.f, 2.f, 3.f}), at::tensor({10.f, 20.f, 30.f})};

}  // namespace

TEST_CASE("local: all_reduce, with one partial sum or all") {
  const auto local = local_communicator();
  at::Tensor out;
  wait(local->all_reduce(local_group(2), Reduce::sum, parts, out));
  CHECK(difference(out, at::tensor({11.f, 22.f, 33.f})) == "");
  wait(local->all_reduce(local_group(2), Reduce::max, {parts[0]}, out));
  CHECK(difference(out, parts[0]) == "");
}

TEST_CASE("local: all_gather concatenates inputs in order, empty ones too") {
  const auto local = local_communicator();
  GatheredValue values[] = {{0, {3, 0, 3}, {parts[0], at::empty({0}), parts[1]}},
                            {0, {1, 1, 1}, {at::ones({1}), at::zeros({1}), at::ones({1})}}};
  wait(local->all_gather(local_group(3), values));
  CHECK(difference(values[0].out, at::tensor({1.f, 2.f, 3.f, 10.f, 20.f, 30.f})) == "");
  CHECK(difference(values[1].out, at::tensor({1.f, 0.f, 1.f})) == "");
}

TEST_CASE("local: reduce_scatter gives each member its shard") {
  const auto local = local_communicator();
  ScatteredValue value = {0, {{0, 1}, {1, 3}}, parts};
  wait(local->reduce_scatter(local_group(2), Reduce::sum, std::span(&value, 1)));
  const std::vector<at::Tensor>& out = value.out;
  REQUIRE(out.size() == 2);
  CHECK(difference(out[0], at::tensor({11.f})) == "");
  CHECK(difference(out[1], at::tensor({22.f, 33.f})) == "");
}

TEST_CASE("local: all_to_all passes tensors on unchanged") {
  const auto local = local_communicator();
  const std::vector<std::vector<at::Tensor>> send = {{parts[0], parts[1]},
                                                     {at::Tensor(), parts[0]}};
  std::vector<std::vector<at::Tensor>> recv(2, std::vector<at::Tensor>(2));
  wait(local->all_to_all(local_group(2), send, recv));
  CHECK(recv[0][0].is_same(parts[0]));
  CHECK(recv[1][0].is_same(parts[1]));
  CHECK_FALSE(recv[0][1].defined());
  CHECK(recv[1][1].is_same(parts[0]));
}

TEST_CASE("local: one process is rank 0 of one") {
  const auto local = local_communicator();
  CHECK(local->rank() == 0);
  CHECK(local->size() == 1);
  CHECK(local->name() == "local");
}

TEST_CASE("local: members elsewhere need a communicator between processes") {
  Group group = local_group(1);
  group.owner = {0, 1};
  at::Tensor out;
  CHECK_THROWS_WITH(local_communicator()->all_reduce(group, Reduce::sum, {parts[0]}, out),
                    "[local] a mesh over several processes needs a communicator between them. "
                    "Received: 1 of 2 members are here. To fix: make the mesh with "
                    "create_mesh_part and its communicator.");
}

TEST_CASE("local: after abort every collective throws its reason") {
  const auto local = local_communicator();
  local->abort("disk full");
  at::Tensor out;
  CHECK_THROWS_WITH(local->all_reduce(local_group(2), Reduce::sum, parts, out),
                    "[local] the communicator was aborted. Received: disk full.");
  std::vector<std::vector<at::Tensor>> recv(2, std::vector<at::Tensor>(2));
  CHECK_THROWS_AS(local->all_to_all(local_group(2), recv, recv), CommError);
}

TEST_CASE("local: a mesh without a communicator has the local one") {
  const Mesh mesh = create_mesh({{"a", 2}});
  CHECK(communicator_of(mesh).name() == "local");
  const Mesh local_mesh = create_mesh_part({{"a", 2}}, {0}, virtual_cpus(1), nullptr);
  at::Tensor out;
  const Group group = make_group(local_mesh, {0}, {2});
  CHECK_THROWS_AS(communicator_of(local_mesh).all_reduce(group, Reduce::sum, {parts[0]}, out),
                  CommError);
}

}  // namespace local_communicator_test
