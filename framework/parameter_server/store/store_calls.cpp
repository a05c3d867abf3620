#include <tessera/framework/parameter_server/store/store_calls.hpp>

#include <algorithm>
#include <exception>
#include <thread>

#include <grpcpp/channel.h>

#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

/// Throughput that even a slow network reaches.
constexpr int64_t bytes_per_second = 10 << 20;

/// Whether a status is the server's permanent answer, so that a retry is useless.
bool is_refusal(grpc::StatusCode code) {
  return code == grpc::StatusCode::INVALID_ARGUMENT ||
         code == grpc::StatusCode::FAILED_PRECONDITION ||
         code == grpc::StatusCode::RESOURCE_EXHAUSTED || code == grpc::StatusCode::UNIMPLEMENTED;
}

/// Calls visit(bytes of the rows, part, kind) for every source of every part.
template <class Visit>
void each_part(const std::vector<Part>& parts, const std::vector<Source>& sources,
               const Visit& visit) {
  for (const Part& part : parts) {
    const auto [first, last] =
        std::equal_range(sources.begin(), sources.end(), Source{part.variable},
                         [](const Source& a, const Source& b) { return a.variable < b.variable; });
    for (auto source = first; source != last; ++source) {
      if (!visit(bytes_of(source->tensor, part), part, source->kind)) return;
    }
  }
}

}  // namespace

StoreCalls::StoreCalls(const std::vector<std::shared_ptr<grpc::Channel>>& servers,
                       std::vector<std::string> names, std::chrono::milliseconds patience)
    : names_(std::move(names)), patience_(patience) {
  for (const auto& channel : servers) stubs_.push_back(rpc::Parameters::NewStub(channel));
}

void StoreCalls::each(const std::vector<int>& servers, const std::function<void(int)>& work) {
  std::vector<std::exception_ptr> errors(servers.size());
  const auto guarded = [&](size_t i) {
    try {
      work(servers[i]);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < servers.size(); ++i) others.emplace_back(guarded, i);
    if (!servers.empty()) guarded(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void StoreCalls::call(int server, const char* what, int64_t bytes, const Once& once) const {
  const auto end = steady_clock::now() + patience_ + 1s * (bytes / bytes_per_second);
  for (auto pause = 5ms;; pause = std::min(2 * pause, 200ms)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + (end - steady_clock::now()));
    const grpc::Status status = once(*stubs_[static_cast<size_t>(server)], context);
    if (status.ok()) return;
    const bool busy = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    if (!busy || steady_clock::now() + pause > end) fail(server, what, status);
    std::this_thread::sleep_for(pause);
  }
}

void StoreCalls::fail(int server, const char* what, const grpc::Status& status) const {
  const std::string& name = names_[static_cast<size_t>(server)];
  const std::string message = one_line(status.error_message(), 1000);
  if (is_refusal(status.error_code())) {
    const bool placed = !message.empty() && message[0] == '[';
    throw ConfigError(placed ? str("[", name, ", ", message.substr(1))
                             : str("[", name, "] ", what, " was refused: ", message));
  }
  const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  const std::string received = late ? str("no answer to ", what, " within ",
                                          static_cast<double>(patience_.count()) / 1000, " s")
                                    : str(what, " ended with: ", message);
  throw LostServer(server, CommError(name, "parameter servers answer", received,
                                     "start all tasks of the job again; the last checkpoint "
                                     "stays")
                               .what());
}

int64_t StoreCalls::bytes_to_send(const std::vector<Part>& parts,
                                  const std::vector<Source>& sources) {
  int64_t bytes = 0;
  each_part(parts, sources, [&](std::span<const std::byte> tensor, const Part&, int) {
    bytes += static_cast<int64_t>(tensor.size());
    return true;
  });
  return bytes;
}

void StoreCalls::add_all(PieceWriter& pieces, const std::vector<Part>& parts,
                         const std::vector<Source>& sources) {
  each_part(parts, sources, [&](std::span<const std::byte> tensor, const Part& part, int kind) {
    return pieces.add(part.number, kind, tensor);
  });
}

}  // namespace tessera::detail
