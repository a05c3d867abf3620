#include <rpc/parameter_server.grpc.pb.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include <tessera/framework/parameter_server/internal/rpc_connection.hpp>
#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>
#include <tessera/framework/parameter_server/job/server_cluster.hpp>
#include <tessera/framework/parameter_server/job/task_connection.hpp>

#include "tests/parameter_server/job_tasks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/warnings.hpp"

namespace task_thread_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// A task that answers each heartbeat.
class AnsweringTask final : public rpc::Task::Service {
  grpc::Status Attend(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<rpc::TaskHeartbeat, rpc::CoordinatorHeartbeat>* stream) override {
    rpc::CoordinatorHeartbeat heartbeat;
    rpc::TaskHeartbeat answer;
    answer.set_serving(true);
    while (stream->Read(&heartbeat) && stream->Write(answer)) {
    }
    return grpc::Status::OK;
  }
};

}  // namespace

TEST_CASE("an exception on a task's heartbeat thread is one line and ends the job") {
  AnsweringTask task;
  const std::string address = str("127.0.0.1:", free_ports(1)[0]);
  const std::unique_ptr<grpc::Server> server = open_server("test", address, {}, 2, {&task});
  const ServerCluster cluster;
  const strategy::ParameterServerOptions options;
  const test::Warnings warnings;
  {
    CoordinatorRuntime lead(cluster, options);
    TaskConnection link(lead, TaskType::worker, 0, "worker 0", address, "",
                        [] { throw std::runtime_error("no memory for it"); });
    link.start();
    for (int i = 0; i < 1000 && test::error_of([&] { lead.throw_if_failed(); }).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK_THAT(
        test::error_of([&] { lead.throw_if_failed(); }),
        Contains(
            "[worker 0] the coordinator must serve its connection. Received: no memory for it."));
    CHECK_THAT(test::error_of([&] { lead.closures()->join(); }), Contains("no memory for it"));
    link.stop();
  }
  CHECK(warnings.lines() == 1);
  CHECK_THAT(warnings.text(), Contains("no memory for it"));
  close_server(*server);
}

}  // namespace task_thread_test
