#include <tessera/framework/comm/internal/make_engine.hpp>

#include <algorithm>
#include <chrono>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/cpu/gloo_transport.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>
#include <tessera/framework/comm/cpu/shared_memory_transport.hpp>
#include <tessera/framework/comm/internal/split_engine.hpp>
#include <tessera/framework/comm/nccl/nccl_engine.hpp>

namespace tessera::detail {
namespace {

/// All ranks have joined the coordination before they connect, so one that does not answer in this
/// time never will.
constexpr std::chrono::milliseconds max_peer_connect_time = std::chrono::seconds(10);

}  // namespace

std::shared_ptr<Engine> make_engine(const std::shared_ptr<Coordination>& coordination,
                                    const DistributedOptions& options, const std::string& secret,
                                    Device first) {
  const int rank = coordination->rank(), size = coordination->size();
  const auto gather_as = [coordination](const std::string& key) {
    return [=](const std::string& text) { return coordination->gather(key, text); };
  };
  const auto gloo = [=] {
    const std::string& address = coordination->peers()[static_cast<size_t>(rank)].address;
    return gloo_transport({.rank = rank,
                           .size = size,
                           .address = address,
                           .secret = secret,
                           .timeout = std::min(options.connect_timeout, max_peer_connect_time),
                           .gather = gather_as("gloo")});
  };
  const std::shared_ptr<Engine> host = make_p2p_engine(
      options.shared_memory
          ? shared_memory_transport(
                {.rank = rank, .size = size, .gather = gather_as("shared memory"), .other = gloo})
          : gloo());
  if (first.type == Device::Type::cpu) return host;
  const auto gather = [coordination](const std::string& key, const std::string& text) {
    return coordination->gather(key, text);
  };
  const auto on_error = [coordination](const std::string& error) {
    coordination->abort(str("rank ", coordination->rank(), ": ", one_line(error)));
  };
  return split_engine(host, make_nccl_engine({.rank = rank,
                                              .size = size,
                                              .device = first.index,
                                              .gather = gather,
                                              .on_error = on_error}));
}

}  // namespace tessera::detail
