#pragma once

#include <string>
#include <vector>

#include <tessera/layers/recurrent/rnn.hpp>

/// Cells inside other layers, which call them without the checks of Layer's call.
namespace tessera::detail {

/// Returns a layer as a cell. Throws ConfigError, naming `where`, for a layer that is none or whose
/// states are not positive.
RNNCell& cell_of(const LayerHandle& layer, const std::string& where);

/// Returns the shapes with which a cell is built and called: a step's inputs, then the states.
Shapes cell_inputs(const RNNCell& cell, const Shape& inputs);

/// Returns the number of states of each cell of StackedRNNCells; empty for another cell.
std::vector<size_t> cell_states(const RNNCell& cell);

/// Returns cell.begin(), between casts of its inputs to the cell's compute dtype.
RNNCell::StepFunction cell_steps(RNNCell& cell, const Shape& inputs, const CallContext& context);

}  // namespace tessera::detail
