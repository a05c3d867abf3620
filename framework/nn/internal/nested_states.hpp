#pragma once

#include <cstddef>
#include <vector>

namespace tessera::detail {

/// Mixin for layers whose initial states Keras nests: a list of each cell's states.
class HasNestedStates {
 public:
  virtual ~HasNestedStates() = default;
  /// Returns the number of states of each cell; empty if the states are one flat list.
  virtual std::vector<size_t> states_by_cell() const = 0;
};

}  // namespace tessera::detail
