#include <tessera/framework/cluster/coordination/coordination.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/coordination/coordination_client.hpp>

namespace tessera::detail {

std::string Peer::describe() const { return str("rank ", rank, " (pid ", pid, " on ", host, ")"); }

std::shared_ptr<Coordination> Coordination::join(const CoordinationOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    throw ConfigError("coordination", "rank must be at least 0 and below the number of processes",
                      str("rank ", options.rank, " of ", options.size),
                      "number the processes from 0");
  }
  if (options.size > 1 && (options.port < 1 || options.port > 65535)) {
    throw ConfigError("coordination", "the port of rank 0 must be between 1 and 65535",
                      str(options.port), "give all ranks the same port of rank 0's host");
  }
  if (options.size > 1) check_access("coordination", "rank 0", options.address, options.access);
  return std::make_shared<CoordinationClient>(options);
}

}  // namespace tessera::detail
