#include <tessera/framework/io/keras/keras_1_weights.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace tessera::detail {
namespace {

/// Kernel, recurrent kernel and bias of a recurrent layer.
constexpr size_t arrays_of_gate = 3;

/// Returns the numbers in Keras 1's order of the gates in today's order; none for a weight that is
/// not the first one of a recurrent layer.
std::vector<size_t> gates_before(const Variable& weight) {
  if (weight.path().ends_with("lstm_cell/kernel")) return {0, 2, 1, 3};  // i, c, f, o then
  if (weight.path().ends_with("gru_cell/kernel")) return {0, 1, 2};
  return {};
}

/// Joins the gates' arrays; nothing if the data are not one array for each gate and weight.
std::vector<KerasData> joined_gates(const std::vector<Variable>& weights,
                                    const std::vector<KerasData>& data) {
  std::vector<KerasData> joined;
  size_t next = 0;
  for (size_t i = 0; i < weights.size() && next < data.size();) {
    const std::vector<size_t> gates = gates_before(weights[i]);
    if (gates.empty()) {
      joined.push_back(data[next++]);
      ++i;
      continue;
    }
    if (next + gates.size() * arrays_of_gate > data.size()) return {};
    for (size_t array = 0; array < arrays_of_gate; ++array) {
      const auto of_gate = [&](size_t gate) { return data[next + gate * arrays_of_gate + array]; };
      KerasData all = of_gate(gates[0]);
      for (size_t g = 1; g < gates.size(); ++g) all.more.push_back(of_gate(gates[g]).dataset);
      joined.push_back(std::move(all));
    }
    next += gates.size() * arrays_of_gate;
    i += arrays_of_gate;
  }
  return next == data.size() && joined.size() == weights.size() ? joined : std::vector<KerasData>();
}

}  // namespace

std::vector<KerasData> data_of_keras_1(const std::vector<Variable>& weights,
                                       std::vector<KerasData> data) {
  if (data.size() > weights.size()) {
    std::vector<KerasData> joined = joined_gates(weights, data);
    if (!joined.empty()) data = std::move(joined);
  }
  for (size_t i = 0; i < std::min(weights.size(), data.size()); ++i) {
    const Shape& stored = data[i].dataset->shape;
    const Shape expected = weights[i].shape();
    // A 1D convolution was one over (length, 1).
    const bool has_unit_axis = expected.size() == 3 && stored.size() == 4 && stored[1] == 1 &&
                               weights[i].path().ends_with("/kernel");
    if (has_unit_axis) data[i].unit_axis = 1;
  }
  return data;
}

}  // namespace tessera::detail
