#include <tessera/framework/graph/symbolic_tensors.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

SymbolicTensors::SymbolicTensors(const std::map<std::string, SymbolicTensor>& by_key) {
  for (const auto& [key, tensor] : by_key) {
    keys.push_back(key);
    tensors.push_back(tensor);
  }
}

SymbolicTensors::SymbolicTensors(
    std::initializer_list<std::pair<std::string, SymbolicTensor>> by_key)
    : SymbolicTensors(std::map<std::string, SymbolicTensor>(by_key.begin(), by_key.end())) {
  if (keys.size() == by_key.size()) return;
  throw ConfigError("Functional", "keys of inputs and of outputs must be unique", "a key twice",
                    "rename one of them");
}

}  // namespace tessera
