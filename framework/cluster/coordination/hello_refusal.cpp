#include <tessera/framework/cluster/coordination/hello_refusal.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>

namespace tessera::detail {

std::string refusal_of(const Hello& hello, const CoordinationOptions& options,
                       std::span<const std::optional<Peer>> present, bool own) {
  const auto refuse = [&](const std::string& expected, const std::string& received,
                          const std::string& fix) {
    return std::string(ConfigError("coordination", expected, received, fix).what());
  };
  const Peer& peer = hello.peer;
  const std::string address = address_text(options.address, options.port);
  if (!options.job.empty() && hello.job != options.job) {
    return refuse(
        str("processes that connect to ", address, " must belong to one run"),
        str("job ", in_quotes(hello.job), " of ", peer.describe(), ", another one on rank 0"),
        "give each run a port of its own");
  }
  if (hello.size != options.size) {
    return refuse("all ranks must be started with the same number of processes",
                  str(hello.size, " of ", peer.describe(), ", ", options.size, " of rank 0"),
                  "start all ranks with the same arguments");
  }
  if (hello.has_secret && options.access.secret.empty()) {
    return refuse(str("this run has no secret, and rank 0 at ", address, " cannot prove one"),
                  str(peer.describe(), " with a secret"),
                  "give all processes the same TESSERA_SECRET_FILE or TESSERA_SECRET, or none");
  }
  if (hello.encrypts != options.access.encrypt) {
    return refuse("all processes of a run encrypt what they send, or none does",
                  str(peer.describe(), hello.encrypts ? " encrypts" : " does not", ", rank 0 ",
                      options.access.encrypt ? "does" : "does not"),
                  "pass --encrypt or TESSERA_ENCRYPT=1 to all of them, or to none");
  }
  if (peer.rank < 0 || peer.rank >= options.size) {
    return refuse(str("ranks of ", options.size, " processes are 0 to ", options.size - 1),
                  peer.describe(), "number the processes from 0");
  }
  const std::optional<Peer>& registered = present[static_cast<size_t>(peer.rank)];
  if (peer.rank == 0 ? own : !registered.has_value()) return "";
  const std::string first = registered ? registered->describe() : "rank 0 of this run";
  return refuse("each rank is one process",
                str(peer.describe(), " at ", address, ", where ", first, " already is"),
                "give each process a rank of its own, and each run a port of its own");
}

}  // namespace tessera::detail
