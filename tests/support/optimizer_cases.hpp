#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::test {

/// A part of golden/keras_optimizers.json: "cases", "schedules".
const Json& keras_optimizers(const std::string& part);

/// Where one weight and its slots rest, and how its gradients arrive.
struct WeightPlace {
  Layout weight;
  Layout gradient;
  std::optional<Layout> slots = std::nullopt;
};

/// Places for the weights of the golden file, all different, drawn with the seed: every way to
/// cut them over the mesh, gradients pending or not, slots cut further or not.
std::vector<WeightPlace> mixed_places(const Mesh& mesh, uint64_t seed);
/// One line that names them.
std::string to_string(const std::vector<WeightPlace>& places);

/// A tensor in a layout; the addends of a pending one are uneven.
DTensor in_layout(const at::Tensor& whole, const Layout& layout);

/// The golden file's weights, in these places; those named keep to values of at least 0.
std::vector<Variable> golden_weights(const std::vector<WeightPlace>& places,
                                     const std::vector<std::string>& constrained = {});
/// The gradients of a step for golden_weights(); the first one's last element is `last` instead.
std::vector<DTensor> golden_gradients(size_t step, const std::vector<WeightPlace>& places,
                                      std::optional<double> last = std::nullopt);

/// Runs the ten steps of one of the "cases". Empty if rates, iterations and weights are Keras'.
std::string wrong_case(const Json& golden, const std::vector<WeightPlace>& places);

}  // namespace tessera::test
