#include <tessera/framework/comm/internal/make_engine.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

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

/// Throws ConfigError if GPUs of several hosts would exchange tensors: NCCL does not encrypt them.
void check_encrypted_gpus(const std::vector<Peer>& peers) {
  std::set<std::string> hosts;
  for (const Peer& peer : peers) hosts.insert(peer.host);
  if (hosts.size() == 1) return;
  throw ConfigError("create_distributed_mesh",
                    "a run that encrypts its traffic has its GPUs on one host, as NCCL encrypts "
                    "nothing",
                    str("GPUs of ", hosts.size(), " hosts"),
                    "use CPUs (--device cpu), or leave out --encrypt and TESSERA_ENCRYPT and "
                    "connect the hosts by an encrypted network, such as WireGuard");
}

}  // namespace

std::shared_ptr<Engine> make_engine(const std::shared_ptr<Coordination>& coordination,
                                    const DistributedOptions& options, const JobAccess& access,
                                    Device first) {
  const bool uses_gpus = first.type != Device::Type::cpu;
  if (access.encrypt && uses_gpus) check_encrypted_gpus(coordination->peers());
  const int rank = coordination->rank(), size = coordination->size();
  const auto gather_as = [coordination](const std::string& key) {
    return [=](const std::string& text) { return coordination->gather(key, text); };
  };
  const auto gloo = [=] {
    const std::string& address = coordination->peers()[static_cast<size_t>(rank)].address;
    return gloo_transport({.rank = rank,
                           .size = size,
                           .address = address,
                           .secret = access.secret,
                           .encrypt = access.encrypt,
                           .timeout = std::min(options.connect_timeout, max_peer_connect_time),
                           .gather = gather_as("gloo")});
  };
  const std::shared_ptr<Engine> host = make_p2p_engine(
      options.shared_memory
          ? shared_memory_transport(
                {.rank = rank, .size = size, .gather = gather_as("shared memory"), .other = gloo})
          : gloo());
  if (!uses_gpus) return host;
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
