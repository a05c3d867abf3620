#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/symbolic.hpp>

namespace tessera::detail {

/// Where a graph begins or ends: tensors in a list, or by keys, in whose order they then stand.
struct GraphEnds {
  GraphEnds() = default;
  GraphEnds(std::vector<SymbolicTensor> list) : tensors(std::move(list)) {}  // NOLINT
  GraphEnds(std::initializer_list<SymbolicTensor> list) : tensors(list) {}   // NOLINT
  /// Throws ConfigError for a key that is there twice.
  GraphEnds(std::initializer_list<std::pair<std::string, SymbolicTensor>> by_key);  // NOLINT
  GraphEnds(const std::map<std::string, SymbolicTensor>& by_key);                   // NOLINT

  std::vector<SymbolicTensor> tensors = {};
  std::vector<std::string> keys = {};  ///< none for a list
};

}  // namespace tessera::detail
