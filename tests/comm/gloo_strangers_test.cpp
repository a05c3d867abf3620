#include <tessera/framework/comm/cpu/gloo_transport.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <ATen/ATen.h>

#include <filesystem>
#include <mutex>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"

namespace gloo_strangers_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns the ports on which this process listens.
std::set<uint16_t> listening_ports() {
  std::set<uint16_t> ports;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) continue;
    sockaddr_in name{};
    size = sizeof name;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size);
    if (listens == 1 && name.sin_family == AF_INET) ports.insert(ntohs(name.sin_port));
  }
  return ports;
}

/// Connects to every port on which this process listens and sends these bytes.
void attack(const std::vector<std::string>& inputs, std::vector<FileDescriptor>& connections) {
  for (const uint16_t port : listening_ports()) {
    for (const std::string& input : inputs) {
      FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in name{};
      name.sin_family = AF_INET;
      name.sin_port = htons(port);
      name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) continue;
      ::send(socket.get(), input.data(), input.size(), MSG_NOSIGNAL);
      connections.push_back(std::move(socket));
    }
  }
}

}  // namespace

TEST_CASE("unknown peers on the ports of connecting ranks neither end them nor replace them") {
  const std::string nonce(32, 'n');
  const auto hello = [&](uint64_t rank) {
    return encode_frame(FrameType::hello, BodyWriter().number(rank).text(nonce).bytes());
  };
  const std::string proof = encode_frame(FrameType::proof, std::string(32, 'p'));
  // Begins like a message of Gloo's that announces more bytes than follow.
  const std::string gloo = std::string(8, '\x7f') + std::string(1, '\1') + std::string(39, '\0');
  const std::vector<std::string> inputs = {"",
                                           gloo,
                                           std::string(100000, 'x'),
                                           "GET / HTTP/1.1\r\n\r\n",
                                           hello(2),
                                           hello(2) + proof,
                                           hello(1) + proof,
                                           hello(99),
                                           encode_frame(FrameType::hello, "short"),
                                           proof};
  const std::string secret = GENERATE("", "a secret of at least 32 characters");
  std::vector<FileDescriptor> connections;
  std::mutex mutex;
  int sums = 0;
  run_transports(
      [&](int rank, int size, const auto& gather) {
        bool first = true;
        return gloo_transport({.rank = rank,
                               .size = size,
                               .secret = secret,
                               .gather = [&, first](const std::string& text) mutable {
                                 // All ranks listen once all have gathered; none connects before.
                                 const std::vector<std::string> texts = gather(text);
                                 if (!std::exchange(first, false)) return texts;
                                 if (rank == 0) attack(inputs, connections);
                                 gather("attacked");
                                 return texts;
                               }});
      },
      3,
      [&](int, std::unique_ptr<Transport> transport) {
        const c10::InferenceMode inference;
        const auto engine = make_p2p_engine(std::move(transport));
        at::Tensor out;
        wait(engine->all_reduce(group_of({0, 1, 2}, engine->rank()), Reduce::sum,
                                {at::full({100000}, engine->rank() + 1.)}, out));
        const std::lock_guard lock(mutex);
        if (out.min().item<double>() == 6 && out.max().item<double>() == 6) ++sums;
      });
  CHECK(sums == 3);
  CHECK(connections.size() >= 2 * inputs.size());
  // No port is listened on any more.
  CHECK(listening_ports().empty());
}

TEST_CASE("a rank with another secret is refused and named") {
  std::vector<std::string> errors(2);
  try {
    run_transports(
        [&](int rank, int size, const auto& gather) {
          try {
            return gloo_transport({.rank = rank,
                                   .size = size,
                                   .secret = std::string(32, static_cast<char>('a' + rank)),
                                   .timeout = std::chrono::milliseconds(500),
                                   .gather = gather});
          } catch (const CommError& error) {
            errors[static_cast<size_t>(rank)] = error.what();
            throw;
          }
        },
        2, [](int, const std::unique_ptr<Transport>&) {});
    FAIL("the ranks are connected");
  } catch (const CommError&) {
  }
  CHECK_THAT(errors[0], Catch::Contains("[gloo] rank 0 connects with rank 1. Received: it did not "
                                        "come"));
  CHECK_THAT(errors[1], Catch::Contains("[gloo] rank 1 connects with rank 0. Received: no proof "
                                        "from 127.0.0.1:") &&
                            Catch::Contains("that it is of this run"));
}

}  // namespace gloo_strangers_test
