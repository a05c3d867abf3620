#include <tessera/framework/graph/graph_ends.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

GraphEnds::GraphEnds(const std::map<std::string, SymbolicTensor>& by_key) {
  for (const auto& [key, tensor] : by_key) {
    keys.push_back(key);
    tensors.push_back(tensor);
  }
}

GraphEnds::GraphEnds(std::initializer_list<std::pair<std::string, SymbolicTensor>> by_key)
    : GraphEnds(std::map<std::string, SymbolicTensor>(by_key.begin(), by_key.end())) {
  if (keys.size() == by_key.size()) return;
  throw ConfigError("Functional", "keys of inputs and of outputs differ", "a key twice",
                    "rename one of them");
}

}  // namespace tessera::detail
