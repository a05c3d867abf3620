#include <tessera/framework/comm/internal/engine.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::vector<std::string> Engine::gather(const std::string& key, const std::string&) {
  throw StateError(name(), "an engine exchanges tensors only", "gather of " + key,
                   "ask the communicator that the engine belongs to");
}

}  // namespace tessera::detail
