#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/parameter_server/store/parameter_service.hpp>
#include <tessera/framework/parameter_server/store/store_client.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

namespace tessera::test {

using namespace detail;

using namespace std::chrono_literals;

inline grpc::ChannelArguments local_channel() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

/// A parameter server on this machine for the job "job", and its store.
struct StoreServer {
  StoreServer(int index, const detail::VariableGroup& group,
              std::chrono::milliseconds patience = 20s, detail::Executor executor = {})
      : store(std::move(executor)),
        service(store, {index,
                        [](const std::string& job) {
                          return std::string(job == "job" ? "" : "[job] another one");
                        },
                        patience}) {
    service.add_group(0, group);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(64 << 20);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
  }
  ~StoreServer() { server->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return str("127.0.0.1:", port); }
  std::shared_ptr<grpc::Channel> channel() const {
    return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(),
                                     local_channel());
  }

  detail::ParameterStore store;
  detail::ParameterService service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

/// Parameter servers, each with its own copy of the group, as the program makes it on every task.
class StoreServers {
 public:
  using MakeGroup = std::function<detail::VariableGroup()>;
  StoreServers(int count, const MakeGroup& make_group) {
    for (int i = 0; i < count; ++i) {
      servers_.push_back(std::make_unique<StoreServer>(i, make_group()));
    }
  }
  StoreServer& operator[](int index) { return *servers_[static_cast<size_t>(index)]; }
  detail::StoreClient client(const std::string& job = "job",
                             std::chrono::milliseconds patience = 20s) {
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    std::vector<std::string> names;
    for (size_t i = 0; i < servers_.size(); ++i) {
      channels.push_back(servers_[i]->channel());
      names.push_back(str("ps ", i, " (", servers_[i]->address(), ")"));
    }
    return detail::StoreClient(job, channels, names, patience);
  }

 private:
  std::vector<std::unique_ptr<StoreServer>> servers_;
};

/// A variable with this full value, on a mesh of one device.
inline Variable placed(const std::string& path, const at::Tensor& full, bool trainable = true) {
  const Mesh mesh = create_mesh({{"batch", 1}});
  return Variable(path, pack(full.clone(), Layout::replicated(mesh, full.dim())), trainable);
}

/// Four numbers trained by SGD with a rate of 1, and two that are not trained, in one part on each
/// server.
inline detail::VariableGroup small_group(int servers) {
  detail::VariableGroup group;
  group.variables = {placed("w", at::zeros({4})), placed("n", at::zeros({2}), false)};
  group.optimizer = SGD(1.0);
  group.plan = plan_parts(group.variables, strategy::FixedShardsPartitioner(servers), servers);
  return group;
}

/// The first number.
inline double first(const detail::VariableGroup& group) {
  return group.variables[0].value().full()[0].item<double>();
}

}  // namespace tessera::test
