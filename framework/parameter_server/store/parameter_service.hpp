#pragma once

#include <rpc/parameter_server.grpc.pb.h>

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/parameter_server/job/watchdog.hpp>
#include <tessera/framework/parameter_server/store/parameter_store.hpp>
#include <tessera/framework/parameter_server/store/store_client.hpp>

namespace tessera::detail {

struct ParameterServiceOptions {
  /// index of this server
  int server = 0;
  /// returns why calls of a job are rejected, in one line; empty: accepted
  std::function<std::string(const std::string& job)> check_job = {};
  /// timeout for a silent client, and for a group that the program has not added yet
  std::chrono::milliseconds patience = std::chrono::seconds(30);
};

/// gRPC service of a ParameterStore. Invalid calls change nothing and return a one-line error:
/// FAILED_PRECONDITION for another job or program, INVALID_ARGUMENT for an invalid message,
/// UNAVAILABLE for a CommError of the store's executor.
class ParameterService final : public rpc::Parameters::Service {
 public:
  ParameterService(ParameterStore& store, ParameterServiceOptions options);

  /// Adds this server's parts of a group. Throws like ParameterStore::add_group().
  void add_group(int group, const VariableGroup& definition);

  grpc::Status Define(grpc::ServerContext* context, const rpc::DefineRequest* request,
                      rpc::DefineReply* reply) override;
  grpc::Status Assign(grpc::ServerContext* context, grpc::ServerReader<rpc::Pieces>* reader,
                      rpc::StoreState* reply) override;
  grpc::Status Pull(grpc::ServerContext* context, const rpc::PullRequest* request,
                    grpc::ServerWriter<rpc::Pieces>* writer) override;
  grpc::Status Push(grpc::ServerContext* context, grpc::ServerReader<rpc::Pieces>* reader,
                    rpc::PushReply* reply) override;
  grpc::Status State(grpc::ServerContext* context, const rpc::StateRequest* request,
                     rpc::StoreState* reply) override;

 private:
  struct Texts {
    std::string parts, optimizer;
  };
  struct Received {
    rpc::Head head;
    std::vector<PartTensor> tensors;
  };
  void check(const std::string& job) const;
  Received receive(grpc::ServerContext& context, grpc::ServerReader<rpc::Pieces>& reader);
  at::Tensor empty_tensor(int group, int part, int kind) const;

  ParameterStore& store_;
  ParameterServiceOptions options_;
  mutable std::mutex mutex_;
  std::map<int, Texts> texts_;
  Watchdog watch_;
};

}  // namespace tessera::detail
