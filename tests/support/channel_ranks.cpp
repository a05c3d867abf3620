#include "tests/support/channel_ranks.hpp"

#include <tessera/framework/comm/cpu/gloo_transport.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>
#include <tessera/framework/comm/cpu/shared_memory_transport.hpp>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <exception>
#include <thread>

#include "tests/support/rendezvous.hpp"

namespace tessera::test {

using namespace detail;

namespace {

using Gather = std::function<std::vector<std::string>(const std::string&)>;

std::unique_ptr<Transport> make_gloo(int rank, int size, const Gather& gather) {
  return gloo_transport({.rank = rank, .size = size, .gather = gather});
}

std::unique_ptr<Transport> make_encrypted(int rank, int size, const Gather& gather) {
  return gloo_transport({.rank = rank,
                         .size = size,
                         .secret = std::string(32, 's'),
                         .encrypt = true,
                         .gather = gather});
}

std::unique_ptr<Transport> make_shared_memory(int rank, int size, const Gather& gather) {
  return shared_memory_transport({rank, size, gather, nullptr});
}

/// A transport in which even and odd ranks cannot reach each other's memory.
std::unique_ptr<Transport> make_mixed(int rank, int size, const Gather& gather) {
  const Gather apart = [rank, gather](const std::string& text) {
    std::vector<std::string> texts = gather(text);
    for (size_t r = 0; r < texts.size(); ++r) {
      const bool offer = texts[r].find(' ') != std::string::npos;
      if (offer && (r + static_cast<size_t>(rank)) % 2) texts[r] = "0 -1 0";
    }
    return texts;
  };
  return shared_memory_transport(
      {rank, size, apart, [=] { return make_gloo(rank, size, gather); }});
}

}  // namespace

Group group_of(const Owners& owner, int rank) {
  Group group{{0}, owner, {}};
  for (int64_t m = 0; m < group.size(); ++m) {
    if (owner[static_cast<size_t>(m)] == rank) group.local.push_back(m);
  }
  return group;
}

void meet(Engine& engine) {
  Owners everyone;
  for (int r = 0; r < engine.size(); ++r) everyone.push_back(r);
  at::Tensor out;
  wait(engine.all_reduce(group_of(everyone, engine.rank()), Reduce::sum, {at::ones({1})}, out));
}

const std::vector<std::pair<std::string, MakeTransport>>& transport_kinds() {
  static const std::vector<std::pair<std::string, MakeTransport>> kinds = {
      {"gloo", make_gloo},
      {"gloo, encrypted", make_encrypted},
      {"shared memory", make_shared_memory},
      {"mixed", make_mixed}};
  return kinds;
}

void run_transports(const MakeTransport& make, int ranks,
                    const std::function<void(int rank, std::unique_ptr<Transport>)>& function) {
  Rendezvous hub(ranks, std::chrono::seconds(30));
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        function(r, make(r, ranks, [&](const std::string& text) {
                   return hub.gather(r, "addresses", text);
                 }));
      } catch (...) {
        errors[static_cast<size_t>(r)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void run_engines(const MakeTransport& make, int ranks,
                 const std::function<void(int rank, const std::shared_ptr<Engine>&)>& function) {
  run_transports(make, ranks, [&](int rank, std::unique_ptr<Transport> transport) {
    const c10::InferenceMode inference;
    const std::shared_ptr<Engine> engine = make_p2p_engine(std::move(transport));
    try {
      function(rank, engine);
    } catch (const std::exception& error) {
      engine->abort("rank " + std::to_string(rank) + " failed: " + error.what());
      throw;
    }
  });
}

}  // namespace tessera::test
