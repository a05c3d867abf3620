#include <tessera/tessera.hpp>

#include <atomic>
#include <thread>

#include <ATen/ATen.h>
#include <rpc/parameter_server.grpc.pb.h>

#include <tessera/framework/parameter_server/internal/rpc_connection.hpp>
#include <tessera/framework/parameter_server/internal/rpc_identity.hpp>

#include "tests/parameter_server/job_tasks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/warnings.hpp"

namespace secret_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using strategy::ClosureValue;
using strategy::ClusterCoordinator;
using strategy::ParameterServerStrategy;
using strategy::WorkerContext;
using test::JobTasks;

namespace {

const std::string secret(32, 's');

void add_nothing(ParameterServerStrategy& strategy) {
  strategy.add_function("nothing", [](WorkerContext&) { return ClosureValue(); });
}

/// A coordinator that runs one closure.
JobTasks::Program one_closure() {
  return [](ParameterServerStrategy& strategy) {
    add_nothing(strategy);
    ClusterCoordinator coordinator(strategy);
    coordinator.schedule("nothing").fetch();
  };
}

/// Returns the status of an unknown peer that opens Attend as a coordinator does.
grpc::Status attend_as_stranger(const std::string& address, const std::string& known) {
  const auto stub = rpc::Task::NewStub(make_channel(address, known));
  grpc::ClientContext context;
  context.set_wait_for_ready(false);
  context.set_deadline(std::chrono::system_clock::now() + 5s);
  const auto stream = stub->Attend(&context);
  rpc::CoordinatorHeartbeat heartbeat;
  heartbeat.set_job("0123456789abcdef");
  rpc::TaskHeartbeat answer;
  const bool heard = stream->Write(heartbeat) && stream->Read(&answer);
  if (!heard) return stream->Finish();
  context.TryCancel();
  stream->Finish();
  return grpc::Status::OK;
}

void wait_for_port(const std::string& address) {
  const auto channel = make_channel(address);
  for (int i = 0; i < 200; ++i) {
    // Any error other than a refused connection shows that the port is open, encrypted or not.
    const grpc::Status status = attend_as_stranger(address, std::string(32, 'x'));
    if (status.error_message().find("refused") == std::string::npos) return;
    std::this_thread::sleep_for(50ms);
  }
}

}  // namespace

TEST_CASE("an unknown peer that connects before the coordinator does not get the job") {
  JobTasks job(1, 1);
  job.secret = secret;
  auto tasks = job.start_all(add_nothing);
  for (const TaskType type : {TaskType::ps, TaskType::worker}) {
    wait_for_port(job.address(type));
    CHECK(is_other_secret(attend_as_stranger(job.address(type), std::string(32, 'x'))));
    CHECK(attend_as_stranger(job.address(type), "").error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  auto chief = job.start(TaskType::chief, 0, one_closure());
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

TEST_CASE("a coordinator with another secret is told which task has a different one") {
  JobTasks job(1, 1);
  job.secret = secret;
  auto tasks = job.start_all(add_nothing);
  JobTasks other = job;
  other.secret = std::string(32, 'o');
  other.connect_timeout = 2s;
  wait_for_port(job.address(TaskType::ps));
  const test::Warnings captured;
  auto wrong = other.start(TaskType::chief, 0, one_closure());
  CHECK_THAT(test::end_of(wrong),
             Contains("all parameter servers and a worker must connect. Received: "
                      "no sign of ps 0 (") &&
                 Contains("start them with the same secret"));
  CHECK_THAT(captured.text(),
             Contains("[ps 0 (" + job.address(TaskType::ps) +
                      ")] all tasks of a job must have one "
                      "secret. Received: another one there, or none. To fix: give all of them"));
  auto chief = job.start(TaskType::chief, 0, one_closure());
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

TEST_CASE("tasks beyond this host need a secret, or an explicit opt-out") {
  const auto error = [](bool insecure, const std::string& known) {
    Cluster cluster;
    cluster.type = TaskType::chief;
    cluster.source = "TF_CONFIG";
    cluster.secret = known;
    cluster.insecure = insecure;
    cluster.tasks = {{TaskType::chief, {"127.0.0.1:1"}},
                     {TaskType::worker, {"192.0.2.1:2"}},
                     {TaskType::ps, {"127.0.0.1:3"}}};
    return test::error_of([&] { const ParameterServerStrategy strategy({.cluster = cluster}); });
  };
  CHECK_THAT(error(false, ""),
             Contains("[ParameterServerStrategy] a task \"worker\" needs a secret to listen beyond "
                      "this host, at 192.0.2.1"));
  CHECK(error(true, "") == "");
  CHECK(error(false, secret) == "");
}

TEST_CASE("everyone who knows a secret makes the same certificate, and nobody else") {
  const RpcIdentity one = identity_of(secret);
  CHECK(one.certificate == identity_of(secret).certificate);
  CHECK(one.key == identity_of(secret).key);
  CHECK(one.certificate != identity_of(std::string(32, 'o')).certificate);
  CHECK_THAT(one.certificate, Contains("-----BEGIN CERTIFICATE-----"));
  CHECK_THAT(one.key, Contains("-----BEGIN PRIVATE KEY-----"));
}

TEST_CASE("seventy silent calls do not keep the coordinator from the job") {
  const JobTasks job(1, 1);
  auto tasks = job.start_all(add_nothing);
  struct Silent {
    explicit Silent(const std::string& address)
        : stub(rpc::Task::NewStub(make_channel(address))), stream(stub->Attend(&context)) {}
    ~Silent() {
      context.TryCancel();
      stream->Finish();
    }
    grpc::ClientContext context;
    std::unique_ptr<rpc::Task::Stub> stub;
    std::unique_ptr<grpc::ClientReaderWriter<rpc::CoordinatorHeartbeat, rpc::TaskHeartbeat>> stream;
  };
  // Calls that are turned away are repeated.
  std::atomic<bool> over{false};
  std::vector<std::jthread> strangers;
  for (const TaskType type : {TaskType::ps, TaskType::worker}) {
    wait_for_port(job.address(type));
    for (int i = 0; i < 70; ++i) {
      strangers.emplace_back([&over, address = job.address(type)] {
        while (!over) {
          Silent silent(address);
          rpc::TaskHeartbeat answer;
          silent.stream->Read(&answer);
          std::this_thread::sleep_for(500ms);
        }
      });
    }
  }
  std::this_thread::sleep_for(500ms);
  auto chief = job.start(TaskType::chief, 0, one_closure());
  CHECK(test::end_of(chief) == "");
  over = true;
  CHECK(test::ends_of(tasks) == "");
}

}  // namespace secret_test
