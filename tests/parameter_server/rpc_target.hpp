#pragma once

#include <rpc/parameter_server.grpc.pb.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/parameter_server/store_servers.hpp"
#include "tests/support/catch.hpp"

namespace tessera::test {

using namespace detail;

/// A group of two parts: 0 of 16 bytes, trained; 1 of 8 bytes, not trained.
inline detail::VariableGroup two_parts() {
  detail::VariableGroup made;
  made.variables = {placed("w", at::zeros({4})), placed("n", at::zeros({2}), false)};
  made.optimizer = SGD(1.0);
  made.plan = plan_parts(made.variables, {}, 1);
  return made;
}

inline rpc::Head head(int64_t bytes) {
  rpc::Head made;
  made.set_job("job");
  made.set_bytes(bytes);
  made.set_step(true);
  made.mutable_push()->set_closure(1);
  made.mutable_state()->set_steps(-1);
  return made;
}

inline void add(rpc::Pieces& message, int part, int kind, int64_t offset, size_t size) {
  rpc::Piece& piece = *message.add_pieces();
  piece.set_part(part);
  piece.set_kind(kind);
  piece.set_offset(offset);
  piece.set_data(std::string(size, '\1'));
}

/// A server and a client's stub for it.
struct RpcTarget {
  explicit RpcTarget(std::chrono::milliseconds patience = 20s)
      : server(0, two_parts(), patience), stub(rpc::Parameters::NewStub(server.channel())) {}

  using Messages = std::vector<rpc::Pieces>;
  static void limit(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + 30s);
  }
  grpc::Status push(const Messages& messages, bool ends = true) {
    grpc::ClientContext context;
    limit(context);
    rpc::PushReply reply;
    const auto writer = stub->Push(&context, &reply);
    for (const rpc::Pieces& message : messages) {
      if (!writer->Write(message)) break;
    }
    if (ends) writer->WritesDone();
    return writer->Finish();
  }
  grpc::Status assign(const Messages& messages) {
    grpc::ClientContext context;
    limit(context);
    rpc::StoreState reply;
    const auto writer = stub->Assign(&context, &reply);
    for (const rpc::Pieces& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  rpc::StoreState state() {
    grpc::ClientContext context;
    limit(context);
    rpc::StateRequest request;
    request.set_job("job");
    rpc::StoreState reply;
    CHECK(stub->State(&context, request, &reply).ok());
    return reply;
  }
  StoreServer server;
  std::unique_ptr<rpc::Parameters::Stub> stub;
};

/// A push of all of part 0.
inline rpc::Pieces good_push() {
  rpc::Pieces message;
  *message.mutable_head() = head(16);
  add(message, 0, 0, 0, 16);
  return message;
}

/// Checks that a refusal is one line with this code.
inline void check_line(const grpc::Status& status, grpc::StatusCode code) {
  CHECK(status.error_code() == code);
  CHECK_FALSE(status.error_message().empty());
  CHECK_THAT(status.error_message(), !Catch::Matchers::Contains("\n"));
}

}  // namespace tessera::test
