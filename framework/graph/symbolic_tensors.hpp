#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/symbolic.hpp>

namespace tessera {

/// The inputs or outputs of a graph: a list of tensors, or tensors by key in the order of the keys.
struct SymbolicTensors {
  SymbolicTensors() = default;
  SymbolicTensors(std::vector<SymbolicTensor> list) : tensors(std::move(list)) {}  // NOLINT
  SymbolicTensors(std::initializer_list<SymbolicTensor> list) : tensors(list) {}   // NOLINT
  /// Throws ConfigError for a duplicate key.
  SymbolicTensors(std::initializer_list<std::pair<std::string, SymbolicTensor>> by_key);  // NOLINT
  SymbolicTensors(const std::map<std::string, SymbolicTensor>& by_key);                   // NOLINT

  std::vector<SymbolicTensor> tensors = {};
  std::vector<std::string> keys = {};  ///< none for a list
};

}  // namespace tessera
