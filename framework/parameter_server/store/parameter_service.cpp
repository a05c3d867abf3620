#include <tessera/framework/parameter_server/store/parameter_service.hpp>

#include <algorithm>
#include <exception>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/job/max_line_bytes.hpp>
#include <tessera/framework/parameter_server/store/tensor_stream.hpp>

namespace tessera::detail {

namespace {

/// Thrown for calls of another job or program.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown if the client disconnected or timed out.
struct Gone : std::runtime_error {
  using std::runtime_error::runtime_error;
};

grpc::Status status_of(grpc::StatusCode code, const std::exception& error) {
  return {code, one_line(error.what(), max_line_bytes)};
}

/// Runs a call and converts exceptions to a status, as none may leave a handler.
template <class Work>
grpc::Status answer(const Work& work) {
  try {
    work();
    return grpc::Status::OK;
  } catch (const Refusal& error) {
    return status_of(grpc::StatusCode::FAILED_PRECONDITION, error);
  } catch (const Gone& error) {
    return status_of(grpc::StatusCode::CANCELLED, error);
  } catch (const ConfigError& error) {
    return status_of(grpc::StatusCode::INVALID_ARGUMENT, error);
  } catch (const ShapeError& error) {
    return status_of(grpc::StatusCode::INVALID_ARGUMENT, error);
  } catch (const CommError& error) {
    return status_of(grpc::StatusCode::UNAVAILABLE, error);
  } catch (const std::exception& error) {
    return status_of(grpc::StatusCode::INTERNAL, error);
  }
}

/// Returns the first entries in which two texts differ, quoted.
std::pair<std::string, std::string> difference(const std::string& here, const std::string& there) {
  const auto [h, t] = std::mismatch(here.begin(), here.end(), there.begin(), there.end());
  const auto entry = [](const std::string& text, std::string::const_iterator at) {
    const auto position = static_cast<size_t>(at - text.begin());
    const size_t before = position == 0 ? std::string::npos : text.rfind("; ", position - 1);
    const size_t first = before == std::string::npos ? 0 : before + 2;
    return in_quotes(text.substr(first, text.find("; ", position) - first), 200);
  };
  return {entry(here, h), entry(there, t)};
}

void check_same(const char* what, const std::string& here, const std::string& there) {
  if (here == there) return;
  const auto [own, other] = difference(here, there);
  throw Refusal(ConfigError(what, str("must be equal on all tasks, ", own, " as on this server"),
                            other, "run the same program with the same options on all tasks")
                    .what());
}

[[noreturn]] void fail_head(const char* received) {
  throw ConfigError("head", "must be in the first message of a stream and no other", received,
                    "send it first");
}

PushId id_of(const rpc::PushId& id) { return {id.closure(), id.number(), id.done_below()}; }

}  // namespace

ParameterService::ParameterService(ParameterStore& store, ParameterServiceOptions options)
    : store_(store), options_(std::move(options)) {}

void ParameterService::add_group(int group, const VariableGroup& definition) {
  {
    // Stored before the group is added, which Define() waits for.
    const std::lock_guard lock(mutex_);
    texts_.try_emplace(group,
                       Texts{definition.plan.describe(), describe_optimizer(definition.optimizer)});
  }
  store_.add_group(group, definition.variables, definition.plan.of_server(options_.server),
                   definition.optimizer);
}

void ParameterService::check(const std::string& job) const {
  const std::string wrong = options_.check_job ? options_.check_job(job) : std::string();
  if (!wrong.empty()) throw Refusal(wrong);
}

grpc::Status ParameterService::Define(grpc::ServerContext* context,
                                      const rpc::DefineRequest* request, rpc::DefineReply*) {
  return answer([&] {
    check(request->job());
    const auto end = std::chrono::steady_clock::now() + options_.patience;
    while (!store_.wait_for_group(request->group(), std::chrono::milliseconds(50))) {
      if (context->IsCancelled()) throw Gone("the client is gone");
      if (std::chrono::steady_clock::now() < end) continue;
      throw Refusal(ConfigError("group", "all tasks make the same groups of variables",
                                str("none of number ", request->group(), " here"),
                                "run the same program on all tasks")
                        .what());
    }
    const std::lock_guard lock(mutex_);
    const Texts& own = texts_.at(request->group());
    check_same("variables", own.parts, request->parts());
    check_same("optimizer", own.optimizer, request->optimizer());
  });
}

at::Tensor ParameterService::empty_tensor(int group, int part, int kind) const {
  const auto [shape, dtype] = store_.tensor_spec(group, part, kind);
  return at::empty(shape, at::TensorOptions().dtype(dtype));
}

/// Reads a client's stream; throws unless it is complete.
ParameterService::Received ParameterService::receive(grpc::ServerContext& context,
                                                     grpc::ServerReader<rpc::Pieces>& reader) {
  Watchdog::Call call(watch_, options_.patience, [&] { context.TryCancel(); });
  Received received;
  PieceReader pieces([&](int part, int kind) {
    received.tensors.push_back({part, kind, empty_tensor(received.head.group(), part, kind)});
    return bytes_of(received.tensors.back().tensor);
  });
  rpc::Pieces message;
  bool first = true;
  for (; reader.Read(&message); first = false) {
    call.reset_deadline();
    if (message.has_head() != first) fail_head(first ? "none there" : "one in a later message");
    if (first) {
      check(message.head().job());
      received.head = message.head();
      store_.state(received.head.group());
    }
    pieces.take(message);
  }
  if (context.IsCancelled()) throw Gone("the stream ended early");
  if (first) fail_head("no message");
  pieces.finish(received.head.bytes());
  return received;
}

grpc::Status ParameterService::Assign(grpc::ServerContext* context,
                                      grpc::ServerReader<rpc::Pieces>* reader,
                                      rpc::StoreState* reply) {
  return answer([&] {
    const Received received = receive(*context, *reader);
    const rpc::Head& head = received.head;
    std::optional<double> rate;
    if (head.has_learning_rate()) rate = head.learning_rate();
    *reply = to_message(store_.assign(head.group(), received.tensors, head.state().steps(), rate));
  });
}

grpc::Status ParameterService::Push(grpc::ServerContext* context,
                                    grpc::ServerReader<rpc::Pieces>* reader,
                                    rpc::PushReply* reply) {
  return answer([&] {
    const Received received = receive(*context, *reader);
    const rpc::Head& head = received.head;
    const auto [state, repeated] =
        store_.push(head.group(), id_of(head.push()), head.step(), received.tensors);
    *reply->mutable_state() = to_message(state);
    reply->set_repeated_push(repeated);
  });
}

grpc::Status ParameterService::Pull(grpc::ServerContext* context, const rpc::PullRequest* request,
                                    grpc::ServerWriter<rpc::Pieces>* writer) {
  return answer([&] {
    check(request->job());
    Watchdog::Call call(watch_, options_.patience, [&] { context->TryCancel(); });
    auto [state, tensors] =
        store_.pull(request->group(), request->known_version(), request->slots());
    rpc::Head head;
    *head.mutable_state() = to_message(state);
    for (const PartTensor& tensor : tensors) {
      head.set_bytes(head.bytes() + static_cast<int64_t>(tensor.tensor.nbytes()));
    }
    PieceWriter pieces(head, [&](const rpc::Pieces& message) {
      call.reset_deadline();
      return writer->Write(message);
    });
    for (PartTensor& tensor : tensors) {
      if (!pieces.add(tensor.part, tensor.kind, bytes_of(tensor.tensor))) break;
      // Released early: the store updates unshared tensors in place.
      tensor.tensor = at::Tensor();
    }
    if (!pieces.finish()) throw Gone("the client is gone");
  });
}

grpc::Status ParameterService::State(grpc::ServerContext*, const rpc::StateRequest* request,
                                     rpc::StoreState* reply) {
  return answer([&] {
    check(request->job());
    *reply = to_message(store_.state(request->group()));
  });
}

}  // namespace tessera::detail
