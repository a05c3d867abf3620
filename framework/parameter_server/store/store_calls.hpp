#pragma once

#include <rpc/parameter_server.grpc.pb.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/parameter_server/store/store_client.hpp>
#include <tessera/framework/parameter_server/store/tensor_stream.hpp>

namespace tessera::detail {

/// A full tensor to send to the servers; `kind` as in PartTensor.
struct Source {
  size_t variable = 0;
  int kind = 0;
  at::Tensor tensor = {};  ///< contiguous, on the host
};

/// Makes concurrent calls to parameter servers.
class StoreCalls {
 public:
  StoreCalls(const std::vector<std::shared_ptr<grpc::Channel>>& servers,
             std::vector<std::string> names, std::chrono::milliseconds patience);
  int size() const { return static_cast<int>(stubs_.size()); }

  /// Calls work(server) for each server on its own thread; throws the error of the first server in
  /// the list that failed.
  static void each(const std::vector<int>& servers, const std::function<void(int)>& work);

  using Once = std::function<grpc::Status(rpc::Parameters::Stub& stub, grpc::ClientContext&)>;
  /// Makes one call, retrying while the server has no thread for it. `bytes`: size of the transfer,
  /// which extends the deadline. Throws LostServer, or ConfigError naming the server.
  void call(int server, const char* what, int64_t bytes, const Once& once) const;

  /// Streams the rows of the sources that belong to a server's `parts`.
  template <class Writer>
  static void send(Writer& writer, rpc::Head head, const std::vector<Part>& parts,
                   const std::vector<Source>& sources) {
    head.set_bytes(bytes_to_send(parts, sources));
    PieceWriter pieces(head, [&](const rpc::Pieces& message) { return writer.Write(message); });
    add_all(pieces, parts, sources);
    // If the stream breaks, its status tells why.
    if (pieces.finish()) writer.WritesDone();
  }
  static int64_t bytes_to_send(const std::vector<Part>& parts, const std::vector<Source>& sources);

 private:
  static void add_all(PieceWriter& pieces, const std::vector<Part>& parts,
                      const std::vector<Source>& sources);
  [[noreturn]] void fail(int server, const char* what, const grpc::Status& status) const;

  std::vector<std::unique_ptr<rpc::Parameters::Stub>> stubs_;
  std::vector<std::string> names_;
  std::chrono::milliseconds patience_;
};

}  // namespace tessera::detail
