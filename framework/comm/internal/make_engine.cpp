#include <tessera/framework/comm/internal/make_engine.hpp>

#include <algorithm>
#include <chrono>

#include <tessera/framework/comm/cpu/gloo_transport.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>
#include <tessera/framework/comm/cpu/shared_memory_transport.hpp>
#include <tessera/framework/comm/nccl/nccl_engine.hpp>

namespace tessera::detail {
namespace {

/// All ranks are there when they connect: one that does not answer is not to come.
constexpr std::chrono::milliseconds max_for_a_connection = std::chrono::seconds(10);

}  // namespace

std::shared_ptr<Engine> make_engine(const std::shared_ptr<Coordination>& control,
                                    const DistributedOptions& options,
                                    const std::string& secret, Device first) {
  const int rank = control->rank(), size = control->size();
  if (options.device_type == Device::Type::cuda) {
    const auto gather = [control](const std::string& key, const std::string& text) {
      return control->gather(key, text);
    };
    return make_nccl_engine({.rank = rank, .size = size, .device = first.index, .gather = gather});
  }
  const auto gather_as = [control](const std::string& key) {
    return [=](const std::string& text) { return control->gather(key, text); };
  };
  const auto gloo = [=] {
    const std::string& address = control->peers()[static_cast<size_t>(rank)].address;
    return gloo_transport({.rank = rank,
                         .size = size,
                         .address = address,
                         .secret = secret,
                         .timeout = std::min(options.connect_timeout, max_for_a_connection),
                         .gather = gather_as("gloo")});
  };
  if (!options.shared_memory) return channel_engine(gloo());
  return channel_engine(shared_memory_transport(
      {.rank = rank, .size = size, .gather = gather_as("shared memory"), .other = gloo}));
}

}  // namespace tessera::detail
