#pragma once

#include <vector>

#include <tessera/framework/io/keras/keras_values.hpp>

namespace tessera::detail {

/// Returns the data of each weight of a layer in a file that may be of Keras 1: there an LSTM has a
/// kernel, a recurrent kernel and a bias for each of the gates i, c, f and o, a GRU for z, r and h,
/// and kernels of 1D convolutions have another axis. Returns other lists unchanged.
std::vector<KerasData> data_of_keras_1(const std::vector<Variable>& weights,
                                       std::vector<KerasData> data);

}  // namespace tessera::detail
