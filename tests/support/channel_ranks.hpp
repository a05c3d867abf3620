#pragma once

#include <tessera/framework/comm/cpu/transport.hpp>
#include <tessera/framework/comm/internal/engine.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tessera::test {

using namespace detail;

using Owners = std::vector<int>;

/// Returns the group of members that these ranks own, as `rank` sees it.
Group group_of(const Owners& owner, int rank);

/// Returns once every rank has called it.
void meet(Engine& engine);

/// Creates the transport between the ranks of a test.
using MakeTransport = std::function<std::unique_ptr<Transport>(
    int rank, int size, const std::function<std::vector<std::string>(const std::string&)>& gather)>;

/// The transports between CPU processes, by name.
const std::vector<std::pair<std::string, MakeTransport>>& transport_kinds();

/// Runs `function` on `ranks` threads, each with its own transport to the others. Rethrows the
/// error of the lowest rank. Catch2's assertions are for one thread: use expect() inside.
void run_transports(const MakeTransport& make, int ranks,
                    const std::function<void(int rank, std::unique_ptr<Transport>)>& function);

/// Runs `function` like run_transports(), with an engine over the transport, under InferenceMode.
void run_engines(const MakeTransport& make, int ranks,
                 const std::function<void(int rank, const std::shared_ptr<Engine>&)>& function);

}  // namespace tessera::test
