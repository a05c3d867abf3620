#include <tessera/framework/comm/cpu/gloo_transport.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/wire_proxy.hpp"

namespace gloo_encryption_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace std::chrono_literals;

namespace {

const std::string secret(32, 's');

/// A change that an attacker between the ranks makes to the bytes of all connections.
using Attack = std::function<std::string(std::string bytes)>;

/// Returns a transport over Gloo whose higher ranks connect through an attacker.
MakeTransport through(const Attack& attack, bool encrypts, std::list<WireProxy>& proxies,
                      std::mutex& mutex) {
  return [=, &proxies, &mutex](int rank, int size, const auto& gather) {
    // The endpoints of the lower ranks are replaced by the attacker's.
    const auto gather_changed = [=, &proxies, &mutex,
                                 first = true](const std::string& text) mutable {
      std::vector<std::string> texts = gather(text);
      if (!std::exchange(first, false)) return texts;
      for (int low = 0; low < rank; ++low) {
        BodyReader endpoint(texts[static_cast<size_t>(low)]);
        const std::string address = endpoint.text();
        const int port = static_cast<int>(endpoint.number());
        const std::string nonce = endpoint.text();
        const std::lock_guard lock(mutex);
        const WireEdit edit = [attack](std::string_view bytes) {
          return attack(std::string(bytes));
        };
        WireProxy& proxy = proxies.emplace_back(port, [edit] {
          return WireProxy::Edits{edit, edit};
        });
        texts[static_cast<size_t>(low)] = BodyWriter()
                                              .text(address)
                                              .number(static_cast<uint64_t>(proxy.port()))
                                              .text(nonce)
                                              .bytes();
      }
      return texts;
    };
    return gloo_transport({.rank = rank,
                           .size = size,
                           .secret = secret,
                           .encrypt = encrypts,
                           .gather = gather_changed});
  };
}

}  // namespace

TEST_CASE("encrypted messages of any size arrive as they were sent") {
  const auto make = [](int rank, int size, const auto& gather) {
    return gloo_transport(
        {.rank = rank, .size = size, .secret = secret, .encrypt = true, .gather = gather});
  };
  std::atomic<int> sums = 0;
  run_engines(make, 3, [&](int rank, const std::shared_ptr<Engine>& engine) {
    for (const int64_t count : {1, 3, 16379, 16380, 16384, 100000, 1000000}) {
      at::Tensor out;
      wait(engine->all_reduce(group_of({0, 1, 2}, rank), Reduce::sum,
                              {at::arange(count, at::kDouble) * (rank + 1)}, out));
      if (at::equal(out, at::arange(count, at::kDouble) * 6)) ++sums;
    }
    engine->flush();
  });
  CHECK(sums == 3 * 7);
}

TEST_CASE("the last messages arrive although their sender leaves at once") {
  const auto make = [](int rank, int size, const auto& gather) {
    return gloo_transport(
        {.rank = rank, .size = size, .secret = secret, .encrypt = true, .gather = gather});
  };
  std::vector<float> received(2000000);
  run_transports(make, 2, [&](int rank, const std::unique_ptr<Transport>& transport) {
    const size_t bytes = received.size() * sizeof(float);
    if (rank == 1) return transport->recv(0, 7, received.data(), bytes)->wait();
    const std::vector<float> sent(received.size(), 3.5f);
    transport->send(1, 7, sent.data(), bytes)->wait();
    transport->flush();
  });
  CHECK(received == std::vector<float>(received.size(), 3.5f));
}

TEST_CASE("numbers are readable on the wire unless messages are encrypted") {
  const auto found = [](bool encrypts) {
    std::mutex mutex;
    std::string wire;
    const Attack record = [&](std::string bytes) {
      const std::lock_guard lock(mutex);
      wire += bytes;
      return bytes;
    };
    std::mutex proxies_mutex;
    std::list<WireProxy> proxies;
    run_engines(through(record, encrypts, proxies, proxies_mutex), 2,
                [](int rank, const std::shared_ptr<Engine>& engine) {
                  GatheredValue value = {0, {1000, 1000}, {at::full({1000}, 1234.5, at::kDouble)}};
                  wait(engine->all_gather(group_of({0, 1}, rank), std::span(&value, 1)));
                  expect(value.out.numel() == 2000, "all elements arrive");
                });
    proxies.clear();
    CHECK(wire.size() > 16000);
    const double number = 1234.5;
    return wire.find(std::string(reinterpret_cast<const char*>(&number), sizeof number)) !=
           wire.npos;
  };
  CHECK(found(false));
  CHECK_FALSE(found(true));
}

TEST_CASE("an encrypted message that was changed on the way is refused, and its sender named") {
  const std::vector<std::pair<std::string, Attack>> attacks = {
      {"changed",
       [](std::string bytes) {
         bytes.back() = static_cast<char>(bytes.back() ^ 1);
         return bytes;
       }},
      {"repeated", [](const std::string& bytes) { return bytes + bytes; }},
      {"left out", [](const std::string& bytes) { return bytes.substr(bytes.size() / 2); }},
      {"added", [](const std::string& bytes) { return std::string(64, '\1') + bytes; }}};
  for (const auto& [name, attack] : attacks) {
    INFO(name);
    std::atomic<bool> attacks_now{false};
    const Attack later = [&attacks_now, &change = attack](std::string bytes) {
      return attacks_now.exchange(false) ? change(bytes) : bytes;
    };
    std::vector<std::string> errors(2);
    std::vector<std::shared_ptr<Engine>> engines(2);
    std::mutex mutex;
    std::condition_variable failed;
    std::list<WireProxy> proxies;
    run_engines(through(later, true, proxies, mutex), 2,
                [&](int rank, const std::shared_ptr<Engine>& engine) {
                  {
                    const std::lock_guard lock(mutex);
                    engines[static_cast<size_t>(rank)] = engine;
                  }
                  try {
                    for (int i = 0; i < 20; ++i) {
                      meet(*engine);
                      if (rank == 0 && i == 0) attacks_now = true;
                    }
                  } catch (const CommError& error) {
                    std::unique_lock lock(mutex);
                    const auto other = static_cast<size_t>(1 - rank);
                    errors[static_cast<size_t>(rank)] = error.what();
                    failed.notify_all();
                    // As the coordination does: ends the other rank, but gives it time to say why.
                    const bool knows_why =
                        errors[static_cast<size_t>(rank)].find("was changed") != std::string::npos;
                    if (!knows_why) {
                      failed.wait_for(lock, 10s, [&] { return !errors[other].empty(); });
                    }
                    engines[other]->abort("rank failed");
                  }
                });
    engines.clear();
    proxies.clear();
    // The receiver of the changed bytes names the sender; the other loses its connection, or is
    // aborted.
    const std::string first =
        "[gloo] messages arrive as they were sent. Received: one of rank 1 was changed";
    const std::string second =
        "[gloo] messages arrive as they were sent. Received: one of rank 0 was changed";
    INFO(errors[0] << "\n" << errors[1]);
    CHECK((errors[0].find(first) != std::string::npos ||
           errors[1].find(second) != std::string::npos));
    CHECK_FALSE(errors[0].empty());
    CHECK_FALSE(errors[1].empty());
  }
}

}  // namespace gloo_encryption_test
